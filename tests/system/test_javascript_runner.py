"""The example runner in JavaScript, written only from the AsyncAPI document, serves the real supervisor.

It needs Node and the packages of its package.json, outside of the tree so that nothing is left in it:

    npm install --prefix build/node nats@VERSION      with the version in examples/javascript-runner/package.json

Where either is missing the tests are skipped and say so; with CI=true in the environment they fail.
"""

import json
import os
import shutil
import signal
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Final

import pytest
import pytest_asyncio

from tests.secured import POOL as WEB
from tests.secured import secured
from tests.supervised import Supervised, supervising
from tests.waiting import wait_until
from turngate.jetstream.embedded import EmbeddedServer
from turngate.runner import TurnClient
from turngate.settings import Settings
from turngate_contracts.topology import SUPERVISOR, VALIDATION
from turngate_protocol.esm.state import CauseType, EsmState

ROOT: Final = Path(__file__).parents[2]
EXAMPLE: Final = ROOT / "examples" / "javascript-runner"
INSTALLED: Final = ROOT / "build" / "node" / "node_modules"
POOL: Final = "javascript"


@pytest.fixture(scope="module")
def node() -> str:
    """Node, with the example's packages in their pinned versions; else the test ends here."""
    found = shutil.which("node")
    missing = "" if found else "node is not installed"
    for name, version in json.loads((EXAMPLE / "package.json").read_text())["dependencies"].items():
        manifest = INSTALLED / name / "package.json"
        if not manifest.exists() or json.loads(manifest.read_text())["version"] != version:
            missing = missing or f"run `npm install --prefix build/node {name}@{version}`"
    if found is None or missing:
        ended = f"the JavaScript runner was not run: {missing}"
        if os.environ.get("CI") == "true":
            pytest.fail(ended)
        pytest.skip(ended)
    return found


@pytest_asyncio.fixture
async def scene(nats_server: EmbeddedServer, namespace: str) -> AsyncIterator[Supervised]:
    """An impatient supervisor."""
    async with supervising(nats_server.url, namespace) as made:
        yield made


class Example:
    """The example as a process."""

    def __init__(self, node: str, settings: Settings, log: Path) -> None:
        self._node = node
        self._settings = settings
        self._log = log
        self.processes: list[subprocess.Popen[bytes]] = []

    def _popen(self, command: list[str], environment: dict[str, str], log: Path) -> "subprocess.Popen[bytes]":
        with log.open("wb") as out:
            return subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=out)

    async def start(
        self, identity: str, *options: str, pool: str = POOL, seed_file: str = ""
    ) -> "subprocess.Popen[bytes]":
        """Start it and wait until it takes roles."""
        command = [self._node, str(EXAMPLE / "runner.js"), "--identity", identity, "--pool", pool]
        command += ["--beat-ms", "300", *options]
        environment = os.environ | {
            "NODE_PATH": str(INSTALLED),
            "TURNGATE_NATS_URL": self._settings.nats_url,
            "TURNGATE_NAMESPACE": self._settings.namespace,
            "TURNGATE_NATS_SEED_FILE": seed_file,
        }
        log = self._log / f"{identity}.log"
        process = self._popen(command, environment, log)
        self.processes.append(process)

        def ready() -> bool:
            assert process.poll() is None, log.read_text()
            return '"ready"' in log.read_text()

        await wait_until(ready, 30, f"the JavaScript runner {identity} is ready")
        return process

    def end(self) -> None:
        """Kill what still runs."""
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.wait(30)


@pytest.fixture
def example(node: str, scene: Supervised, tmp_path: Path) -> Iterator[Example]:
    """Starts the example; what still runs afterwards is killed."""
    made = Example(node, scene.system.settings, tmp_path)
    yield made
    made.end()


async def test_it_drives_an_objective_through_every_role(scene: Supervised, example: Example):
    await example.start("js-1", "--delay-ms", "20")
    person = await scene.person()

    await person.create("s1", "Make every test pass", pool=POOL)
    await scene.until_status("s1", "complete")

    history = [cause async for cause in person.history("s1")]
    finished = [cause for cause in history if cause.type is CauseType.ROLE_FINISHED]
    assert [(cause.role, cause.verdict) for cause in finished] == [
        ("worker", "continue"),
        ("worker", "complete_candidate"),
        ("critic", "pass"),
        ("audit", "pass"),
    ]
    assert {(cause.runner, cause.tokens, cause.tool_calls) for cause in finished} == {("js-1", 10, 1)}


