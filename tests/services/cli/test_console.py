"""`turngate console token`, `turngate serve console`, and the console of `turngate up`."""

import contextlib
import json
import re
import socket
import urllib.request

import pytest

from tests.services.cli.shell import Background, inside
from tests.waiting import wait_until_sync
from turngate.cli.up import _console as console_port
from turngate.console.listening import CannotListen
from turngate.registry import NotInstalled, factory
from turngate.settings import DEFAULT_CONSOLE_PORT, Settings


def fetched(url):
    with urllib.request.urlopen(url, timeout=20) as answer:
        return answer.status, answer.read().decode()


def test_a_token_is_shown_once_listed_and_removed(tmp_path):
    state = ("--state-dir", str(tmp_path))

    made = inside("console", "token", "add", "ann", "--role", "operator", *state)
    taken = inside("console", "token", "add", "ann", *state)
    listed = inside("console", "token", "list", "--json", *state)
    removed = inside("console", "token", "remove", "ann", *state)
    again = inside("console", "token", "remove", "ann", *state)
    none = inside("console", "token", "list", *state)

    assert made.code == 0
    assert re.fullmatch(r"tgc_[A-Za-z0-9_-]{43}\n", made.out)
    assert "not shown again" in made.err
    assert (taken.code, "ann has one" in taken.err) == (1, True)
    (facts,) = listed.json_lines()
    assert (facts["name"], facts["role"]) == ("ann", "operator")
    assert made.out.strip() not in listed.out
    assert removed.code == 0
    assert (again.code, "'ann' has no token" in again.err) == (1, True)
    assert (none.code, "make one" in none.out) == (0, True)


def test_a_name_that_is_no_id_is_refused(tmp_path):
    outcome = inside("console", "token", "add", "not an id", "--json", "--state-dir", str(tmp_path))

    assert outcome.code == 2
    assert outcome.json()["error"]["code"] == "invalid_id"


def test_up_serves_a_console_and_says_where(tmp_path):
    with Background(
        tmp_path, "up", "--port", "0", "--console-port", "0", "--state-dir", str(tmp_path / "state"), "--json"
    ) as system:
        wait_until_sync(lambda: system.out.endswith("\n") or system.process.poll() is not None, 60, "it is up")
        place = json.loads(system.out)

        assert fetched(f"{place['console']}readyz")[0] == 200
        assert "<main" in fetched(place["console"])[1]
        with urllib.request.urlopen(f"{place['console']}live", timeout=20) as stream:
            assert stream.readline().startswith(b"retry")
            # An open browser does not keep the system from ending.
            assert system.end() == 0, system.err
        assert "Traceback" not in system.err


def test_up_serves_none_where_nobody_wants_one_or_its_packages_are_missing(monkeypatch, caplog):
    assert console_port(Settings(console="off")) == 0

    monkeypatch.setattr("turngate.registry.find_spec", lambda name: None if name == "starlette" else object())

    assert console_port(Settings()) == 0
    assert "install turngate[console]" in caplog.text


def test_up_takes_another_port_where_nobody_chose_one():
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with contextlib.suppress(OSError):  # then it is taken already
            taken.bind(("127.0.0.1", DEFAULT_CONSOLE_PORT))
            taken.listen()

        assert console_port(Settings()) not in (0, DEFAULT_CONSOLE_PORT)


def test_up_takes_no_other_port_than_the_one_that_was_chosen():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        settings = Settings(console_port=taken.getsockname()[1])

        with pytest.raises(CannotListen):
            console_port(settings)


def test_a_port_that_is_taken_is_said_in_one_sentence(tmp_path, nats_server, namespace):
    env = {"TURNGATE_NATS_URL": nats_server.url, "TURNGATE_NAMESPACE": namespace, "TURNGATE_DURABILITY": "relaxed"}
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])

        outcome = inside("serve", "console", "--console-port", port, "--state-dir", str(tmp_path), env=env)

    assert outcome.code == 1
    assert f"the console can't listen on 127.0.0.1:{port}" in outcome.err
    assert "--console-port" in outcome.err


def test_an_address_that_others_reach_needs_tokens(tmp_path, nats_server, namespace):
    env = {"TURNGATE_NATS_URL": nats_server.url, "TURNGATE_NAMESPACE": namespace, "TURNGATE_DURABILITY": "relaxed"}

    outcome = inside("serve", "console", "--console-host", "0.0.0.0", "--state-dir", str(tmp_path), env=env)

    assert outcome.code == 1
    assert "turngate console token add" in outcome.err


def test_a_console_whose_packages_are_missing_says_how_to_get_them(monkeypatch):
    monkeypatch.setattr("turngate.registry.find_spec", lambda name: None if name == "starlette" else object())

    with pytest.raises(NotInstalled, match=re.escape("the console needs starlette; install turngate[console]")):
        factory("console")
