"""The embedded server, with real processes."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import nats
import pytest

from tests.waiting import wait_until_sync
from turngate.jetstream.embedded import (
    EmbeddedServer,
    NotRunning,
    StartFailed,
    StateDirInUse,
)

# Starts a server, says its process id, and waits to be ended. With "fork" a forked child holds every descriptor open;
# with "stop" the server is stopped again.
OWNER = """
import os, signal, sys
from pathlib import Path
from turngate.jetstream.embedded import EmbeddedServer

server = EmbeddedServer(Path(sys.argv[1]), sync_always=False)
server.start()
pid, forked = server.pid, 0
if "fork" in sys.argv and (forked := os.fork()) == 0:
    signal.pause()
if "stop" in sys.argv:
    server.stop()
print(pid, forked, flush=True)
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


def publish_and_hear_back(server: EmbeddedServer, count: int) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as connection:
        connection.sendall(b"CONNECT {}\r\n" + b"PUB any 5\r\nhello\r\n" * count + b"PING\r\n")
        with connection.makefile("rb") as answers:
            while answers.readline() != b"PONG\r\n":
                pass


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


def test_a_server_that_lost_its_guard_and_its_owner_keeps_its_state_dir(tmp_path: Path) -> None:
    with owner_of(tmp_path) as owner:
        server_pid, _ = pids_said_by(owner)
        _, guard_pid = state_and_parent(server_pid)
        os.kill(guard_pid, signal.SIGKILL)
        owner.kill()

    try:
        with pytest.raises(StateDirInUse) as refusal:
            EmbeddedServer(tmp_path).start()
    finally:
        os.kill(server_pid, signal.SIGKILL)

    assert refusal.value.owner_pid == owner.pid


def test_a_stopped_server_frees_its_state_dir_though_a_forked_process_lives_on(tmp_path: Path) -> None:
    with owner_of(tmp_path, "fork", "stop") as owner:
        _, forked_pid = pids_said_by(owner)
        try:
            with EmbeddedServer(tmp_path, sync_always=False) as server:
                assert server.running
        finally:
            os.kill(forked_pid, signal.SIGKILL)
            owner.kill()


@pytest.mark.parametrize("name", ["with spaces", 'quotes " and \\ back', "dollar $HOME # hash", "Grüße"])
async def test_a_state_dir_may_have_any_name(tmp_path: Path, name: str) -> None:
    with EmbeddedServer(tmp_path / name, sync_always=False) as server:
        await store(server.url, b"once")

    assert (tmp_path / name / "jetstream").is_dir()
    assert (tmp_path / name / "nats-server.log").stat().st_size > 0


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


def test_the_log_stays_bounded(tmp_path: Path) -> None:
    limit = 20_000
    with EmbeddedServer(tmp_path, sync_always=False, extra_config=f"trace: true\nlog_size_limit: {limit}") as server:
        publish_and_hear_back(server, count=2_000)

    logs = list(tmp_path.glob("nats-server.log*"))
    assert len(logs) > 1
    # A line that passes the limit is still written whole.
    assert sum(log.stat().st_size for log in logs) < 3 * (limit + 1_000)


def test_the_extra_configuration_reaches_the_server(tmp_path: Path) -> None:
    with EmbeddedServer(tmp_path, sync_always=False, extra_config="authorization { token: secret }") as server:
        assert greeting(server)["auth_required"] is True
        assert server.config_file.stat().st_mode & 0o077 == 0
