"""The data of the turn gate: what is known of one session's turns.

One `SessionTurns` is one value of the bucket `turns`, saved whole at each change, so that a reader of any revision
needs no other. It holds the current turn in full and the last sixteen as summaries. Source: `spec/report.md`, "The
turn gate". Nothing here decides anything; `turn` and `answering` do.
"""

from enum import StrEnum
from typing import Final

from msgspec import Raw, Struct

from turngate_protocol.cause import Cause
from turngate_protocol.report.order import Choice
from turngate_protocol.report.problems import Problem

MAX_REPAIRS: Final = 3
"""How often a rejected report may be repaired in one turn; the next rejection exhausts the turn."""
MAX_REMINDERS: Final = 2
"""How often a turn that owes a report is reminded before it ends unreported."""
MAX_ENDINGS: Final = 32
"""How often a turn may end; an agent that stops more often begins a new one."""
HISTORY_TURNS: Final = 16
"""How many earlier turns a session remembers with their verdicts."""
MAX_PROBLEMS: Final = 200
"""How many problems a verdict carries; their full count is always given."""
MAX_HELD: Final = 64
"""How many prompts a session holds back or has on their way at once."""
HELD_BYTES: Final = 1024 * 1024
"""Most bytes that they take as JSON, where a control character takes six."""
SENT_IDS: Final = 64
"""How many ids of prompts that were handed over a session remembers."""
PROMPT_BYTES: Final = 16 * 1024
"""Longest text of a prompt, in UTF-8 bytes."""


NO_REPORT: Final = Raw()
"""Stands for "no report" in a field of raw JSON; only this very object is left out on the wire."""


class Mode(StrEnum):
    """Which turns owe a report."""

    OFF = "off"
    MUTATING = "mutating"
    TOOLS = "tools"
    ALWAYS = "always"


class Phase(StrEnum):
    """Where a turn stands. `accepted`, `exhausted` and `unreported` are final for its reports."""

    OPEN = "open"
    REJECTED = "rejected"
    ACCEPTED = "accepted"
    EXHAUSTED = "exhausted"
    ENDED = "ended"
    UNREPORTED = "unreported"


class Outcome(StrEnum):
    """What became of one attempt to report."""

    ACCEPTED = "accepted"
    REJECTED = "rejected"
    EXHAUSTED = "exhausted"


class EndingOutcome(StrEnum):
    """What became of one ending of a turn."""

    SETTLED = "settled"
    REMINDER = "reminder"
    UNREPORTED = "unreported"


class AttemptVerdict(Struct, frozen=True, omit_defaults=True, gc=False):
    """The one verdict of an attempt of the current turn. `digest` tells a repeat from other content."""

    attempt: int
    digest: str
    outcome: Outcome
    at: int
    problems: tuple[Problem, ...] = ()
    problem_count: int = 0
    buried_proposal: bool = False


class Ending(Struct, frozen=True, omit_defaults=True, gc=False):
    """The one outcome of the `ending`-th time the turn ended; `at` in ms since the epoch."""

    ending: int
    outcome: EndingOutcome
    at: int


class Answer(Struct, frozen=True, omit_defaults=True, gc=False):
    """The one answer to a card: the option, who picked it, and the text beside it. `op` recognises a repeat."""

    block: str
    option: str
    number: int
    label: str
    effect: str
    actor: str
    at: int
    op: str = ""
    text: str = ""
    prompt: str = ""
    editor_text: str = ""


class Dismissal(Struct, frozen=True, omit_defaults=True, gc=False):
    """A card that a person closed without an answer."""

    actor: str
    at: int
    op: str = ""


class Prompt(Struct, frozen=True, omit_defaults=True, gc=False):
    """A text that should start work in a session; `id` is unique for ever, so that sending it twice sends it once."""

    id: str
    session: str
    text: str
    kind: str
    created_at: int
    turn: int = 0
    actor: str = ""


class Turn(Struct, frozen=True, omit_defaults=True, gc=False):
    """The current turn of a session. `report` is the accepted report, normalised, as JSON."""

    turn: int
    began_at: int
    runner: str
    phase: Phase = Phase.OPEN
    mutated: bool = False
    used_tools: bool = False
    attempts: tuple[AttemptVerdict, ...] = ()
    endings: tuple[Ending, ...] = ()
    rejections: int = 0
    reminders: int = 0
    report: Raw = NO_REPORT
    choices: tuple[Choice, ...] = ()
    answer: Answer | None = None
    dismissal: Dismissal | None = None


class PastAttempt(Struct, frozen=True, omit_defaults=True, gc=False):
    """An attempt of an earlier turn: the verdict without its sentences. `problems` are (path, code) pairs."""

    attempt: int
    digest: str
    outcome: Outcome
    at: int
    problems: tuple[tuple[str, str], ...] = ()
    problem_count: int = 0
    buried_proposal: bool = False


class PastTurn(Struct, frozen=True, omit_defaults=True, gc=False):
    """An earlier turn: how it ended, its verdicts, and which option answered it."""

    turn: int
    phase: Phase
    began_at: int
    attempts: tuple[PastAttempt, ...] = ()
    endings: tuple[Ending, ...] = ()
    answer: Answer | None = None


class SessionTurns(Struct, frozen=True, omit_defaults=True, gc=False):
    """Everything the gate knows of one session; each revision is a full snapshot.

    `held` waits behind an unanswered card; `outgoing` has been released and must still be handed to the pool; `sent`
    are the last ids that were;
    `listed` says that the inbox may show the session; `op` is the operation that made this revision, set when it is
    saved.
    """

    session: str
    pool: str
    current: Turn
    cause: Cause
    op: str = ""
    history: tuple[PastTurn, ...] = ()
    held: tuple[Prompt, ...] = ()
    outgoing: tuple[Prompt, ...] = ()
    listed: bool = False
    sent: tuple[str, ...] = ()

    @property
    def waiting(self) -> bool:
        """Whether a card of this session waits for a person: it asks something and nobody answered or dismissed it."""
        turn = self.current
        return bool(turn.choices) and turn.answer is None and turn.dismissal is None
