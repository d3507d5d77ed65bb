"""One realistic example of every message, told as one story: a migration that stops where a person must choose.

The states and verdicts are what the gate itself makes of the story's reports, so that no example claims what the rules
would not do. `make contracts` writes them to `contracts/examples`, and a test reads them back.
"""

import json
from typing import Any, Final

from msgspec import Raw, Struct

from turngate_contracts.dead_examples import of_dead
from turngate_contracts.errors import ErrorBody, ErrorCode
from turngate_contracts.esm_examples import of_objectives
from turngate_contracts.messages import (
    AnswerRecorded,
    AnswerTurn,
    CheckReport,
    DismissTurn,
    EndingVerdict,
    GetSchema,
    GetTurn,
    InboxPage,
    JoinRunner,
    ListInbox,
    PromptQueued,
    Refusal,
    ReportChecked,
    ReportSchema,
    ReportSubmitted,
    RunnerJoined,
    SendPrompt,
    TurnAnswered,
    TurnDismissed,
    TurnEnded,
    TurnFound,
    Verdict,
)
from turngate_contracts.question_examples import Story, of_questions
from turngate_contracts.sessions import ListSessions, SessionEntry, SessionsPage
from turngate_contracts.subjects import Subjects
from turngate_contracts.task_examples import of_tasks
from turngate_protocol.inbox import InboxEntry
from turngate_protocol.report.answering import (
    Changed,
    Pick,
    Unchanged,
    answer,
    enqueue,
    wants,
)
from turngate_protocol.report.lookup import Refused
from turngate_protocol.report.schema import json_schema
from turngate_protocol.report.session import (
    NO_REPORT,
    Answer,
    AttemptVerdict,
    EndingOutcome,
    Mode,
    Outcome,
    Prompt,
    SessionTurns,
)
from turngate_protocol.report.texts import attempts_left, reminder_text, verdict_text
from turngate_protocol.report.turn import Attempt, Ended, GateRules, Judged, TurnEnd, end, submit

SESSION: Final = "orders-4812"
RUNNER: Final = "runner-eu-1"
POOL: Final = "backend"
PERSON: Final = "ann"
BEGAN: Final = 1_785_488_400_000
"""When the story begins: 2026-07-31 09:00 UTC, in ms since the epoch."""
REVISION: Final = 18_277
SEQUENCE: Final = 48_213

_MINUTE: Final = 60_000
_SUBJECTS: Final = Subjects()
_RULES: Final = GateRules()
_OP: Final = "3f9a1c0d77e24b518a6e90c2"
_PROMPT_ID: Final = "task-311-conclusion"
_PROMPT_TEXT: Final = "Task 311 (index the archive) has finished: 2 files were written. Look at its result."

_CHANGE: Final[dict[str, Any]] = {
    "type": "change",
    "id": "migration",
    "summary": "Migration 31 adds orders.archived_at and an index on it",
    "related_files": ["migrations/0031_orders_archived_at.sql"],
}
_DECISION: Final[dict[str, Any]] = {
    "type": "decision",
    "id": "when",
    "summary": "When to run the migration on production",
    "options": [
        {
            "id": "now",
            "label": "Run it now",
            "consequence": "Orders can't be placed for about a minute",
            "effect": "dispatch",
            "instruction": "Run migration 31 on production and check the row counts before and after.",
        },
        {"id": "word-it", "label": "Tell the team first", "effect": "collect"},
        {"id": "leave", "label": "Leave it for the weekend", "effect": "resolve"},
    ],
    "response_type": "single",
    "recommendation": "leave",
    "recommendation_reason": "Traffic is lowest on Sunday morning.",
}
_CHECKED: Final[dict[str, Any]] = {
    "type": "verification",
    "id": "dry-run",
    "summary": "A dry run on last night's copy passed in 48 s",
    "status": "passed",
    "evidence": "make migrate-dry-run: 6,214,008 rows, 0 errors",
}


def _report(status: str, headline: str, *blocks: dict[str, Any]) -> bytes:
    report = {"task_status": status, "headline": headline, "blocks": blocks}
    return json.dumps(report, ensure_ascii=False, separators=(",", ":")).encode()


_UNCHECKED: Final = _report("completed", "The migration is written", _CHANGE)
CARD: Final = _report(
    "needs_action", "The migration is ready; it locks the orders table for a minute", _CHANGE, _CHECKED, _DECISION
)
"""The report of the story: it asks something, so it is a card that waits for a person."""


def _attempt(turn: int, attempt: int, report: bytes) -> Attempt:
    return Attempt(SESSION, POOL, RUNNER, turn, attempt, report, mutated=True, used_tools=True)


def _new(result: Judged | Ended | Changed | Unchanged | Refused) -> SessionTurns:
    if isinstance(result, Refused) or result.state is None:
        raise TypeError(f"the story goes another way: {result}")
    return result.state


def _before_the_card() -> SessionTurns:
    """Turn 6 was reported at once; turn 7 forgot to say how it was checked."""
    state = _new(submit(None, _attempt(6, 1, _report("completed", "Found the slow query", _CHECKED)), _RULES, BEGAN))
    state = _new(end(state, TurnEnd(SESSION, POOL, RUNNER, 6, 1, True, True), _RULES, BEGAN + 900))
    return _new(submit(state, _attempt(7, 1, _UNCHECKED), _RULES, BEGAN + 22 * _MINUTE))


