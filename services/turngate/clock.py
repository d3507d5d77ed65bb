"""The clock of a process. Everything below services gets the time as an argument from here."""

import time
from collections.abc import Callable

Clock = Callable[[], int]
"""Returns ms since the epoch."""


def system_clock(offset_ms: int = 0) -> Clock:
    """Return the machine's clock, moved by `offset_ms`: tests show with it that a wrong clock decides nothing."""

    def now() -> int:
        return time.time_ns() // 1_000_000 + offset_ms

    return now
