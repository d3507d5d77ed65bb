"""The shape of a report: its records, vocabularies and limits.

The rule book is the end-of-turn report of kvit-coder (its Go package `report`): a turn ends with a status, one
sentence and typed blocks instead of free prose. A block is one flat record, not a tagged union, so that every problem
of a report can be named at once. Each vocabulary and each "type X requires field Y" stands here once; the validator and
the JSON Schema both read it. Nothing is checked here: a decoded report may hold any text in any field.
"""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from msgspec import Struct, field

REPORT_MAX: Final = 768 * 1024
"""The largest report, in bytes as sent."""
DEPTH_MAX: Final = 200
"""How deep a report's JSON may nest, unknown fields included: every reader's parser must survive it."""
HEADLINE_MAX: Final = 160
"""The longest headline, in characters."""
SUMMARY_MAX: Final = 240
"""The longest block summary, in characters."""
DETAILS_MAX: Final = 32 * 1024
"""The largest details, in bytes."""
LABEL_MAX: Final = 60
"""The longest option label, in characters."""
TEXT_MAX: Final = 200
"""The longest description or consequence of an option, in characters."""
PREVIEW_MAX: Final = 4 * 1024
"""The largest preview of an option, in bytes."""
INSTRUCTION_MAX: Final = 1024
"""The largest instruction of a dispatch option, in bytes."""
ID_MAX: Final = 64
"""The longest id of a block or an option, in characters."""
ID_PATTERN: Final = r"[a-z0-9][a-z0-9-]{0,63}"
"""What the whole of a block's or an option's id has to match."""
OPTIONS_MIN: Final = 2
"""The fewest options of a block that asks."""
OPTIONS_MAX: Final = 6
"""The most options of a block that asks."""
BLOCKS_MAX: Final = 20
"""The most blocks of a report where the rules of the turn set no limit of their own."""
JUDGED_BLOCKS: Final = 1_000
"""The most blocks of a report that are read: as many as an operator may allow."""
JUDGED_OPTIONS: Final = 20
"""The most options of a block that are read."""
CHOICES_MAX: Final = 9
"""How many options of one report get a number, which is how many digit keys there are."""


class Status(StrEnum):
    """What a turn amounted to (`task_status`)."""

    COMPLETED = "completed"
    COMPLETED_WITH_NOTES = "completed_with_notes"
    NEEDS_ACTION = "needs_action"
    BLOCKED = "blocked"
    FAILED = "failed"


class BlockType(StrEnum):
    """What a block is about, which decides the fields it must have."""

    CHANGE = "change"
    FINDING = "finding"
    VERIFICATION = "verification"
    WARNING = "warning"
    DECISION = "decision"
    QUESTION = "question"
    BLOCKED = "blocked"
    NEXT_STEP = "next_step"
    UNCLASSIFIED = "unclassified"


class VerifyStatus(StrEnum):
    """How a check went (`status` of a verification block)."""

    PASSED = "passed"
    FAILED = "failed"
    PARTIAL = "partial"
    NOT_RUN = "not_run"


class Level(StrEnum):
    """How much a finding matters or a warning threatens, least first."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    CRITICAL = "critical"


class Effect(StrEnum):
    """What picking an option does: start a turn, fill the composer, or record a stop."""

    DISPATCH = "dispatch"
    COLLECT = "collect"
    RESOLVE = "resolve"


class ResponseType(StrEnum):
    """How a block that asks is answered: by one option, with free text always allowed beside it."""

    SINGLE = "single"


TYPE_ALIASES: Final[Mapping[str, str]] = MappingProxyType(
    {"check": BlockType.VERIFICATION.value, "next": BlockType.NEXT_STEP.value}
)
"""Names that newer runners use for a block type, and what normalising makes of them."""


class Required(NamedTuple):
    """One field that a block type requires, and the values it may take (None: any text)."""

    name: str
    allowed: tuple[str, ...] | None = None


class Shape(NamedTuple):
    """What a block type requires beyond id and summary."""

    required: tuple[Required, ...] = ()
    interactive: bool = False
    recommends: bool = False


_LEVELS: Final = tuple(level.value for level in Level)

SHAPES: Final[Mapping[str, Shape]] = MappingProxyType(
    {
        BlockType.CHANGE.value: Shape(),
        BlockType.FINDING.value: Shape(
            (Required("impact"), Required("importance", _LEVELS), Required("blocks_current_task"))
        ),
        BlockType.VERIFICATION.value: Shape((Required("status", tuple(status.value for status in VerifyStatus)),)),
        BlockType.WARNING.value: Shape((Required("severity", _LEVELS), Required("impact"))),
        BlockType.DECISION.value: Shape(interactive=True, recommends=True),
        BlockType.QUESTION.value: Shape((Required("question"),), interactive=True),
        BlockType.BLOCKED.value: Shape(
            (Required("blocker"), Required("required_action")), interactive=True, recommends=True
        ),
        BlockType.NEXT_STEP.value: Shape(interactive=True, recommends=True),
        BlockType.UNCLASSIFIED.value: Shape((Required("reason_unclassified"),)),
    }
)
"""What each block type requires: the one definition that the validator and the schema read."""

INTERACTIVE: Final = frozenset(name for name, shape in SHAPES.items() if shape.interactive)
"""The block types that ask a person for something."""

# omit_defaults drops only a default that msgspec can recognise. A factory of our own is not recognised, so the fields
# that every record must have stay in the wire form when they are empty.


def _required() -> str:
    return ""


class Option(Struct, frozen=True, gc=False, omit_defaults=True):
    """One way forward that an interactive block offers."""

    id: str = field(default_factory=_required)
    label: str = field(default_factory=_required)
    description: str = ""
    consequence: str = ""
    preview: str = ""
    effect: str = field(default_factory=_required)
    instruction: str = ""


class Block(Struct, frozen=True, gc=False, omit_defaults=True):
    """One typed item of a report; `type` says which fields it needs.

    The texts come first, so that normalising can take them all as one slice.
    """

    type: str = field(default_factory=_required)
    id: str = field(default_factory=_required)
    summary: str = field(default_factory=_required)
    impact: str = ""
    recommendation: str = ""
    details: str = ""
    importance: str = ""
    status: str = ""
    evidence: str = ""
    limitation: str = ""
    required_to_verify: str = ""
    severity: str = ""
    question: str = ""
    blocker: str = ""
    required_action: str = ""
    response_type: str = ""
    recommendation_reason: str = ""
    reason_unclassified: str = ""
    suggested_type: str = ""
    related_files: list[str] = field(default_factory=list)
    blocks_current_task: bool | None = None
    options: list[Option] = field(default_factory=list)

    @property
    def interactive(self) -> bool:
        """Whether this block asks a person for something, and so can be answered from the card."""
        return self.type in INTERACTIVE

    @property
    def ran_nothing(self) -> bool:
        """Whether this block is a verification that was not run."""
        return self.type == BlockType.VERIFICATION and self.status == VerifyStatus.NOT_RUN


def no_blocks() -> list[Any]:
    """Return the blocks of a report that has none."""
    return []


class Report(Struct, frozen=True, gc=False, omit_defaults=True):
    """What a turn ends with: its status, one sentence, and the blocks behind that sentence."""

    task_status: str = field(default_factory=_required)
    headline: str = field(default_factory=_required)
    blocks: list[Block] = field(default_factory=no_blocks)


class RecoveredReport(Report, frozen=True, gc=False, omit_defaults=True):
    """A report whose bytes the typed decode refused, for instance because of a null.

    Normalising makes a plain report of it, which is another object: so nobody keeps bytes that the next reader would
    stumble over.
    """
