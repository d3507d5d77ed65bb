"""The catalogue: every message that crosses NATS, where it goes, who sends it and what comes back.

Documents, schemas, examples and permissions are derived from these tables, and tests hold the running services to them.
To add a message: its Struct and its `SCHEMAS` entry in `messages`, a row here, an example in `examples`, then
`make contracts`. The shapes of the rows are in `rows`.

======== ================================ ===========================================
table    direction                        kept by the server
======== ================================ ===========================================
INTAKE   runners to services              in a work queue, until it is handled
REQUESTS anyone to a service, and back    no: ask again while nobody answers
ASKS     services to a runner, and back   no: no answer in time counts as one
MAILBOX  services to one runner           no: a nudge, the truth is asked for
WORK     services to a pool's runners     for days, so that a second one is refused
STATES   services to themselves           the newest revisions, which are the events
TIMERS   services to themselves           until it is due and handled
PROGRESS services to user interfaces      among the events, for minutes
PRESENCE services to themselves           in memory, for seconds
DEAD     services to people               for weeks
======== ================================ ===========================================
"""

from typing import Final

from msgspec import Struct

from turngate_contracts.dead_rows import DEAD_REQUESTS, DEAD_ROW
from turngate_contracts.errors import ErrorBody, ErrorCode
from turngate_contracts.esm_rows import (
    ESM_INTAKE,
    ESM_MAILBOX,
    ESM_PRESENCE,
    ESM_PROGRESS,
    ESM_REQUESTS,
    ESM_STATES,
    ESM_TIMERS,
    ESM_WORK,
)
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
from turngate_contracts.questions import (
    AskQuestion,
    GetQuestion,
    QuestionAsked,
    QuestionDue,
    QuestionFound,
    QuestionOutcome,
    RejectQuestion,
    ResolveQuestion,
)
from turngate_contracts.rows import EVERYBODY, Caller, Intake, Mail, Request, State, Timer, Work
from turngate_contracts.sessions import SESSION_REQUESTS
from turngate_contracts.subjects import Subjects
from turngate_contracts.task_rows import TASK_ASKS, TASK_INTAKE, TASK_REQUESTS, TASK_STATE
from turngate_contracts.topology import QUESTION_TIMER, VALIDATION
from turngate_protocol.inbox import InboxEntry
from turngate_protocol.question.session import SessionQuestions
from turngate_protocol.report.model import REPORT_MAX
from turngate_protocol.report.session import Prompt, SessionTurns

GENERAL_ERRORS: Final = (
    ErrorCode.INVALID_ID,
    ErrorCode.INVALID_MESSAGE,
    ErrorCode.UNAVAILABLE,
    ErrorCode.INTERNAL,
)
"""Errors that any request may be answered with, beside those of its row."""
ERROR: Final[type[Struct]] = ErrorBody
"""What a request is answered with when it fails."""

INTAKE: Final = (
    Intake(
        "turn.report",
        ReportSubmitted,
        Subjects.turn_report,
        ("pool", "runner", "session"),
        "turns",
        VALIDATION,
        "Submit an attempt to report. It gets exactly one verdict, however often it is published; until the verdict"
        " is there, the runner keeps it, and publishes it again when none comes: a server that is killed may forget it."
        f" The report may have {REPORT_MAX // 1024} KiB.",
    ),
    Intake(
        "turn.ended",
        TurnEnded,
        Subjects.turn_ended,
        ("pool", "runner", "session"),
        "turns",
        VALIDATION,
        "Say that the agent of a turn stopped. It gets one outcome: settled, a reminder to report, or unreported;"
        " without one, publish it again.",
    ),
    *TASK_INTAKE,
    *ESM_INTAKE,
)
"""What runners publish."""

