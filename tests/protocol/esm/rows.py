"""Which row of the continuation table a test is about."""

from collections.abc import Callable
from typing import Any

Test = Callable[..., Any]

COVERED: set[str] = set()
"""The rows that have a test, as far as their modules are imported."""


def row(name: str) -> Callable[[Test], Test]:
    """Say which row of the table a test is about."""

    def mark(test: Test) -> Test:
        COVERED.add(name)
        test.row = name  # type: ignore[attr-defined]
        return test

    return mark
