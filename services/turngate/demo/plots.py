"""What happens to each objective of the demo: what its agents answer, what people do, and how it must end."""

from typing import Any, Final, NamedTuple

from turngate_protocol.esm.objective import Status
from turngate_protocol.esm.state import CauseType

CREW: Final = "crew"
FRAGILE: Final = "fragile"
"""The pool whose only runner is killed."""
POOLS: Final = (CREW, FRAGILE)

LONG_MS: Final = 600_000
"""How long a role takes that is stopped before it ends."""
EDITED: Final = "Move the settings to one file, and say in the handbook where each of them went."
GUIDANCE: Final = "Leave the public API alone: three customers build against it."

_Role = dict[str, Any]
_Run = dict[str, _Role]


class Plot(NamedTuple):
    """An objective of the demo.

    Attributes:
        session: its session.
        text: what is to be achieved.
        runs: what each role does, run by run; the last run repeats.
        status: where it must end.
        must: what must have happened on the way.
        act: what is done to it while a role runs: `pause`, `edit` or `kill`.
        pool: whose runners work on it.
    """

    session: str
    text: str
    runs: tuple[_Run, ...]
    status: Status = Status.COMPLETE
    must: frozenset[CauseType] = frozenset()
    act: str = ""
    pool: str = CREW


def plots() -> list[Plot]:
    """Return the objectives of the demo."""
    return [*_undisturbed(), *_stopped(), *_steered()]


def _undisturbed() -> list[Plot]:
    return [
        Plot("parser-tests", "Make every test of the parser pass.", (_goes_on("half"), _completes())),
        Plot("flaky-ci", "Find out why CI fails on Mondays, and end it.", (_goes_on("the cause"), _completes())),
        Plot(
            "handbook",
            "Document every command of the command line, with an example that runs.",
            (_rejected("critic", "two commands have no example"), _completes()),
        ),
        Plot(
            "price-import",
            "Import ten years of prices and prove that none is lost.",
            (_rejected("audit", "the counts of 2019 differ by four"), _completes()),
        ),
        Plot(
            "chatty-agent",
            "Remove the dead code of the importer.",
            ({"worker": {"response": "All done! Trust me.", "tools": ["bash"], "tokens": 90}}, _completes()),
        ),
    ]


def _stopped() -> list[Plot]:
    return [
        Plot(
            "payout-report",
            "Reconcile the payouts of last month.",
            (_blocked("the bank's export is not readable for this account"),),
            Status.BLOCKED,
        ),
        Plot(
            "translations",
            "Translate the help into nine languages.",
            (
                _goes_on("four languages"),
                {"worker": {"failure": {"message": "429 too many requests: the usage limit is reached"}, "tokens": 40}},
            ),
            Status.USAGE_LIMITED,
        ),
    ]


def _steered() -> list[Plot]:
    slow = {"worker": {"delay_ms": LONG_MS, "progress": ["reads what is there"], "tools": ["read"], "tokens": 310}}
    return [
        Plot(
            "big-refactoring",
            "Split the billing module in three.",
            (slow, _completes()),
            must=frozenset({CauseType.PAUSED, CauseType.GUIDED, CauseType.RESUMED}),
            act="pause",
        ),
        Plot(
            "settings-file",
            "Move the settings to one file.",
            (slow, _completes()),
            must=frozenset({CauseType.EDITED}),
            act="edit",
        ),
        Plot(
            "night-migration",
            "Migrate the archive to the new format.",
            ({**slow, **_observer()}, _completes()),
            must=frozenset({CauseType.RECOVERY_STARTED, CauseType.RECOVERY_FINISHED}),
            act="kill",
            pool=FRAGILE,
        ),
    ]


def scenarios(pace_s: float) -> dict[str, list[_Run]]:
    """Return what the agents do, by session; a role takes `pace_s` seconds where the plot says nothing else."""
    return {
        plot.session: [{role: _paced(given, pace_s) for role, given in run.items()} for run in plot.runs]
        for plot in plots()
    }


def _paced(given: _Role, pace_s: float) -> _Role:
    return {"delay_ms": int(pace_s * 1000), **given}


def _goes_on(what: str) -> _Run:
    report = {
        "status": "continue",
        "summary": f"Done so far: {what}.",
        "evidence": ["make test"],
        "remaining_work": ["the rest", "a look at the edges"],
    }
    return {"worker": {"response": report, "tools": ["read", "edit", "bash"], "tokens": 1200}}


def _claims() -> _Role:
    report = {"status": "complete_candidate", "summary": "All of it is done.", "evidence": ["make test: all pass"]}
    return {"response": report, "tools": ["edit", "bash"], "tokens": 800}


def _passes() -> _Role:
    report = {
        "verdict": "pass",
        "review": "Every requirement is met.",
        "requirements_checked": ["all of the text"],
        "evidence": ["make test: all pass"],
    }
    return {"response": report, "tools": ["read", "grep"], "tokens": 300}


def _completes() -> _Run:
    return {"worker": _claims(), "critic": _passes(), "audit": _passes()}


def _rejected(by: str, missing: str) -> _Run:
    report = {"verdict": "fail", "review": "It is not done.", "missing_work": [missing], "evidence": ["read"]}
    return {**_completes(), by: {"response": report, "tools": ["read"], "tokens": 250}}


def _blocked(by: str) -> _Run:
    report = {"status": "blocked_candidate", "summary": "Nothing more can be done.", "blockers": [by]}
    return {"worker": {"response": report, "tools": ["bash"], "tokens": 150}}


def _observer() -> _Run:
    report = {
        "decision": "resume",
        "summary": "Four of nine volumes are migrated; nothing is half done.",
        "evidence": ["ls archive/"],
        "remaining_work": ["five volumes"],
    }
    return {"recovery": {"response": report, "tools": ["ls"], "tokens": 60}}
