"""Times as a page shows them: for programs, for people, and how long ago; in UTC until the browser knows better."""

from datetime import UTC, datetime
from typing import Final

from msgspec import Struct

from turngate_protocol.spans import span

_LAST: Final = 253_402_300_799_000
"""The last moment of the year 9999, in ms since the epoch: no calendar here goes on."""


class Time(Struct, frozen=True):
    """A moment: `iso` for programs, `text` for people, `ago` as a length of time; `ms` since the epoch."""

    ms: int
    iso: str
    text: str
    ago: str
    future: bool = False


def time(ms: int, now: int) -> Time:
    """Return a moment as it is seen from `now`, both in ms since the epoch."""
    moment = datetime.fromtimestamp(min(max(ms, 0), _LAST) / 1000, UTC)
    iso = moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return Time(ms, iso, moment.strftime("%Y-%m-%d %H:%M:%S UTC"), span(abs(now - ms)), ms > now)


def optional(ms: int | None, now: int) -> Time | None:
    """Return a moment, or None where there is none."""
    return time(ms, now) if ms else None
