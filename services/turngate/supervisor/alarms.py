"""The timers that a state wants, set so that no clock of ours matters and no late hand undoes a newer one for good.

Clocks of processes may differ by anything. A timer is therefore set relative to when the server stored the state, by as
much as the process that made the state meant to wait, and by no more than anybody would mean.

A process that was stopped may set the timer of an older state over that of a newer one. It then fires, means nothing,
and whoever takes it sets the one that is wanted: a wrong timer costs a delay and never an objective.
"""

from turngate.jetstream.store import Entry
from turngate.jetstream.timers import Timers
from turngate_contracts import codec
from turngate_contracts.esm import ObjectiveDue
from turngate_contracts.messages import SCHEMAS
from turngate_protocol.esm.continuation import wants
from turngate_protocol.esm.effects import SetTimer
from turngate_protocol.esm.inputs import TimerKind
from turngate_protocol.esm.state import EsmState, Policy


class Alarms:
    """Sets the timers of objectives; there is one of each kind and session."""

    def __init__(self, timers: Timers, policy: Policy) -> None:
        self._timers = timers
        self._policy = policy

    async def set(self, effect: SetTimer, state: EsmState, entry: Entry) -> None:
        """Set a timer that the state in a revision wants.

        Raises:
            Unavailable: it may be set or not; set it again.
        """
        meant = effect.at - (state.cause.at if state.cause else effect.at)
        at = entry.stored_at() + min(max(meant, 0), longest_ms(effect.kind, self._policy))
        due = ObjectiveDue(effect.session_id, effect.kind, effect.generation, effect.at)
        await self._timers.set(effect.kind.value, effect.session_id, at, codec.encode(due), SCHEMAS[ObjectiveDue])

    async def replace(self, fired: ObjectiveDue, entry: Entry) -> None:
        """Set the timer that is wanted instead of one that fired and meant nothing, if one of its kind is."""
        if entry.value is None:
            return
        state = codec.decode(entry.value, EsmState, "a session's objective")
        for effect in wants(state):
            if not isinstance(effect, SetTimer) or effect.kind is not fired.kind:
                continue
            if (effect.generation, effect.at) != (fired.generation, fired.at):
                await self.set(effect, state, entry)


def longest_ms(kind: TimerKind, policy: Policy) -> int:
    """Return for how long a timer of a kind can be meant to wait."""
    if kind is TimerKind.CONTINUATION:
        return policy.longest_delay_ms
    return max(policy.watchdog_ms, policy.redispatch_ms)
