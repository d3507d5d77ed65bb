"""The messages of dead letters: what is kept of a message that nothing can be done with, and what people do with it.

As those of `messages`: frozen, growing only by fields with defaults, times in ms since the epoch. A letter has a
subject of its own, and each decision about it is the subject's next message, saved with compare-and-set: who retried or
dropped it stays known. A dropped letter loses its body and keeps everything else.
"""

from enum import StrEnum
from hashlib import sha256
from typing import Final

from msgspec import Struct

from turngate_contracts.errors import ErrorBody, ErrorCode, Refusal

MAX_WHY: Final = 1_000
"""Most characters of a person's words on why."""
MAX_DEAD_PAGE: Final = 500
"""Most letters that one page holds."""


class FoundBy(StrEnum):
    """Who gave a message up: its handler, the loop that saw it kill processes, an advisory, or the reaper."""

    HANDLER = "handler"
    LOOP = "loop"
    ADVISORY = "advisory"
    REAPER = "reaper"


class LetterStatus(StrEnum):
    """What became of a letter. One that is `retrying` was decided about, and goes out again for certain."""

    WAITING = "waiting"
    RETRYING = "retrying"
    RETRIED = "retried"
    DROPPED = "dropped"


class Decided(Struct, frozen=True, omit_defaults=True):
    """Who decided about a letter, when and why; `sequence` is what a retried message got in its stream."""

    by: str
    at: int
    why: str = ""
    sequence: int = 0


class DeadLetter(Struct, frozen=True, omit_defaults=True):
    """A message that nothing can be done with. `body` is what it was, `reason` why it is here.

    `stream`, `sequence` and `subject` are where it came from, `deliveries` how often it was delivered. `body` is cut to
    what fits; `size` is how many bytes there were. `headers` are those that matter. `first` is the letter whose retry
    this message was.
    """

    stream: str
    sequence: int
    subject: str
    reason: ErrorBody
    deliveries: int
    at: int
    body: bytes = b""
    letter: str = ""
    size: int = 0
    headers: dict[str, str] = {}
    consumer: str = ""
    found_by: FoundBy = FoundBy.HANDLER
    status: LetterStatus = LetterStatus.WAITING
    decided: Decided | None = None
    first: str = ""


class ListDead(Struct, frozen=True, omit_defaults=True):
    """Ask for dead letters, the longest unchanged first; `cursor` is the last page's, the other fields are filters."""

    cursor: int = 0
    limit: int = 50
    stream: str = ""
    reason: str = ""
    session: str = ""
    status: str = ""


class DeadEntry(Struct, frozen=True, omit_defaults=True):
    """What a list shows of a letter; `message` is its reason's sentence, cut; `revision` the newest decision's."""

    letter: str
    stream: str
    sequence: int
    subject: str
    reason: ErrorCode
    message: str
    deliveries: int
    at: int
    revision: int
    size: int = 0
    session: str = ""
    found_by: FoundBy = FoundBy.HANDLER
    status: LetterStatus = LetterStatus.WAITING
    decided: Decided | None = None
    first: str = ""


class DeadPage(Struct, frozen=True, omit_defaults=True):
    """A page of dead letters. Ask again with `cursor` while `more`, also after a page without entries."""

    entries: tuple[DeadEntry, ...]
    cursor: int = 0
    more: bool = False


class GetDead(Struct, frozen=True):
    """Ask for one dead letter with its body."""

    letter: str


class DeadFound(Struct, frozen=True):
    """A dead letter at `revision`. Its body is what a stranger or a model wrote: show it escaped, or as hex."""

    letter: DeadLetter
    revision: int


class RetryDead(Struct, frozen=True, omit_defaults=True):
    """Have a dead message published again where it came from, as it was; a letter is retried once."""

    letter: str
    why: str = ""


class DropDead(Struct, frozen=True, omit_defaults=True):
    """Have a letter's body removed; who dropped it and why is kept."""

    letter: str
    why: str = ""


class DeadDecided(Struct, frozen=True, omit_defaults=True):
    """What became of the letter; `already` when that was decided before, perhaps by somebody else: `decided` says."""

    entry: DeadEntry
    already: bool = False


class LetterUnknown(Refusal):
    """No letter has this id, or it has left the stream."""

    def __init__(self, letter: str) -> None:
        super().__init__(
            ErrorCode.NOT_FOUND,
            f"no dead letter has the id {letter}; `turngate dead list` shows those that there are",
            letter=letter,
        )


def letter_id(stream: str, sequence: int, subject: str, body: bytes) -> str:
    """Return the id of a message's letter: found twice it is the same, and so is no other message's.

    The digest tells it from a message that got the same sequence after its stream was made anew.
    """
    digest = sha256(f"{subject}\n".encode() + body).hexdigest()[:8]
    return f"{stream}-{sequence}-{digest}"


def stream_of(letter: str) -> str:
    """Return the stream that a letter's id names; empty when it is no letter's id."""
    parts = letter.rsplit("-", 2)
    return parts[0] if len(parts) == 3 else ""


DEAD_SCHEMAS: Final[dict[type[Struct], str]] = {
    DeadLetter: "dead_letter.v1",
    ListDead: "list_dead.v1",
    DeadPage: "dead_page.v1",
    GetDead: "get_dead.v1",
    DeadFound: "dead_found.v1",
    RetryDead: "retry_dead.v1",
    DropDead: "drop_dead.v1",
    DeadDecided: "dead_decided.v1",
}
"""The name and version of every message of dead letters; `messages.SCHEMAS` holds them too."""
