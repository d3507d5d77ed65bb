"""The dead letters as they are stored: found, listed, and decided about with compare-and-set.

A letter's subject holds one message. A decision rolls the subject up into the letter's next revision, so that a dropped
body is gone with it, and of two decisions at once one loses and learns of the other.
"""

from collections.abc import Callable
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from turngate.clock import Clock
from turngate.jetstream.deadletter import letter_head
from turngate.jetstream.direct import Stored, read_newest, read_page
from turngate.jetstream.request import WRONG_SEQUENCE, JetStreamError, Requester
from turngate_contracts import codec
from turngate_contracts.dead import (
    MAX_DEAD_PAGE,
    DeadEntry,
    DeadLetter,
    DeadPage,
    Decided,
    LetterStatus,
    LetterUnknown,
    ListDead,
    stream_of,
)
from turngate_contracts.errors import ErrorCode, InvalidMessage, Refusal, shown
from turngate_contracts.ids import check_id, is_id
from turngate_contracts.subjects import Subjects
from turngate_protocol.text import cut_bytes

MESSAGE_BYTES: Final = 300
"""Bytes of a reason's sentence that a list shows."""
_READ: Final = 50
_SCAN_BYTES: Final = 16 * 1024 * 1024
"""After how many bytes a page ends even where few letters match."""
_TRIES: Final = 5


class Found(Struct, frozen=True):
    """A letter and the sequence of its newest revision."""

    letter: DeadLetter
    revision: int


class Letters:
    """The dead letters of one namespace."""

    def __init__(self, requester: Requester, subjects: Subjects, clock: Clock) -> None:
        self.subjects = subjects
        self._requester = requester
        self._clock = clock
        self._stream = subjects.stream("dead")

    async def find(self, letter: str) -> Found:
        """Return a letter.

        Raises:
            LetterUnknown: there is none of this id.
            Unavailable: the stream did not answer.
        """
        check_id("letter", letter)
        origin = stream_of(letter)
        if not is_id(origin):
            raise LetterUnknown(letter)
        found = await read_newest(self._requester, self._stream, [self.subjects.dead_letter(origin, letter)])
        if not found:
            raise LetterUnknown(letter)
        return _found(found[0])

    async def page(self, wanted: ListDead) -> DeadPage:
        """Return letters that match, the longest unchanged first.

        Raises:
            Refusal: invalid_argument, a filter or the cursor is none.
            Unavailable: the stream did not answer.
        """
        _check(wanted)
        limit = max(1, min(wanted.limit, MAX_DEAD_PAGE))
        entries: list[DeadEntry] = []
        cursor, more, scanned = wanted.cursor, True, 0
        while more and scanned < _SCAN_BYTES:
            found, more = await read_page(
                self._requester, self._stream, cursor, _READ, self.subjects.dead_letters(wanted.stream)
            )
            for at, stored in enumerate(found):
                cursor = stored.sequence
                scanned += len(stored.body)
                entry = self.entry(_found(stored))
                if matches(entry, wanted):
                    entries.append(entry)
                if len(entries) == limit:
                    return DeadPage(tuple(entries), cursor, more or at + 1 < len(found))
        return DeadPage(tuple(entries), cursor, more)

    async def unfinished(self, decided_before: int) -> list[Found]:
        """Return the letters that were to go out again before a time, in ms since the epoch, and have not."""
        wanted = ListDead(limit=MAX_DEAD_PAGE, status=LetterStatus.RETRYING)
        found: list[Found] = []
        more = True
        while more:
            page = await self.page(wanted)
            late = [e for e in page.entries if e.decided is not None and e.decided.at < decided_before]
            found += [await self.find(entry.letter) for entry in late]
            wanted, more = replace(wanted, cursor=page.cursor), page.more
        return found

    async def decide(self, letter: str, change: Callable[[DeadLetter], DeadLetter | None]) -> tuple[Found, bool]:
        """Save what `change` makes of a letter, again with what another decision made of it meanwhile.

        Returns:
            The letter as it is now, and whether this call changed it; None from `change` leaves it as it is.

        Raises:
            LetterUnknown: there is none of this id.
            Refusal: overloaded, others decide about it all the time; or what `change` raises.
            Unavailable: it may be saved or not; decide again.
        """
        for _ in range(_TRIES):
            there = await self.find(letter)
            changed = change(there.letter)
            if changed is None:
                return there, False
            try:
                return Found(changed, await self._save(changed, there.revision)), True
            except JetStreamError as error:
                if error.err_code not in WRONG_SEQUENCE:
                    raise
        raise Refusal(ErrorCode.OVERLOADED, f"others decide about {letter}; try again", retry_after_ms=1_000)

    def decided(self, by: str, why: str, sequence: int = 0) -> Decided:
        """Return a decision that is made now."""
        return Decided(by, self._clock(), why, sequence)

    def entry(self, found: Found) -> DeadEntry:
        """Return what a list shows of a letter."""
        letter = found.letter
        return DeadEntry(
            letter.letter,
            letter.stream,
            letter.sequence,
            letter.subject,
            letter.reason.code,
            cut_bytes(letter.reason.message, MESSAGE_BYTES),
            letter.deliveries,
            letter.at,
            found.revision,
            letter.size,
            self._session(letter),
            letter.found_by,
            letter.status,
            letter.decided,
            letter.first,
        )

    async def _save(self, letter: DeadLetter, revision: int) -> int:
        subject = self.subjects.dead_letter(letter.stream, letter.letter)
        head = letter_head(letter, revision, roll_up=True)
        return (await self._requester.publish(subject, codec.encode(letter), head)).seq

    def _session(self, letter: DeadLetter) -> str:
        s = self.subjects
        if letter.stream in (s.stream("turns"), s.stream("tasks"), s.stream("esm")):
            return letter.subject.rpartition(".")[2]
        bucket = s.bucket_of(letter.stream)
        if bucket and bucket != "inbox":
            return s.key_of(bucket, letter.subject).partition(".")[0]
        return ""


def matches(entry: DeadEntry, wanted: ListDead) -> bool:
    """Say whether a letter passes a list's filters."""
    return (
        wanted.stream in ("", entry.stream)
        and wanted.reason in ("", entry.reason)
        and wanted.session in ("", entry.session)
        and wanted.status in ("", entry.status)
    )


def _found(stored: Stored) -> Found:
    try:
        return Found(codec.decode(stored.body, DeadLetter, "a DeadLetter"), stored.sequence)
    except InvalidMessage as error:
        raise InvalidMessage(f"the dead letter at {stored.sequence} can't be read: {error.message}") from None


def _check(wanted: ListDead) -> None:
    if wanted.cursor < 0:
        raise _invalid("cursor", wanted.cursor, "0, or what a page gave")
    if wanted.stream and not is_id(wanted.stream):
        raise _invalid("stream", wanted.stream, "the name of a stream, such as TG_TURNS")
    if wanted.reason and wanted.reason not in set(ErrorCode):
        raise _invalid("reason", wanted.reason, "an error code, such as invalid_message")
    if wanted.session and not is_id(wanted.session):
        raise _invalid("session", wanted.session, "a session's id")
    if wanted.status and wanted.status not in set(LetterStatus):
        raise _invalid("status", wanted.status, ", ".join(LetterStatus))


def _invalid(field: str, value: object, right: str) -> Refusal:
    return Refusal(
        ErrorCode.INVALID_ARGUMENT,
        f"{field} {shown(value)} finds nothing; use {right}",
        field=field,
        value=shown(value),
    )
