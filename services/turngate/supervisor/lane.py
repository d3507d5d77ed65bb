"""One input about a session's objective: advance the state, save it, tell what came of it.

Requests, results and timers all come through here, so that an objective moves in one way. Killed before the save,
whoever sent the input sends it again; killed after it, the repeat finds in the state that it was taken. A continuation
that is due is started in the same save. What the state wants is the reconciler's to do; only the next role run is
offered at once, as a nudge, so that its runner need not wait until the saved state has come to a reconciler.
"""

from collections.abc import Callable
from typing import Final

from msgspec import Struct

from turngate.clock import Clock
from turngate.jetstream.awaited import apply
from turngate.jetstream.keyed import Lanes, Save
from turngate.jetstream.store import Event
from turngate.supervisor.metrics import Counters
from turngate_contracts.errors import ErrorBody, ErrorCode
from turngate_contracts.esm_rows import EVENT_PREFIX
from turngate_protocol.esm.continuation import advance, settle, wants
from turngate_protocol.esm.errors import EsmError
from turngate_protocol.esm.inputs import Input
from turngate_protocol.esm.state import Cause, CauseType, EsmState, Policy, causes

Told = Callable[[EsmState], Input]
"""Makes the input, given the newest state; called again when another process saved first."""

Nudge = Callable[[EsmState], None]
"""Hurries what a state wants that was just saved; it may do nothing."""

ENDS_OF_ROLES: Final = frozenset(
    {CauseType.ROLE_FINISHED, CauseType.ROLE_FAILED, CauseType.RECOVERY_FINISHED, CauseType.RECOVERY_FAILED}
)


class Advanced(Struct, frozen=True):
    """What an input came to: the state before and after it, the same where nothing changed, or why it was refused."""

    before: EsmState
    after: EsmState
    refused: EsmError | None = None

    @property
    def changed(self) -> bool:
        """Whether anything was saved."""
        return self.after is not self.before


class EsmLane(Struct, frozen=True):
    """What moving objectives needs."""

    lanes: Lanes[EsmState]
    policy: Policy
    clock: Clock
    counters: Counters
    nudge: Nudge

    async def tell(self, session: str, told: Input | Told) -> Advanced:
        """Tell a session's machine something and return what came of it, once that is stored.

        Args:
            session: the session, a checked id.
            told: the input, or what makes it of the newest state.

        Raises:
            Unavailable: what came of it may be stored or not; tell it again.
        """
        advanced: Advanced | None = None

        def decide(state: EsmState | None) -> Save[EsmState] | None:
            nonlocal advanced
            before = EsmState(session) if state is None else state
            advanced = self._advance(before, told(before) if callable(told) else told)
            return save_of(advanced.after) if advanced.changed else None

        def on_stored() -> None:
            if advanced is not None and advanced.changed:
                self.nudge(advanced.after)

        await apply(self.lanes, session, decide, on_stored)
        if advanced is None:
            raise RuntimeError("the lanes stored something that nobody decided")
        self._count(advanced)
        return advanced

    def _advance(self, before: EsmState, told: Input) -> Advanced:
        now = self.clock()
        try:
            after = advance(before, told, now, self.policy)
        except EsmError as error:
            return Advanced(before, before, error)
        return Advanced(before, settle(after, now, self.policy))

    def _count(self, advanced: Advanced) -> None:
        if advanced.refused is not None:
            self.counters.refused[advanced.refused.kind] += 1
        for cause in new_causes(advanced.after, advanced.before.revision):
            self.counters.causes[cause.type.value] += 1
            if cause.verdict:
                self.counters.verdicts[cause.role or "model", cause.verdict] += 1
            if cause.type is CauseType.RESULT_IGNORED:
                self.counters.ignored[cause.reason] += 1
            elif cause.role and cause.type in ENDS_OF_ROLES:
                self.counters.role_times[cause.role].add(cause.duration_ms / 1000)


def save_of(state: EsmState) -> Save[EsmState]:
    """Return a new state with the event that it is."""
    if state.cause is None:
        raise RuntimeError("a state without a cause can't be saved")
    return Save(state, Event(f"{EVENT_PREFIX}{state.cause.type.value}", state.cause.at, bool(wants(state))))


def new_causes(state: EsmState, since: int) -> tuple[Cause, ...]:
    """Return what happened to `state` after its change `since`, oldest first, as far as it remembers."""
    every = (*causes(state), *state.ignored)
    found = {cause.revision: cause for cause in every if cause.revision > since}
    return tuple(found[revision] for revision in sorted(found))


def error_of(error: EsmError) -> ErrorBody:
    """Return the wire form of a refusal of the protocol: every kind of it is a code of the same name."""
    return ErrorBody(ErrorCode(error.kind), error.message, dict(error.details))
