"""`turngate up`: ready, usable, drained, and the same data the next time."""

import json
import os
import signal
import socket

from tests.services.cli.samples import asking, done, encoded
from tests.services.cli.shell import Background, inside, is_alive, turngate
from tests.waiting import wait_until_sync


def up(tmp_path, *arguments, name="up", env=None):
    """Start a system with a free port and a state directory of the test's own."""
    state = ["--state-dir", str(tmp_path / "state"), "--durability", "relaxed"]
    return Background(tmp_path / name, "up", "--port", "0", *state, *arguments, env=env)


def place_of(system):
    wait_until_sync(lambda: system.out.endswith("\n") or system.process.poll() is not None, 60, "it says where it is")
    assert system.process.poll() is None, system.err
    return json.loads(system.out)


def test_it_comes_up_says_where_and_stops_cleanly(tmp_path):
    with up(tmp_path, "--json") as system:
        place = place_of(system)
        env = {"TURNGATE_NATS_URL": place["url"]}

        submitted = inside("turn", "submit", "s1", "1", env=env, stdin=encoded(done()))
        examined = inside("doctor", env=env)
        code = system.end()

        assert submitted.code == 0
        assert examined.code == 0, examined.out
        assert code == 0, system.err
        assert not is_alive(place["server_pid"])
        assert "Traceback" not in system.err


def test_it_tells_a_person_what_to_do_next(tmp_path):
    with up(tmp_path, "--namespace", "mine") as system:
        system.wait_for("Ctrl-C drains and stops it")

        assert "export TURNGATE_NATS_URL=nats://127.0.0.1:" in system.out
        assert "export TURNGATE_NAMESPACE=mine" in system.out
        for command in ("turn submit", "esm create", "runner --", "doctor"):
            assert f"turngate {command}" in system.out
        assert system.end(signal.SIGINT) == 0


def test_the_next_start_goes_on_with_the_data(tmp_path):
    with up(tmp_path, "--json", name="first") as system:
        env = {"TURNGATE_NATS_URL": place_of(system)["url"]}
        inside("turn", "submit", "s1", "1", env=env, stdin=encoded(asking()))
        assert system.end() == 0

    with up(tmp_path, "--json", name="second") as system:
        env = {"TURNGATE_NATS_URL": place_of(system)["url"]}
        shown = inside("turn", "show", "s1", env=env)

        assert "Two migrations are ready" in shown.out
        assert system.end() == 0


def test_several_processes_validate(tmp_path):
    with up(tmp_path, "--json", "--validation", "2") as system:
        env = {"TURNGATE_NATS_URL": place_of(system)["url"]}
        system.wait_ready(processes=2)

        checks = inside("doctor", "--json", env=env).json()["checks"]

        assert next(c for c in checks if c["name"] == "validation")["facts"]["processes"] == 2
        assert system.end() == 0


def test_a_server_that_dies_is_started_again(tmp_path):
    with up(tmp_path, "--json") as system:
        place = place_of(system)
        os.kill(place["server_pid"], signal.SIGKILL)
        system.wait_for("nats-server ended by itself")
        system.wait_for("reconnected")

        outcome = inside("turn", "submit", "s1", "1", env={"TURNGATE_NATS_URL": place["url"]}, stdin=encoded(done()))

        assert outcome.code == 0
        assert system.end() == 0


def test_the_server_ends_with_a_process_that_is_killed(tmp_path):
    with up(tmp_path, "--json") as system:
        server = place_of(system)["server_pid"]
        system.process.kill()

        wait_until_sync(lambda: not is_alive(server), why="the server ends")


def test_a_port_that_is_taken_is_told(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])

        outcome = turngate("up", "--port", port, "--state-dir", str(tmp_path / "state"))

    assert outcome.code == 1
    assert outcome.err == (
        f"turngate: Port {port} on 127.0.0.1 is in use: stop what listens there, or choose another port.\n"
    )


def test_a_state_directory_in_use_is_told(tmp_path):
    with up(tmp_path, "--json") as system:
        place_of(system)

        outcome = turngate("up", "--port", "0", "--state-dir", str(tmp_path / "state"))

        assert outcome.code == 1
        assert f"is in use by the server of process {system.process.pid}" in outcome.err
        assert system.end() == 0


def test_a_missing_binary_and_a_directory_that_can_not_be_made_are_told(tmp_path):
    (tmp_path / "file").write_text("")

    missing = turngate("up", "--state-dir", str(tmp_path / "a"), env={"TURNGATE_NATS_SERVER": "/nowhere/nats-server"})
    blocked = turngate("up", "--port", "0", "--state-dir", str(tmp_path / "file" / "state"))

    assert missing.code == blocked.code == 1
    assert "/nowhere/nats-server is not an executable file" in missing.err
    assert blocked.err == f"turngate: {tmp_path / 'file' / 'state'}: Not a directory\n"


def test_the_data_is_kept_in_the_user_s_state_directory_unless_said_otherwise(tmp_path):
    env = {"XDG_STATE_HOME": str(tmp_path / "xdg"), "TURNGATE_DURABILITY": "relaxed", "TURNGATE_SERVER_PORT": "0"}
    with Background(tmp_path / "up", "up", "--json", env=env) as system:
        assert place_of(system)["state_dir"] == str(tmp_path / "xdg" / "turngate")
        assert system.end() == 0