REQUESTS: Final = (
    Request(
        "report.check",
        CheckReport,
        ReportChecked,
        VALIDATION,
        EVERYBODY,
        "Check a report as the gate would, recording nothing.",
    ),
    Request(
        "report.schema",
        GetSchema,
        ReportSchema,
        VALIDATION,
        EVERYBODY,
        "Get the report's JSON Schema, to declare it as a model's tool.",
    ),
    Request(
        "turn.get",
        GetTurn,
        TurnFound,
        VALIDATION,
        EVERYBODY,
        "Get what is known of a session, and of one attempt or ending of it: the truth that mailboxes only hurry.",
        (ErrorCode.NOT_FOUND,),
    ),
    Request(
        "turn.answer",
        AnswerTurn,
        AnswerRecorded,
        VALIDATION,
        (Caller.PERSON,),
        "Answer the card of a session's current turn. The first answer wins; later ones learn of it.",
        (
            ErrorCode.INVALID,
            ErrorCode.TURN_UNKNOWN,
            ErrorCode.SUPERSEDED,
            ErrorCode.NO_CARD,
            ErrorCode.OPTION_UNKNOWN,
            ErrorCode.ALREADY_ANSWERED,
            ErrorCode.ALREADY_DISMISSED,
        ),
    ),
    Request(
        "turn.dismiss",
        DismissTurn,
        TurnDismissed,
        VALIDATION,
        (Caller.PERSON,),
        "Close the card of a session's current turn without an answer; the prompts that it held back go out.",
        (ErrorCode.TURN_UNKNOWN, ErrorCode.SUPERSEDED, ErrorCode.NO_CARD, ErrorCode.ALREADY_ANSWERED),
    ),
    Request(
        "turn.prompt",
        SendPrompt,
        PromptQueued,
        VALIDATION,
        (Caller.PERSON, Caller.SERVICE),
        "Have a prompt started in a session: held while its card waits, else on its way to the pool at once.",
        (ErrorCode.INVALID, ErrorCode.POOL_MISMATCH, ErrorCode.OVERLOADED),
    ),
    Request(
        "question.ask",
        AskQuestion,
        QuestionAsked,
        VALIDATION,
        (Caller.RUNNER,),
        "Ask a session's user what a model's tool call asks. Asked again, it still waits or is what it came out as.",
        (ErrorCode.INVALID, ErrorCode.MISMATCH, ErrorCode.POOL_MISMATCH, ErrorCode.IDENTITY_MISMATCH),
        by_pool=True,
    ),
    Request(
        "question.resolve",
        ResolveQuestion,
        QuestionOutcome,
        VALIDATION,
        (Caller.PERSON,),
        "Answer a question, or reply to it in chat. The first decision wins; later ones learn of it.",
        (
            ErrorCode.INVALID,
            ErrorCode.BLANK_ANSWER,
            ErrorCode.NO_PENDING,
            ErrorCode.MISMATCH,
            ErrorCode.ALREADY_RESOLVED,
        ),
    ),
    Request(
        "question.reject",
        RejectQuestion,
        QuestionOutcome,
        VALIDATION,
        (Caller.PERSON,),
        "Give a question up without an answer. The first decision wins; later ones learn of it.",
        (ErrorCode.INVALID, ErrorCode.NO_PENDING, ErrorCode.MISMATCH, ErrorCode.ALREADY_RESOLVED),
    ),
    Request(
        "question.get",
        GetQuestion,
        QuestionFound,
        VALIDATION,
        EVERYBODY,
        "Get the question that a session waits for and the outcome of one: the truth that mailboxes only hurry.",
        (ErrorCode.NOT_FOUND,),
    ),
    Request(
        "inbox.list",
        ListInbox,
        InboxPage,
        VALIDATION,
        (Caller.PERSON, Caller.SERVICE),
        "List what waits for a person over all sessions, oldest first, a page at a time.",
    ),
    Request(
        "runner.join",
        JoinRunner,
        RunnerJoined,
        VALIDATION,
        (Caller.RUNNER,),
        "Announce a runner to one of its pools and get the consumers that it may pull from; it may make none itself.",
        (ErrorCode.IDENTITY_MISMATCH, ErrorCode.OVERLOADED),
        by_pool=True,
    ),
    *TASK_REQUESTS,
    *ESM_REQUESTS,
    *SESSION_REQUESTS,
    *DEAD_REQUESTS,
)
"""What can be asked for, by name."""

ASKS: Final = (*TASK_ASKS,)
"""What services ask of runners and others."""

MAILBOX: Final = (
    Mail("verdict", Verdict, "The verdict of an attempt to report, right after it was stored."),
    Mail("ending", EndingVerdict, "What follows from an ending of a turn."),
    Mail("refused", Refusal, "A message that was not taken, and why."),
    Mail("answered", TurnAnswered, "A card of one of the runner's sessions was answered or dismissed."),
    Mail("outcome", QuestionOutcome, "A question that the runner waits for was decided.", "question.get"),
    *ESM_MAILBOX,
)
"""What services put into runners' mailboxes."""

WORK: Final = (
    Work(
        "prompt",
        Prompt,
        Subjects.prompt,
        ("pool", "prompt"),
        "work",
        "A text that should start work in a session. One runner of the pool takes it, by acknowledging it.",
    ),
    *ESM_WORK,
)
"""What pools get to do."""

STATES: Final = (
    State(
        "turns",
        SessionTurns,
        ("session",),
        "Everything that is known of a session's turns, whole in each revision.",
        (
            "turn.report_accepted",
            "turn.report_rejected",
            "turn.report_exhausted",
            "turn.ended",
            "turn.reminder",
            "turn.unreported",
            "turn.answered",
            "turn.dismissed",
            "turn.prompt_held",
            "turn.prompt_released",
            "turn.prompt_sent",
            "turn.inbox_cleared",
        ),
    ),
    State(
        "questions",
        SessionQuestions,
        ("session",),
        "The question that a session waits for and how its last ones came out, whole in each revision.",
        (
            "question.asked",
            "question.moved",
            "question.answered",
            "question.chat",
            "question.cancelled",
            "question.expired",
            "question.settled",
        ),
    ),
    TASK_STATE,
    *ESM_STATES,
    State("inbox", InboxEntry, ("kind", "session"), "What waits for a person; gone when it no longer does."),
)
"""What the buckets hold."""

TIMERS: Final = (
    Timer(QUESTION_TIMER, QuestionDue, "The time of a question that nobody answered has come; its policy decides."),
    *ESM_TIMERS,
)
"""What the server delivers to services at a time of their choice."""

PROGRESS: Final = ESM_PROGRESS
"""What is told beside states."""

PRESENCE: Final = ESM_PRESENCE
"""Who is alive."""

DEAD: Final = DEAD_ROW
"""Where messages go that nothing can be done with."""


def messages() -> tuple[type[Struct], ...]:
    """Return every message of the catalogue once, in the order of the tables."""
    found: dict[type[Struct], None] = {}
    for row in (*INTAKE, *MAILBOX, *WORK, *STATES, *TIMERS, PROGRESS, PRESENCE, DEAD):
        found[row.message] = None
    for request in (*REQUESTS, *ASKS):
        found[request.request] = None
        found[request.reply] = None
    found[ERROR] = None
    return tuple(found)
