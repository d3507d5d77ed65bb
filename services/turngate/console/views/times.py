"""Times as a page shows them: for programs, for people, and how long ago; in UTC until the browser knows better."""

from datetime import UTC, datetime
from typing import Final

from msgspec import Struct

from turngate_protocol.spans import span

_LAST: Final = 253_402_300_799_000
"""The last moment of the year 9999, in ms since the epoch: no calendar here goes on."""


class Time(Struct, frozen=True):
    """A moment: `iso` for programs, `text` for people, `ago` as a length of time; `ms` since the epoch.

    `future` when it is still to come.
    """

    ms: int
    iso: str
    text: str
    ago: str
    future: bool = False


def time(ms: int, now: int) -> Time:
    """Return a moment that has been, as it is seen from `now`, both in ms since the epoch.

    What happened after `now`, or on a host whose clock is ahead, happened just now: it is not still to come.
    """
    return _time(ms, now, future=False)


def due(ms: int | None, now: int) -> Time | None:
    """Return a moment at which something is due, or None where nothing is."""
    return _time(ms, now, future=ms > now) if ms else None


def _time(ms: int, now: int, *, future: bool) -> Time:
    moment = datetime.fromtimestamp(min(max(ms, 0), _LAST) / 1000, UTC)
    iso = moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return Time(ms, iso, moment.strftime("%Y-%m-%d %H:%M:%S UTC"), span(abs(now - ms) if future else now - ms), future)


def optional(ms: int | None, now: int) -> Time | None:
    """Return a moment, or None where there is none."""
    return time(ms, now) if ms else None
