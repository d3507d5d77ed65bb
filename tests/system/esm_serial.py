"""What must be true of an objective's history once the faults have stopped: it is one that a serial run could have.

- Its changes are numbered without gaps, and the newest state is the last of them.
- Each role run started before it ended, and has one end that counts; what else came of it was ignored.
- A continuation goes worker, critic, audit; it completes only by an audit's pass, and nothing follows in it.
- The tokens of the objective, while there is one, are the sum of those that its causes account for.
"""

from collections import Counter

from turngate_protocol.esm.state import Cause, CauseType, EsmState

ENDS = frozenset(
    {CauseType.ROLE_FINISHED, CauseType.ROLE_FAILED, CauseType.RECOVERY_FINISHED, CauseType.RECOVERY_FAILED}
)
STARTS = frozenset({CauseType.ROLE_STARTED, CauseType.RECOVERY_STARTED})
ORDER = ("worker", "critic", "audit")


def problems(state: EsmState, history: list[Cause]) -> list[str]:
    """Return what is wrong with the history of a session that had one objective, a sentence each."""
    return [*_numbers(state, history), *_ends(history), *_pipelines(history), *_usage(state, history)]


def _numbers(state: EsmState, history: list[Cause]) -> list[str]:
    revisions = [cause.revision for cause in history]
    found = []
    if revisions != sorted(set(revisions)):
        found.append("changes are told twice or out of order")
    if state.cause is not None and state.cause.type is not CauseType.WATCHED and revisions[-1:] != [state.revision]:
        found.append(f"the history ends at {revisions[-1:]}, the state is {state.revision}")
    return found


def _ends(history: list[Cause]) -> list[str]:
    ends = Counter(cause.role_run_id for cause in history if cause.type in ENDS)
    found = [f"{run} was applied {count} times" for run, count in ends.items() if count > 1]
    started: set[str] = set()
    for cause in history:
        if cause.type in STARTS:
            started.add(cause.role_run_id)
        elif cause.type in ENDS and cause.role_run_id not in started:
            found.append(f"{cause.role_run_id} ended and never started")
    return found


def _pipelines(history: list[Cause]) -> list[str]:
    found = []
    reached: dict[str, int] = {}
    for cause in history:
        if cause.type is not CauseType.ROLE_FINISHED:
            continue
        place = ORDER.index(cause.role)
        first = place == 0 or cause.run_id not in reached  # a candidate may be challenged at once
        if not first and reached[cause.run_id] != place - 1:
            found.append(f"{cause.role_run_id} came after {ORDER[reached[cause.run_id]]}")
        reached[cause.run_id] = place
        if cause.status == "complete" and (cause.role, cause.verdict) != ("audit", "pass"):
            found.append(f"{cause.role_run_id} completed the objective with {cause.verdict}")
    return found


def _usage(state: EsmState, history: list[Cause]) -> list[str]:
    if state.objective is None:
        return []  # cleared, and its counters with it
    counted = sum(cause.tokens for cause in history)
    kept = state.objective.tokens_used
    return [] if counted == kept else [f"{kept} tokens are kept, its causes account for {counted}"]
