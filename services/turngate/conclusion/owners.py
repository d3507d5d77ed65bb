"""Whose sessions are: a session belongs to the pool that first used it, which its turns name.

A pool that was found is remembered, so that a session with many tasks is looked up once. One that does not fit is
looked up again: a session that was forgotten after months may have begun anew elsewhere.
"""

from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import Final

from msgspec import Struct

from turngate.jetstream.store import Entry, Store
from turngate_contracts import codec
from turngate_contracts.errors import TurngateError

KEPT: Final = 10_000
"""Most sessions that are remembered."""

OnOwner = Callable[[str | Exception], None]


class _Owner(Struct):
    """The part of a session's turns that says whose it is."""

    pool: str


class Owners:
    """Finds the pools of sessions."""

    def __init__(self, turns: Store) -> None:
        self._turns = turns
        self._known: OrderedDict[str, str] = OrderedDict()
        self._waiting: dict[str, list[OnOwner]] = {}

    def find(self, session: str, expected: str, on_owner: OnOwner) -> None:
        """Have `on_owner` called with the pool of a session, empty where it has no turns yet, or with what failed.

        It is called at once where the pool that is expected is known to be right; those of one session are called in
        their order.
        """
        waiting = self._waiting.get(session)
        if waiting is not None:
            waiting.append(on_owner)
        elif self._known.get(session) == expected:
            on_owner(expected)
        else:
            self._waiting[session] = [on_owner]
            self._turns.load_nowait(session, partial(self._found, session))

    def _found(self, session: str, entry: Entry | Exception) -> None:
        owner = _owner_of(entry)
        if isinstance(owner, str) and owner:
            self._known[session] = owner
            if len(self._known) > KEPT:
                self._known.popitem(last=False)
        for on_owner in self._waiting.pop(session):
            on_owner(owner)


def _owner_of(entry: Entry | Exception) -> str | Exception:
    if isinstance(entry, Exception):
        return entry
    if entry.value is None:
        return ""
    try:
        return codec.decode(entry.value, _Owner, "a session's state").pool
    except TurngateError as error:
        return error
