"""Times as a person reads them: on their own clock, and how long ago."""

from datetime import datetime


def at(ms: int) -> str:
    """Return a time, in ms since the epoch, as date and time on this machine's clock."""
    return datetime.fromtimestamp(ms / 1000).strftime("%Y-%m-%d %H:%M:%S")  # noqa: DTZ006


def clock(text: str) -> str:
    """Return the time of day, on this machine's clock, of an RFC 3339 time; what is none is returned as it is."""
    try:
        return datetime.fromisoformat(text).astimezone().strftime("%H:%M:%S")
    except ValueError:
        return text
