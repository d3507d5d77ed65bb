"""Times as a person reads them: on their own clock, and how long ago."""

from datetime import datetime
from typing import Final

_UNITS: Final = ((86_400, "d"), (3_600, "h"), (60, "min"))


def at(ms: int) -> str:
    """Return a time, in ms since the epoch, as date and time on this machine's clock."""
    return datetime.fromtimestamp(ms / 1000).strftime("%Y-%m-%d %H:%M:%S")  # noqa: DTZ006


def clock(text: str) -> str:
    """Return the time of day, on this machine's clock, of an RFC 3339 time; what is none is returned as it is."""
    try:
        return datetime.fromisoformat(text).astimezone().strftime("%H:%M:%S")
    except ValueError:
        return text


def span(ms: int) -> str:
    """Return a length of time in its two greatest units, such as `2 h 5 min`."""
    seconds = max(0, ms) // 1000
    parts = []
    for length, name in _UNITS:
        if seconds >= length:
            parts.append(f"{seconds // length} {name}")
            seconds %= length
    return " ".join(parts[:2]) if parts else f"{seconds} s"