def _with_card() -> SessionTurns:
    """The repaired report of turn 7 is a card, and a service's prompt waits behind it."""
    state = _new(submit(_before_the_card(), _attempt(7, 2, CARD), _RULES, BEGAN + 23 * _MINUTE))
    prompt = Prompt(_PROMPT_ID, SESSION, _PROMPT_TEXT, "conclusion", BEGAN + 31 * _MINUTE, actor="conclusion")
    return _new(enqueue(state, prompt, BEGAN + 31 * _MINUTE))


def _answered() -> SessionTurns:
    pick = Pick(7, PERSON, number=1, text="Post in #orders before you start.", op=_OP)
    return _new(answer(_with_card(), pick, BEGAN + 40 * _MINUTE))


def _verdict(state: SessionTurns, known: AttemptVerdict) -> Verdict:
    accepted = known.outcome is Outcome.ACCEPTED
    left = attempts_left(known, state.current.attempts)
    return Verdict(
        SESSION,
        state.current.turn,
        known.attempt,
        known.outcome,
        known.at,
        known.problems,
        known.problem_count,
        left,
        known.buried_proposal,
        verdict_text(known, left),
        state.current.report if accepted else NO_REPORT,
        state.current.choices if accepted else (),
    )


def _body(result: object) -> ErrorBody:
    if not isinstance(result, Refused):
        raise TypeError(f"the story goes another way: {result}")
    return ErrorBody(ErrorCode(result.code.value), result.message, dict(result.details))


def _given(state: SessionTurns) -> Answer:
    if state.current.answer is None:
        raise TypeError("the story goes another way: nobody answered")
    return state.current.answer


def _entry(state: SessionTurns) -> InboxEntry:
    entry = wants(state).inbox
    if entry is None:
        raise TypeError("the story goes another way: nothing waits")
    return entry


def _listed(state: SessionTurns) -> SessionEntry:
    turn, cause, entry = state.current, state.cause, _entry(state)
    return SessionEntry(
        SESSION,
        POOL,
        REVISION,
        cause.at,
        cause.type,
        turn.turn,
        turn.phase,
        RUNNER,
        cause.actor,
        entry.title,
        waiting=True,
        options=entry.options,
        rejections=turn.rejections,
        held=len(state.held),
    )


def _of_turns(card: SessionTurns, answered: SessionTurns) -> tuple[Struct, ...]:
    """What the runner publishes and gets, and the states in between."""
    late = submit(card, _attempt(6, 2, _UNCHECKED), _RULES, BEGAN + 33 * _MINUTE)
    reminded = EndingVerdict(
        SESSION, 8, 1, EndingOutcome.REMINDER, BEGAN + 52 * _MINUTE, reminder_text(1)
    )  # of the turn after the card
    stream = _SUBJECTS.stream("turns")
    return (
        ReportSubmitted(SESSION, 7, 2, RUNNER, POOL, mutated=True, used_tools=True, report=Raw(CARD)),
        TurnEnded(SESSION, 8, 1, RUNNER, POOL, mutated=True, used_tools=True),
        _verdict(_before_the_card(), _before_the_card().current.attempts[0]),
        reminded,
        Refusal(stream, SEQUENCE, _body(late), SESSION, 6, 2),
        TurnAnswered(SESSION, 7, _given(answered)),
        answered.outgoing[0],
        card,
        _entry(card),
        _body(answer(answered, Pick(7, "bob", number=3), BEGAN + 41 * _MINUTE)),
    )


def _of_requests(card: SessionTurns, answered: SessionTurns) -> tuple[Struct, ...]:
    """What is asked for, each followed by what comes back."""
    current = card.current
    return (
        CheckReport(report=Raw(CARD), mutated=True),
        ReportChecked(True, report=Raw(CARD), choices=current.choices),
        GetSchema(max_blocks=_RULES.max_blocks),
        ReportSchema(json_schema(_RULES.max_blocks)),
        GetTurn(SESSION, 7, attempt=2),
        TurnFound(card, REVISION, _verdict(card, current.attempts[-1])),
        AnswerTurn(SESSION, 7, number=1, text="Post in #orders before you start.", op=_OP),
        AnswerRecorded(SESSION, 7, _given(answered)),
        DismissTurn(SESSION, 7, op=_OP),
        TurnDismissed(SESSION, 7, PERSON, released=len(card.held)),
        SendPrompt(SESSION, POOL, _PROMPT_ID, _PROMPT_TEXT, kind="conclusion"),
        PromptQueued(_PROMPT_ID, held=True),
        ListInbox(limit=50, kind="card"),
        InboxPage((_entry(card),), cursor=REVISION),
        ListSessions(limit=50, text="orders"),
        SessionsPage((_listed(card),), cursor=REVISION),
        JoinRunner(RUNNER),
        RunnerJoined({POOL: _SUBJECTS.prompt_consumer(POOL)}, Mode.MUTATING.value, _RULES.max_blocks),
    )


def _examples() -> dict[type[Struct], Struct]:
    card, answered = _with_card(), _answered()
    story = Story(SESSION, RUNNER, POOL, PERSON, BEGAN + 55 * _MINUTE, REVISION + 6, _OP)
    told = (*of_questions(story), *of_tasks(story), *of_objectives(story), *of_dead(story))
    every = (*_of_turns(card, answered), *_of_requests(card, answered), *told)
    return {type(example): example for example in every}


EXAMPLES: Final[dict[type[Struct], Struct]] = _examples()
"""The example of each message."""
