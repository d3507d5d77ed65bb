"""An objective with a past: hours of runs, rests, a night, a rejection and a recovery, made by the machine itself."""

from typing import Any

from tests.esm_answers import observer, review, worker
from tests.protocol.esm.scenes import failure, report, run_of
from turngate_protocol.esm.classify import FailureKind
from turngate_protocol.esm.continuation import advance, settle
from turngate_protocol.esm.inputs import Claim, Create, Guide, Input, Pause, Resume
from turngate_protocol.esm.state import EsmState

MINUTE = 60_000
HOUR = 60 * MINUTE
TEXT = "Archive the orders that are older than ten years, and prove that no report misses them."


class Past:
    """A session's states, one after the other, each at its time."""

    def __init__(self, session: str, began: int) -> None:
        self.states: list[EsmState] = []
        self.now = began
        self._state = EsmState(session)
        self._claims = 0

    @property
    def state(self) -> EsmState:
        return self._state

    def tell(self, told: Input, after: int = 0) -> None:
        self.now += after
        self._state = settle(advance(self._state, told, self.now), self.now)
        self.states.append(self._state)

    def claim(self, runner: str, after: int = 20_000) -> None:
        self._claims += 1
        run = run_of(self._state)
        self.tell(
            Claim(
                role_run_id=run.id,
                generation=self._state.generation,
                claim_id=f"{runner}-c{self._claims}",
                runner=runner,
            ),
            after,
        )

    def run(self, runner: str, answer: str, minutes: float, tokens: int) -> None:
        self.claim(runner)
        took = int(minutes * MINUTE)
        self.tell(report(self._state, answer, tokens=tokens, duration_ms=took), took)

    def fail(self, runner: str, kind: FailureKind, message: str, minutes: float) -> None:
        self.claim(runner)
        took = int(minutes * MINUTE)
        self.tell(failure(self._state, kind, message, tokens=2_100, duration_ms=took), took)

    def start(self) -> None:
        """Let the time come at which the next run is due."""
        due = self._state.next_at
        assert due is not None
        self.now = max(self.now, due)
        self._state = settle(self._state, self.now)
        self.states.append(self._state)


def archive(session: str, began: int, pool: str = "pool-1") -> Past:
    """An objective that is nearly there: the critic of its last claim is wanted."""
    past = Past(session, began)
    past.tell(Create(text=TEXT, esm_id="7d41c09a2b6e4f18", pool=pool, work_dir="/srv/orders", id="op-1", actor="ann"))
    past.run("core-2", worker(summary="The table and the copy job exist"), 14, 48_211)
    past.run("core-2", worker(summary="412,000 of 1,204,331 orders are archived"), 22, 61_040)
    past.tell(Pause(id="op-2", actor="ann"), 5 * MINUTE)
    past.tell(Resume(id="op-3", actor="bea"), 9 * HOUR)
    past.run("core-1", worker("complete_candidate", "All orders are archived"), 31, 96_400)
    missing = review("fail", "Report 22 was never compared", missing_work=["compare report 22", "test the restore"])
    past.run("core-2", missing, 8, 20_100)
    past.start()
    past.fail("core-1", FailureKind.DEADLINE, "it ran for an hour", 18)
    past.run("core-2", observer(summary="Report 22 is compared, the restore is not tested"), 3, 8_700)
    past.start()
    past.tell(
        Guide(text="The finance team reads report 14 on Mondays: test it first.", id="op-4", actor="ann"), 2 * MINUTE
    )
    past.run("core-2", worker("complete_candidate", "Both reports show the same sums; the restore works"), 17, 55_000)
    past.claim("core-1")
    return past


def causes_of(past: Past) -> tuple[Any, ...]:
    """What happened, as the history tells it."""
    found = {cause.revision: cause for state in past.states for cause in (*state.recent, state.cause) if cause}
    return tuple(found[at] for at in sorted(found))
