"""The services as processes, each with its own key, on a server that `turngate auth` secured; a runner and a person."""

import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import esm_answers as answers
from tests.secured import Secured, secured
from tests.services.cli.shell import Background, inside
from tests.waiting import wait_until_sync

pytestmark = pytest.mark.slow

SERVICES = ("validation", "conclusion", "supervisor", "deadletter", "console")
PAGES = ("/", "/sessions", "/objectives", "/objectives/s1", "/tasks", "/fleet")
SCENARIO: dict[str, Any] = {
    "default": [
        {
            "worker": {"response": answers.CANDIDATE, "tools": ["bash"]},
            "critic": {"response": answers.PASS, "tools": ["read"]},
            "audit": {"response": answers.PASS, "tools": ["read"]},
        }
    ]
}


@pytest.fixture
def system(tmp_path: Path) -> Iterator[Secured]:
    with secured(tmp_path) as made:
        yield made


def _env(system: Secured, name: str) -> dict[str, str]:
    return {
        "TURNGATE_NATS_URL": system.server.url,
        "TURNGATE_NATS_SEED_FILE": str(system.directory.seed_file(name)),
        "TURNGATE_DURABILITY": "relaxed",
        "TURNGATE_STATE_DIR": str(system.directory.path.parent / f"of-{name}"),
        "TURNGATE_CONSOLE_PORT": "0",
        "TURNGATE_POOL": "web",
    }


def test_an_objective_is_proven_complete_by_processes_that_each_have_an_identity(system: Secured, tmp_path: Path):
    (tmp_path / "play.yaml").write_text(yaml.safe_dump(SCENARIO))
    too_early = inside("serve", "validation", env=_env(system, "validation"))
    made = inside("provision", "--json", env=_env(system, "admin"))
    processes = [Background(tmp_path / name, "serve", name, env=_env(system, name)) for name in SERVICES]
    arguments = ("runner", "--scenario", str(tmp_path / "play.yaml"))
    processes.append(Background(tmp_path / "r1", *arguments, env=_env(system, "r1")))
    try:
        for process in processes:
            process.wait_ready()

        created = inside("esm", "create", "s1", "Move the archive.", env=_env(system, "ann"))
        wait_until_sync(lambda: _status(system) == "complete", 60, "it is driven to its end")
        token = inside("console", "token", "add", "ann", "--json", env=_env(system, "console")).json()["token"]
        pages = {page: _page(processes[SERVICES.index("console")], page, token) for page in PAGES}
        codes = [process.end() for process in processes]
    finally:
        for process in processes:
            process.__exit__()

    assert too_early.code == 3
    assert "run `turngate provision` with the administrator's seed" in too_early.err
    assert len(made.json()["created"]) > 10
    assert created.code == 0, created.err
    assert codes == [0] * len(processes)
    assert "Move the archive." in pages["/objectives/s1"]
    assert "supervisor" in pages["/fleet"]
    assert "JetStream not enabled" not in pages["/fleet"]
    assert "turns-reconciler" in pages["/fleet"]
    refused = [line for line in system.server.log_file.read_text().splitlines() if "Violation" in line]
    assert [line for line in refused if "STREAM.CREATE" not in line] == [], "only the one that came too early"


def _page(console: Background, path: str, token: str) -> str:
    (url,) = [record["console"] for record in console.records() if "console" in record]
    asked = urllib.request.Request(url.rstrip("/") + path, headers={"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(asked, timeout=20) as answer:
        return str(answer.read().decode())


def _status(system: Secured) -> str:
    shown = inside("esm", "show", "s1", "--json", env=_env(system, "ann"))
    return str(((shown.json().get("state") or {}).get("objective") or {}).get("status", "")) if shown.code == 0 else ""
