"""Which texts may be ids: an id becomes part of subjects, keys and headers, so it holds no wildcard and no dot."""

import re
from typing import Final

from turngate_contracts.errors import InvalidId

MAX_ID: Final = 128
"""Longest id of a session, task, runner, pool or caller, in characters."""
_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,128}", re.ASCII)
_NAMESPACE: Final = re.compile(r"[a-z][a-z0-9]{0,30}", re.ASCII)


def is_id(value: str) -> bool:
    """Say whether `value` is an id: 1 to 128 of A-Z, a-z, 0-9, `_` and `-`."""
    return _ID.fullmatch(value) is not None


def check_id(field: str, value: str) -> str:
    """Return `value` when it is an id.

    Raises:
        InvalidId: it is not; the error names the field and the value.
    """
    if not isinstance(value, str) or _ID.fullmatch(value) is None:
        raise InvalidId(field, value)
    return value


def check_namespace(value: str) -> str:
    """Return `value` when it can prefix every subject and stream of a system: 1 to 31 lower-case letters and digits.

    Raises:
        InvalidId: it can not.
    """
    if _NAMESPACE.fullmatch(value) is None:
        raise InvalidId("namespace", value, "1 to 31 lower-case letters and digits, beginning with a letter")
    return value
