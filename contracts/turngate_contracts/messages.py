"""The messages of turns: what runners publish, what services answer, and what people's clients ask for.

Each is a frozen Struct that grows only by fields with defaults; the `Turngate-Schema` header names it (`SCHEMAS`).
Times are ms since the epoch. `op` is a caller's own operation id: repeating a request with it has the same result.
"""

from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from turngate_contracts.dead import DEAD_SCHEMAS
from turngate_contracts.errors import ErrorBody
from turngate_contracts.esm import ESM_SCHEMAS
from turngate_contracts.progress import PROGRESS_SCHEMAS
from turngate_contracts.questions import QUESTION_SCHEMAS
from turngate_contracts.sessions import SESSION_SCHEMAS
from turngate_contracts.tasks import TASK_SCHEMAS
from turngate_protocol.esm.objective import Role
from turngate_protocol.inbox import InboxEntry
from turngate_protocol.report.order import Choice
from turngate_protocol.report.problems import Problem
from turngate_protocol.report.session import NO_REPORT, Answer, EndingOutcome, Outcome, Prompt, SessionTurns

# What runners publish


class ReportSubmitted(Struct, frozen=True, omit_defaults=True, gc=False):
    """An attempt to report. `report` is the JSON that the model wrote; `unparsed` its bytes where they are no JSON."""

    session: str
    turn: int
    attempt: int
    runner: str
    pool: str
    mutated: bool = False
    used_tools: bool = False
    report: Raw = NO_REPORT
    unparsed: bytes | None = None


class TurnEnded(Struct, frozen=True, omit_defaults=True):
    """The agent of a turn stopped, for the `ending`-th time in this turn; facts about tools come from the runner."""

    session: str
    turn: int
    ending: int
    runner: str
    pool: str
    mutated: bool = False
    used_tools: bool = False


# What a runner's mailbox gets: nudges, never the truth


class Verdict(Struct, frozen=True, omit_defaults=True, gc=False):
    """The verdict of an attempt. `text` is what the model should read when it is not accepted.

    `report` is the accepted report, normalised. Where normalising changed nothing a mailbox gets `as_submitted` instead
    of the same bytes once more. `digest` tells which content was judged, see `content_digest`.
    """

    session: str
    turn: int
    attempt: int
    outcome: Outcome
    at: int
    problems: tuple[Problem, ...] = ()
    problem_count: int = 0
    attempts_left: int = 0
    buried_proposal: bool = False
    text: str = ""
    report: Raw = NO_REPORT
    choices: tuple[Choice, ...] = ()
    as_submitted: bool = False
    digest: str = ""


class EndingVerdict(Struct, frozen=True, omit_defaults=True):
    """The outcome of an ending; `text` is the reminder that the agent should read."""

    session: str
    turn: int
    ending: int
    outcome: EndingOutcome
    at: int
    text: str = ""


class Refusal(Struct, frozen=True, omit_defaults=True):
    """A message that was not taken. `stream` and `sequence` are those of its publish confirmation."""

    stream: str
    sequence: int
    error: ErrorBody
    session: str = ""
    turn: int = 0
    attempt: int = 0
    ending: int = 0
    digest: str = ""
    task: str = ""


class TurnAnswered(Struct, frozen=True, omit_defaults=True):
    """A card of the runner's session was answered or, with no answer, dismissed."""

    session: str
    turn: int
    answer: Answer | None = None
    dismissed_by: str = ""


# Requests and replies


class CheckReport(Struct, frozen=True, omit_defaults=True):
    """Check a report without recording anything."""

    report: Raw = NO_REPORT
    unparsed: bytes | None = None
    mutated: bool = False
    max_blocks: int = 0


class ReportChecked(Struct, frozen=True, omit_defaults=True):
    """What a check found; `report` is the normalised report when it is accepted."""

    ok: bool
    problems: tuple[Problem, ...] = ()
    problem_count: int = 0
    buried_proposal: bool = False
    text: str = ""
    report: Raw = NO_REPORT
    choices: tuple[Choice, ...] = ()


class GetSchema(Struct, frozen=True, omit_defaults=True):
    """Ask for the report's JSON Schema."""

    max_blocks: int = 0


class ReportSchema(Struct, frozen=True):
    """The report's JSON Schema, as a model's tool declares it."""

    json_schema: dict[str, Any]


class GetTurn(Struct, frozen=True, omit_defaults=True):
    """Ask what is known of a session, and of one attempt or ending of it when those are given.

    With a `digest` a verdict is given for that content only, with a `pool` only where the session belongs to it.
    """

    session: str
    turn: int = 0
    attempt: int = 0
    ending: int = 0
    digest: str = ""
    pool: str = ""


class TurnFound(Struct, frozen=True, omit_defaults=True):
    """What is known: the session's state at `revision`, and the outcome that was asked for, or why there is none."""

    state: SessionTurns
    revision: int
    verdict: Verdict | None = None
    ended: EndingVerdict | None = None
    refused: ErrorBody | None = None


