"""Lengths of time as people read them in lists: in their two greatest units. Pure: what time it is comes in."""

from typing import Final

_UNITS: Final = ((86_400, "d"), (3_600, "h"), (60, "min"))


def span(ms: int) -> str:
    """Return a length of time, given in milliseconds, such as `2 h 5 min` or `12 s`; a negative one is `0 s`."""
    seconds = max(0, ms) // 1000
    parts = []
    for length, name in _UNITS:
        if seconds >= length:
            parts.append(f"{seconds // length} {name}")
            seconds %= length
    return " ".join(parts[:2]) if parts else f"{seconds} s"
