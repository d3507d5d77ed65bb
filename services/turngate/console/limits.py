"""How often a log-in may be tried, and how many streams may be open: counted here, bounded in memory."""

from collections import OrderedDict
from collections.abc import Callable
from typing import Final

WINDOW_S: Final = 60.0
PER_ADDRESS: Final = 10
"""Wrong tokens that one address may show within the window."""
IN_ALL: Final = 100
"""Wrong tokens that all addresses together may show within the window; from then on only known addresses may try."""
REMEMBERED: Final = 10_000
"""Addresses that are remembered; the longest silent one is forgotten first."""


class Attempts:
    """The wrong tokens of the last minute, by address and in all."""

    def __init__(self, clock: Callable[[], float], per_address: int = PER_ADDRESS, in_all: int = IN_ALL) -> None:
        """Count with a clock that gives seconds and never goes back."""
        self._clock = clock
        self._per_address = per_address
        self._in_all = in_all
        self._failures: OrderedDict[str, list[float]] = OrderedDict()
        # Where right tokens came from: strangers who try many must not keep those out who have one.
        self._known: OrderedDict[str, None] = OrderedDict()
        self._all: list[float] = []

    def wait_s(self, address: str) -> int:
        """Return after how many seconds this address may try again; 0 for now."""
        since = self._clock() - WINDOW_S
        self._all = [at for at in self._all if at > since]
        own = [at for at in self._failures.get(address, ()) if at > since]
        waits = []
        if len(own) >= self._per_address:
            waits.append(own[-self._per_address] - since)
        if len(self._all) >= self._in_all and address not in self._known:
            waits.append(self._all[-self._in_all] - since)
        return int(max(waits)) + 1 if waits else 0

    def failed(self, address: str) -> None:
        """Count a wrong token."""
        now = self._clock()
        own = self._failures.pop(address, [])
        self._failures[address] = [*own[-self._per_address + 1 :], now]
        self._all = [*self._all[-self._in_all + 1 :], now]
        while len(self._failures) > REMEMBERED:
            self._failures.popitem(last=False)

    def succeeded(self, address: str) -> None:
        """Forget the wrong tokens of an address that has a right one, and remember that it has."""
        self._failures.pop(address, None)
        self._known[address] = None
        self._known.move_to_end(address)
        while len(self._known) > REMEMBERED:
            self._known.popitem(last=False)