async def test_it_is_seen_among_the_runners_with_what_it_does(scene: Supervised, example: Example):
    await example.start("js-1", "--delay-ms", "600000", "--role", "worker")
    person = await scene.person()
    await person.create("s1", "Take your time", pool=POOL)

    async def held() -> bool:
        runners = await person.runners(POOL)
        return [run.session for runner in runners for run in runner.held] == ["s1"]

    await wait_until(held, 20, "its beat tells what it holds")


async def test_a_pause_stops_its_agent_and_the_usage_still_counts(scene: Supervised, example: Example):
    await example.start("js-1", "--delay-ms", "600000")
    person = await scene.person()
    await person.create("s1", "Take your time", pool=POOL)
    await scene.until("s1", lambda state: state.continuation and state.continuation.role_run.claim_id, "it runs")

    await person.pause("s1")

    def told(state: EsmState) -> bool:
        return state.cause is not None and state.cause.type is CauseType.RESULT_IGNORED

    stopped = await scene.until("s1", told, "its agent was stopped and it said so")
    assert stopped.objective is not None
    assert stopped.objective.time_used_ms > 0
    assert not stopped.abandoned


async def test_two_of_them_share_a_pool_and_every_role_runs_once(scene: Supervised, example: Example):
    for number in (1, 2):
        await example.start(f"js-{number}", "--delay-ms", "50")
    person = await scene.person()
    sessions = [f"s{number}" for number in range(1, 7)]

    for session in sessions:
        await person.create(session, "Make every test pass", pool=POOL)
    for session in sessions:
        await scene.until_status(session, "complete")

    for session in sessions:
        started = [c.role_run_id async for c in person.history(session) if c.type is CauseType.ROLE_STARTED]
        assert len(started) == len(set(started)) == 4


async def test_told_to_end_it_finishes_what_runs(scene: Supervised, example: Example):
    process = await example.start("js-1", "--delay-ms", "300", "--role", "worker")
    person = await scene.person()
    await person.create("s1", "Make every test pass", pool=POOL)
    await scene.until("s1", lambda state: state.continuation and state.continuation.role_run.claim_id, "it runs")

    process.send_signal(signal.SIGTERM)
    await wait_until(lambda: process.poll() is not None, 20, "it has ended")

    assert process.returncode == 0
    state = await scene.state("s1")
    assert state.objective is not None
    assert state.objective.progress_summary == "The first half is done."


async def test_one_that_is_killed_is_missed_and_another_goes_on(scene: Supervised, example: Example):
    process = await example.start("js-1", "--delay-ms", "600000")
    person = await scene.person()
    await person.create("s1", "Make every test pass", pool=POOL)
    await scene.until("s1", lambda state: state.continuation and state.continuation.role_run.claim_id, "it runs")

    process.kill()
    await example.start("js-2", "--delay-ms", "20")
    await scene.until_status("s1", "complete")

    history = [cause async for cause in person.history("s1")]
    assert [cause.reason for cause in history if cause.type is CauseType.ROLE_FAILED] == ["lost"]
    assert [cause.runner for cause in history if cause.type is CauseType.RECOVERY_FINISHED] == ["js-2"]


async def test_it_proves_its_identity_with_a_seed_file(node: str, tmp_path: Path):
    with secured(tmp_path) as system:
        async with system.services(VALIDATION, SUPERVISOR), await system.client("ann") as person:
            settings = system.settings("r1")
            made = Example(node, settings, tmp_path)
            try:
                await made.start("r1", "--delay-ms", "600000", pool=WEB, seed_file=settings.nats_seed_file)
                await person.objectives.create("s1", "Take your time", pool=WEB)
                await wait_until(lambda: _holds(person), 20, "it claims the role run")
            finally:
                made.end()

    refused = [line for line in system.server.log_file.read_text().splitlines() if "Violation" in line]
    assert refused == []


async def _holds(person: TurnClient) -> bool:
    return (await person.objectives.get("s1")).activity.runner == "r1"
