"""Fixtures of the supervisor tests."""

from collections.abc import Callable

import pytest

from tests.protocol.esm.scenes import NOW
from turngate_protocol.esm import EsmState, Input, advance, row_of


@pytest.fixture
def follow(request: pytest.FixtureRequest) -> Callable[..., EsmState]:
    """Advance, and make sure that the row which the test is about decided."""

    def step(state: EsmState, message: Input, now: int = NOW) -> EsmState:
        assert row_of(state, message, now).name == request.function.row
        return advance(state, message, now)

    return step