class AnswerTurn(Struct, frozen=True, omit_defaults=True):
    """Answer a card by its option's number, or by block id and option id; `text` goes beside the option."""

    session: str
    turn: int
    number: int = 0
    block: str = ""
    option: str = ""
    text: str = ""
    op: str = ""


class AnswerRecorded(Struct, frozen=True, omit_defaults=True):
    """The answer that stands; `repeated` when this very operation had recorded it before."""

    session: str
    turn: int
    answer: Answer
    repeated: bool = False


class DismissTurn(Struct, frozen=True, omit_defaults=True):
    """Close a card without an answer."""

    session: str
    turn: int
    op: str = ""


class TurnDismissed(Struct, frozen=True, omit_defaults=True):
    """The card is closed; `released` prompts that it held back are on their way."""

    session: str
    turn: int
    actor: str
    released: int = 0


class SendPrompt(Struct, frozen=True, omit_defaults=True):
    """Have a prompt started in a session, held while its card waits. The same id is sent once, for ever."""

    session: str
    pool: str
    id: str
    text: str
    kind: str = "service"


class PromptQueued(Struct, frozen=True):
    """Where the prompt is: held behind a card, or on its way to the pool."""

    id: str
    held: bool


class ListInbox(Struct, frozen=True, omit_defaults=True):
    """Ask for what waits for a person, oldest first; `cursor` is the last page's, `kind` one kind only."""

    cursor: int = 0
    limit: int = 100
    kind: str = ""


class InboxPage(Struct, frozen=True, omit_defaults=True):
    """A page of the inbox. Ask again with `cursor` while `more`."""

    entries: tuple[InboxEntry, ...]
    cursor: int = 0
    more: bool = False


class JoinRunner(Struct, frozen=True, omit_defaults=True):
    """Announce a runner to a pool whose work it takes; makes the pool's consumers where they are missing.

    The pool stands in the subject. `roles` are those that it runs for objectives, if it runs any.
    """

    runner: str
    roles: tuple[Role, ...] = ()


class RunnerJoined(Struct, frozen=True, omit_defaults=True):
    """The consumers that the runner may pull from, by pool and by role, and how the gate is set."""

    prompts: dict[str, str]
    mode: str = ""
    max_blocks: int = 0
    roles: dict[str, dict[str, str]] = {}


SCHEMAS: Final[dict[type[Struct], str]] = {
    ReportSubmitted: "report_submitted.v1",
    TurnEnded: "turn_ended.v1",
    Verdict: "verdict.v1",
    EndingVerdict: "ending_verdict.v1",
    Refusal: "refusal.v1",
    TurnAnswered: "turn_answered.v1",
    Prompt: "prompt.v1",
    CheckReport: "check_report.v1",
    ReportChecked: "report_checked.v1",
    GetSchema: "get_schema.v1",
    ReportSchema: "report_schema.v1",
    GetTurn: "get_turn.v1",
    TurnFound: "turn_found.v1",
    AnswerTurn: "answer_turn.v1",
    AnswerRecorded: "answer_recorded.v1",
    DismissTurn: "dismiss_turn.v1",
    TurnDismissed: "turn_dismissed.v1",
    SendPrompt: "send_prompt.v1",
    PromptQueued: "prompt_queued.v1",
    ListInbox: "list_inbox.v1",
    InboxPage: "inbox_page.v1",
    JoinRunner: "join_runner.v1",
    RunnerJoined: "runner_joined.v1",
    SessionTurns: "session_turns.v1",
    InboxEntry: "inbox_entry.v1",
    ErrorBody: "error.v1",
    **DEAD_SCHEMAS,
    **QUESTION_SCHEMAS,
    **ESM_SCHEMAS,
    **PROGRESS_SCHEMAS,
    **SESSION_SCHEMAS,
    **TASK_SCHEMAS,
}
"""The name and version of every message, as the `Turngate-Schema` header carries it."""

REPORT_ENVELOPE: Final = 4096
"""Bytes that a ReportSubmitted takes beside its report, at most."""


def report_bytes(message: ReportSubmitted | CheckReport) -> bytes | None:
    """Return the report as it was submitted, or None when there was none."""
    if message.unparsed is not None:
        return message.unparsed
    raw = bytes(message.report)
    return None if not raw or raw == b"null" else raw


def wrap_report(data: bytes | None) -> tuple[Raw, bytes | None]:
    """Return (`report`, `unparsed`) for the bytes that a model wrote: bytes that are no JSON travel as they are."""
    if not data:
        return NO_REPORT, None
    try:
        # Without the white space around it, which does not survive the envelope: both ends then see the same bytes.
        return Raw(bytes(_probe(data))), None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return NO_REPORT, data


_probe = msgspec.json.Decoder(Raw).decode
