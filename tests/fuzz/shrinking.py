"""A finding made small: parts are taken out for as long as the same promise is broken at the same place."""

import contextlib
import io
import time
import traceback
from collections.abc import Callable

Run = Callable[[bytes], None]


def fault_of(run: Run, data: bytes) -> str:
    """Return which promise the input breaks, and where; nothing for a good input."""
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            run(data)
    except Exception as error:  # noqa: BLE001  whatever it is
        last = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__} in {last.name}, {last.filename}:{last.lineno}"
    return ""


def shrunk(run: Run, data: bytes, seconds: float = 10.0) -> bytes:
    """Return a part of the input, as small as it was made in so many seconds, with the same fault."""
    fault, until = fault_of(run, data), time.monotonic() + seconds
    size = max(len(data) // 2, 1)
    while fault and data:
        at, before = 0, len(data)
        while at < len(data) and time.monotonic() < until:
            shorter = data[:at] + data[at + size :]
            if fault_of(run, shorter) == fault:
                data = shorter
            else:
                at += size
        if time.monotonic() >= until or (size == 1 and len(data) == before):
            break
        size = max(size // 2, 1)
    return data
