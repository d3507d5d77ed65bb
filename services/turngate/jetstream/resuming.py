"""Where a reader of events goes on when the server forgot the last ones.

Events are written asynchronously where there is one replica, for they are made of the buckets again: a server that is
killed forgets those of its last moments, takes them from the buckets once more, and may number them otherwise. A
reader that was told them already would miss what has their numbers now. So it remembers the last ones that it was told
by what they are, finds up to which the stream still holds the same, goes on there, and leaves out what it was told.
"""

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Final

from turngate.jetstream.direct import Stored
from turngate_contracts.headers import SOURCE

MOST: Final = 512
"""How many events are remembered: far more than are stored while the server writes once."""


def identity_of(stored: Stored) -> str:
    """Return what an event is, whatever its number: the revision that it was made of, or what it was told as.

    A bucket may have gone back as well, to a backup for instance, and give numbers again: so the body is part of it.
    """
    source = stored.fields.get(SOURCE, "")
    if not source:
        return f"{stored.subject} {stored.fields.get('ce-id', '')}"
    # The stream and the sequence in it; behind them stands how it was taken over.
    return f"{' '.join(source.split(' ', 2)[:2])} {hash(stored.body)}"


def place_of(before: int, told: Iterable[tuple[int, str]], stored: Mapping[int, str], first: int) -> int:
    """Return the number of the last event up to which nothing differs from what was told.

    A number that is missing may be another kind's by now, which this reader is not told; or it has left by its time to
    live, and to go back to it does no harm. One that is there and was not told differs as well.

    Args:
        before: the number after which the telling began; what is returned where all differs.
        told: the numbers and identities of what was told, in order.
        stored: the same of what the stream holds now.
        first: the first number in the stream: those below have left it.
    """
    was = dict(told)
    newest = max(was, default=before)
    place = before
    for number in sorted(number for number in was.keys() | stored.keys() if before < number <= newest):
        if number >= first and stored.get(number) != was.get(number):
            break
        place = number
    return place


class Told:
    """The last events that a reader was told, from the one after `before` on."""

    def __init__(self, before: int) -> None:
        self.before = before
        self._recent: deque[tuple[int, str]] = deque()
        self._again: set[str] = set()

    def is_new(self, stored: Stored) -> bool:
        """Remember an event, and say whether the reader has yet to be told."""
        identity = identity_of(stored)
        self._recent.append((stored.sequence, identity))
        if len(self._recent) > MOST:
            self.before = self._recent.popleft()[0]
        if identity in self._again:
            self._again.discard(identity)
            return False
        return True

    def go_back(self, stored: Iterable[Stored], first: int) -> int:
        """Return the number to go on from, given what the stream holds behind `before` and its first number.

        What was told behind that place is left out when it comes again. It is 0 where so much differs that the stream
        was made anew.
        """
        held = {each.sequence: identity_of(each) for each in stored}
        place = place_of(self.before, self._recent, held, first)
        known = {identity for _, identity in self._recent}
        if held and len(self._recent) == MOST and known.isdisjoint(held.values()):
            place = self.before = 0
        while self._recent and self._recent[-1][0] > place:
            self._again.add(self._recent.pop()[1])
        return place
