"""`turngate mcp` on the command line: what can't be used is told; over HTTP it says where it is and what it wants."""

import os
import re
import signal
import stat
from pathlib import Path

import httpx
import pytest

from tests.services.cli.shell import Background, inside
from tests.waiting import wait_until_sync


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--session", "a b"], "--session 'a b' is no session id; use 1 to 128 characters"),
        (["--task", "a.b"], "task 'a.b' is not an id"),
        (["--root", "/nowhere/at/all"], "--root /nowhere/at/all is no directory"),
        (["--http", "--host", "0.0.0.0"], "name by --allow-host how clients reach it"),
        (["--port", "70000"], "'70000' is no port; use 0 to 65535"),
        (["--esm", "maybe"], "invalid choice: 'maybe'"),
        (["--nats-url", "http://x"], "http://x"),
    ],
    ids=lambda given: " ".join(given) if isinstance(given, list) else "",
)
def test_what_can_not_be_used_is_told(arguments, problem, tmp_path):
    outcome = inside("mcp", *arguments, env={"TURNGATE_AGENTS_DIR": str(tmp_path)})

    assert outcome.code == 2
    assert outcome.out == ""
    assert problem in outcome.err


def test_without_the_extra_it_says_how_to_install_it(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)

    outcome = inside("mcp")

    assert outcome.code == 2
    assert "pip install 'turngate[mcp]'" in outcome.err


def test_a_token_that_is_easily_guessed_is_told_and_not_shown(tmp_path):
    outcome = inside("mcp", "--http", env={"TURNGATE_AGENTS_DIR": str(tmp_path), "TURNGATE_MCP_TOKEN": "hunter2"})

    assert outcome.code == 2
    assert "TURNGATE_MCP_TOKEN is unusable; use 16 or more" in outcome.err
    assert "hunter2" not in outcome.err


def test_over_http_it_says_where_it_is_and_lets_in_who_has_the_token(tmp_path: Path):
    agents = tmp_path / "agents"
    server = Background(tmp_path / "server", "mcp", "--http", "--port", "0", env={"TURNGATE_AGENTS_DIR": str(agents)})
    try:
        said = wait_until_sync(
            lambda: re.search(r"ready: (http://127\.0\.0\.1:\d+/mcp), the token is in (\S+)", server.err),
            60,
            "it is ready",
        )
        assert said is not None
        url, file = said[1], Path(said[2])
        stranger = httpx.get(url, headers={"authorization": "Bearer something-else"}, timeout=60)
        token = file.read_text().strip()
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
        began = httpx.post(
            url,
            json={"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
            headers={"authorization": f"Bearer {token}", "accept": "application/json, text/event-stream"},
        )
    finally:
        os.kill(server.process.pid, signal.SIGTERM)
        server.process.wait(30)

    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stranger.status_code == 401
    assert began.status_code == 200
    assert '"name":"turngate"' in began.text
    assert token not in server.err
