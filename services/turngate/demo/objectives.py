"""The objectives of the demo, driven to the ends that their plots have, and what becomes of those that go elsewhere.

A person creates them and steers a few of them while a role runs; a runner is killed while it holds one. What happened
is read from the events; what must have happened is held against the history at the end.
"""

from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Any, Final

from turngate.demo.plots import EDITED, GUIDANCE, Plot
from turngate.jetstream.events import StreamEvent
from turngate.runner import TurnClient
from turngate_contracts import codec
from turngate_contracts.errors import ErrorCode, Refusal
from turngate_protocol.esm.activity import Activity, ActivityKind, activity_of
from turngate_protocol.esm.objective import Status
from turngate_protocol.esm.state import Cause, CauseType, EsmState

Note = Callable[[str, str, str], None]
"""Called with what is worth a line: what it is about, a word that it comes to, and a sentence."""
Kill = Callable[[str], Awaitable[None]]
"""Kills the runner of that name and starts another one in its pool."""

_ENDS: Final = (ActivityKind.COMPLETE, ActivityKind.WAITING_FOR_PERSON)
_TOLD: Final = frozenset(
    {
        CauseType.EDITED,
        CauseType.PAUSED,
        CauseType.RESUMED,
        CauseType.RECOVERY_STARTED,
        CauseType.RECOVERY_FINISHED,
        CauseType.ROLE_FAILED,
    }
)


class Campaign:
    """Plays the objectives; `play` returns when each has ended."""

    name = "objectives"

    def __init__(self, client: TurnClient, plots: list[Plot], kill: Kill, note: Note) -> None:
        self.wanted = len(plots)
        self.ended: dict[str, str] = {}
        self.failures: list[str] = []
        self._client = client
        self._plots = {plot.session: plot for plot in plots}
        self._kill = kill
        self._note = note
        self._acted: set[str] = set()
        self._states: dict[str, EsmState] = {}
        self._causes: Counter[str] = Counter()

    @property
    def done(self) -> int:
        """How many have ended."""
        return len(self.ended)

    async def play(self) -> None:
        """Create all objectives, do to each what its plot says, and check how each ended."""
        for plot in self._plots.values():
            await self._client.objectives.create(plot.session, plot.text, pool=plot.pool, op=f"demo-{plot.session}")
        events: AsyncGenerator[StreamEvent, None] = self._client.events(kind="objectives")
        async with aclosing(events):
            async for event in events:
                await self._take(codec.decode(event.data, EsmState, "a session's objective"))
                if self.done == self.wanted:
                    break
        for plot in self._plots.values():
            self.failures += [f"objective {plot.session}: {what}" for what in await self._wrong(plot)]

    def unfinished(self) -> list[str]:
        """Say of each objective that has not ended where it stands."""
        found = []
        for session, plot in self._plots.items():
            if session in self.ended:
                continue
            state = self._states.get(session)
            where = "it was not created"
            if state is not None and state.objective is not None:
                activity = activity_of(state)
                where = f"it is {state.objective.status.value}, {activity.kind.value} {activity.role}".rstrip()
            found.append(f"objective {session} should be {plot.status.value}: {where}")
        return found

    def summary(self) -> dict[str, Any]:
        """Return the rows of the end table."""
        states = [state for state in self._states.values() if state.objective is not None]
        return {
            "count": self.done,
            **dict(sorted(Counter(self.ended.values()).items())),
            "runs": sum(state.runs for state in states),
            "roles": self._causes["role_finished"] + self._causes["role_failed"],
            "recoveries": self._causes["recovery_finished"],
            "tokens": sum(state.objective.tokens_used for state in states if state.objective is not None),
        }

    async def _take(self, state: EsmState) -> None:
        plot = self._plots.get(state.session_id)
        if plot is None or state.objective is None:
            return
        known = self._states.get(plot.session)
        self._states[plot.session] = state
        for cause in _new(state, known.revision if known else 0):
            self._causes[cause.type.value] += 1
            self._tell(plot, cause)
        activity = activity_of(state)
        if plot.act and plot.session not in self._acted and activity.kind is ActivityKind.RUNNING:
            self._acted.add(plot.session)
            await self._act(plot, activity)
        elif activity.kind in _ENDS and plot.session not in self.ended and plot.session not in self._waiting():
            status = state.objective.status.value
            self.ended[plot.session] = status
            if status != plot.status:
                self.failures.append(f"objective {plot.session} should be {plot.status.value} and is {status}")
            said = state.halt.message if state.halt else state.objective.progress_summary
            self._note(f"objective {plot.session}", status, f"after {state.runs} runs: {said}")

    def _waiting(self) -> set[str]:
        return {plot.session for plot in self._plots.values() if plot.act and plot.session not in self._acted}

    async def _act(self, plot: Plot, activity: Activity) -> None:
        commands = self._client.objectives
        if plot.act == "pause":
            await commands.pause(plot.session)
            await commands.guide(plot.session, GUIDANCE)
            await commands.resume(plot.session)
        elif plot.act == "edit":
            await commands.edit(plot.session, EDITED)
        else:
            self._note(f"runner {activity.runner}", "killed", f"while it was the {activity.role} of {plot.session}")
            await self._kill(activity.runner)

    def _tell(self, plot: Plot, cause: Cause) -> None:
        rejected = cause.type is CauseType.ROLE_FINISHED and cause.reason
        if cause.type in _TOLD or rejected:
            what = "rejected" if rejected else cause.type.value.replace("_", " ")
            who = cause.role or "you"
            self._note(f"objective {plot.session}", what, f"{who}: {cause.message or cause.reason or cause.status}")

    async def _wrong(self, plot: Plot) -> list[str]:
        """Hold the history of an ended objective against its plot."""
        try:
            history = [cause async for cause in self._client.objectives.history(plot.session)]
            state = (await self._client.objectives.get(plot.session)).state
        except Refusal as error:
            if error.code is ErrorCode.NOT_FOUND:
                return ["nothing is known of it"]
            raise
        wrong = [f"{kind.value} never happened" for kind in plot.must - {cause.type for cause in history}]
        applied = Counter(cause.role_run_id for cause in history if cause.type is CauseType.ROLE_FINISHED)
        wrong += [f"{role_run} was applied {count} times" for role_run, count in applied.items() if count > 1]
        if state.guidance:
            wrong.append("its guidance reached nobody")
        if plot.act == "edit" and (state.objective is None or state.objective.text != EDITED):
            wrong.append("the edit was lost")
        proven = any((cause.role, cause.verdict) == ("audit", "pass") for cause in history)
        if plot.status is Status.COMPLETE and not proven:
            wrong.append("it was completed without an audit")
        return wrong


def _new(state: EsmState, since: int) -> list[Cause]:
    every = (*state.recent, *((state.cause,) if state.cause else ()), *state.ignored)
    found = {cause.revision: cause for cause in every if cause.revision > since}
    return [found[revision] for revision in sorted(found)]
