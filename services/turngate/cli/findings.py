"""What a check of `turngate doctor` found."""

from typing import Any, Final

from msgspec import Struct

OK: Final = "ok"
WARN: Final = "warn"
FAIL: Final = "fail"


class Check(Struct, frozen=True, omit_defaults=True):
    """One thing that was looked at.

    Attributes:
        name: what was looked at.
        status: `ok`, `warn` (it works, but look into it) or `fail` (it does not work).
        says: what was found, in one sentence.
        do: what to do about it; empty where nothing is to be done.
        facts: the same as numbers, for scripts.
    """

    name: str
    status: str
    says: str
    do: str = ""
    facts: dict[str, Any] = {}
