"""One validation service for all tests of commands that need one."""

import uuid
from collections.abc import Iterator

import pytest

from tests.services.cli.shell import Background
from turngate.jetstream.embedded import EmbeddedServer


@pytest.fixture(scope="session")
def system(nats_server: EmbeddedServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The environment variables that lead to a running system of these tests' own."""
    env = {
        "TURNGATE_NATS_URL": nats_server.url,
        "TURNGATE_NAMESPACE": f"c{uuid.uuid4().hex[:8]}",
        "TURNGATE_DURABILITY": "relaxed",
        "TURNGATE_IDENTITY": "tester",
    }
    with Background(tmp_path_factory.mktemp("system"), "serve", "validation", env=env) as service:
        service.wait_ready()
        yield env
        assert service.end() == 0, service.err


@pytest.fixture
def session() -> str:
    """A session that no other test has."""
    return f"s{uuid.uuid4().hex[:12]}"


@pytest.fixture(scope="session")
def supervised(system: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The same system with a supervisor, whose objectives rest only shortly."""
    env = system | {"TURNGATE_FIRST_DELAY_MS": "10", "TURNGATE_LONGEST_DELAY_MS": "50"}
    with Background(tmp_path_factory.mktemp("supervisor"), "serve", "supervisor", env=env) as service:
        service.wait_ready()
        yield system
        assert service.end() == 0, service.err
