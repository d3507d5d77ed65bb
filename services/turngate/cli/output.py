"""What a command prints for programs: JSON in ASCII, one value a line, that no terminal can be harmed by.

Values may hold raw JSON that a model wrote. It is not decoded for this (its numbers may be too big to), only
re-spaced and escaped.
"""

import re
import sys
from typing import Any, Final

_UNSAFE: Final = re.compile("[^ -~]")


def print_json(value: Any, *, indent: bool = False) -> None:
    """Print a Struct or plain value as JSON: on one line, or indented for people."""
    text = to_json(value, indent=indent)
    sys.stdout.write(f"{text}\n")


def to_json(value: Any, *, indent: bool = False) -> str:
    """Return a Struct or plain value as JSON in ASCII without control characters."""
    import msgspec

    # The formatter respaces raw JSON too, which may have line breaks of its own between its values.
    data = msgspec.json.format(msgspec.json.encode(value), indent=2 if indent else -1)
    return "\n".join(_UNSAFE.sub(_escape, line) for line in data.decode("utf-8", "surrogatepass").split("\n"))


def _escape(match: "re.Match[str]") -> str:
    code = ord(match[0])
    if code <= 0xFFFF:
        return f"\\u{code:04x}"
    code -= 0x10000
    return f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"
