"""Sending a dead message out again where it came from, as it was, so that nothing happens twice.

A letter is marked as retrying before its message goes out, and as retried after: whoever marks it sends it, and what a
kill leaves in between is finished later. What goes out a second time changes nothing: its letter is its message id, and
its handler finds in the state what was done before.
"""

import asyncio
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from turngate.deadletter.letters import Found, Letters
from turngate.deadletter.places import Places
from turngate.jetstream.again import save_again
from turngate.jetstream.request import STREAM_LIMIT, JetStreamError, Requester
from turngate_contracts import headers as h
from turngate_contracts.dead import DeadLetter, LetterStatus
from turngate_contracts.errors import ErrorCode, Refusal, Unavailable
from turngate_contracts.ids import is_id

_COPIED: Final = (h.SCHEMA, h.TRACE_PARENT)
_DONE: Final = (LetterStatus.RETRYING, LetterStatus.RETRIED)


class Retrying(Struct, frozen=True):
    """What sending dead messages out again needs."""

    requester: Requester
    letters: Letters
    places: Places

    async def retry(self, letter: str, by: str, why: str) -> tuple[Found, bool]:
        """Send a letter's message out again, unless that was decided before.

        Returns:
            The letter as it is now, and whether this call decided it; still `retrying` where its stream is full.

        Raises:
            LetterUnknown: there is none of this id.
            Refusal: already_resolved, it was dropped; invalid, what is kept of it can't be sent.
            Unavailable: it may be decided or not; ask again.
        """

        def change(there: DeadLetter) -> DeadLetter | None:
            if there.status in _DONE:
                return None
            if there.status is LetterStatus.DROPPED:
                raise _resolved(there)
            self._check(there)
            return replace(there, status=LetterStatus.RETRYING, decided=self.letters.decided(by, why))

        found, changed = await self.letters.decide(letter, change)
        return (await self.finish(found), True) if changed else (found, False)

    async def finish(self, found: Found) -> Found:
        """Send out a letter that is marked as retrying, and mark it as retried; where that fails it stays marked."""
        try:
            sequence = await self._send(found.letter)
        except (JetStreamError, Unavailable):
            return found

        def change(there: DeadLetter) -> DeadLetter | None:
            if there.status is not LetterStatus.RETRYING or there.decided is None:
                return None
            return replace(there, status=LetterStatus.RETRIED, decided=replace(there.decided, sequence=sequence))

        return (await self.letters.decide(found.letter.letter, change))[0]

    async def drop(self, letter: str, by: str, why: str) -> tuple[Found, bool]:
        """Remove a letter's body; results and errors as for `retry`, already_resolved when it was retried."""

        def change(there: DeadLetter) -> DeadLetter | None:
            if there.status is LetterStatus.DROPPED:
                return None
            if there.status in _DONE:
                raise _resolved(there)
            return replace(there, body=b"", status=LetterStatus.DROPPED, decided=self.letters.decided(by, why))

        return await self.letters.decide(letter, change)

    def _check(self, letter: DeadLetter) -> None:
        if self.places.is_bucket(letter.stream):
            return  # the bucket itself holds what goes out
        if len(letter.body) < letter.size:
            raise Refusal(
                ErrorCode.INVALID,
                f"{letter.letter} keeps {len(letter.body)} of {letter.size} bytes, which is another message; drop it,"
                " and have its sender send it again",
                kept=len(letter.body),
                size=letter.size,
            )
        if not self.places.takes(letter.stream, letter.subject) or not all(map(is_id, letter.subject.split("."))):
            raise Refusal(
                ErrorCode.INVALID,
                f"the subject of {letter.letter} is none of {letter.stream}; drop it",
                stream=letter.stream,
            )

    async def _send(self, letter: DeadLetter) -> int:
        if self.places.is_bucket(letter.stream):
            return await save_again(self.requester, letter.stream, self.places.key(letter.stream, letter.subject))
        fields: dict[str, str] = {name: letter.headers[name] for name in _COPIED if name in letter.headers}
        head = h.block({**fields, h.RETRY_OF: letter.first or letter.letter, h.MESSAGE_ID: f"retry.{letter.letter}"})
        if not self.places.is_queue(letter.stream):
            # One message a subject: the dead one still stands there, and is the only one that is removed.
            await self.places.delete(letter.stream, letter.sequence)
        try:
            return (await self.requester.publish(letter.subject, letter.body, head)).seq
        except JetStreamError as error:
            if error.err_code != STREAM_LIMIT or self.places.is_queue(letter.stream):
                raise
            newest = await self.places.newest(letter.stream, letter.subject)
            if newest is None:
                raise
            return newest.sequence  # somebody put it out anew meanwhile


def _resolved(letter: DeadLetter) -> Refusal:
    decided = letter.decided
    by, at = ("nobody", 0) if decided is None else (decided.by, decided.at)
    return Refusal(
        ErrorCode.ALREADY_RESOLVED, f"{letter.letter} was {letter.status} by {by}", status=letter.status, by=by, at=at
    )


async def finish_all(retrying: Retrying, decided_before: int) -> int:
    """Finish the retries that a kill or a full stream left unfinished, and say how many went out."""
    late = await retrying.letters.unfinished(decided_before)
    done = await asyncio.gather(*(retrying.finish(found) for found in late))
    return sum(found.letter.status is LetterStatus.RETRIED for found in done)
