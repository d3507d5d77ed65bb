"""The tutorial of `tests/fundamentals`, all of it, where everybody has an identity and nobody may do more than it can.

Each service is on a connection of its own, with its own key; so are runners and people.
"""

import types
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from tests.fundamentals import (
    test_1_publish,
    test_2_reject_and_repair,
    test_3_end_without_a_report,
    test_4_answer,
    test_5_follow_events,
    test_6_ask,
    test_7_delegate,
    test_8_objective,
)
from tests.running import System, running
from tests.secured import Secured, secured
from tests.supervised import Supervised, supervising
from turngate_contracts.permissions import Kind

CHAPTERS: tuple[types.ModuleType, ...] = (
    test_1_publish,
    test_2_reject_and_repair,
    test_3_end_without_a_report,
    test_4_answer,
    test_5_follow_events,
    test_6_ask,
    test_7_delegate,
    test_8_objective,
)
for _chapter in CHAPTERS:
    for _name, _test in list(vars(_chapter).items()):
        if _name.startswith("test_") and isinstance(_test, types.FunctionType):
            globals()[f"test_secured_{_chapter.__name__.rpartition('test_')[2]}_{_name[5:]}"] = _test


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    with secured(tmp_path_factory.mktemp("secured")) as made:
        for runner in ("runner-1", "hand-1"):
            made.directory.add(runner, Kind.RUNNER, ["pool-1", "web"])
        yield made
        refused = [line for line in made.server.log_file.read_text().splitlines() if "Violation" in line]
        assert refused == [], "everybody's list is long enough for all that they did"


@pytest.fixture
async def inside(server: Secured, namespace: str) -> Secured:
    """The server with everybody's permissions in a fresh namespace."""
    await server.move_to(namespace)
    return server


@pytest.fixture
async def system(inside: Secured, namespace: str) -> AsyncIterator[System]:
    more: dict[str, Any] = {"conclusion": True, "stat_timeout_ms": 15_000}
    async with running(inside.server.url, namespace, login=inside.login, **more) as made:
        yield made


@pytest.fixture
async def supervised(inside: Secured, namespace: str) -> AsyncIterator[Supervised]:
    async with supervising(inside.server.url, namespace, login=inside.login) as made:
        yield made
