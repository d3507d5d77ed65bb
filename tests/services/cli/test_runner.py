"""`turngate runner`: command line agents as roles, in real processes."""

import asyncio
import os
import signal
import stat
import sys
import uuid
from pathlib import Path

import pytest

from tests.services.cli import scenarios
from tests.services.cli.shell import Background, inside, is_alive
from tests.waiting import wait_until_sync
from turngate.cli.runner import default_runner
from turngate.jetstream.connect import connect
from turngate.jetstream.request import Requester
from turngate_contracts import codec
from turngate_contracts.ids import check_id
from turngate_contracts.subjects import Subjects
from turngate_contracts.tasks import PathsStated, StatPaths
from turngate_protocol.conclusion import RefState

AGENT = """\
import json, os, sys, time
prompt = sys.stdin.read()
role = sys.argv[1]
with open(f"prompt-{role}", "w") as file:
    file.write(prompt)
with open("environment", "w") as file:
    file.write("\\n".join(sorted(os.environ)))
if "take your time" in prompt:
    with open("pid", "w") as file:
        file.write(str(os.getpid()))
    time.sleep(600)
print(json.dumps({"type": "tool_call", "id": "1", "name": "bash"}))
print(json.dumps({"type": "tool_result", "id": "1", "name": "bash"}))
done = {"status": "complete_candidate", "summary": "done", "evidence": ["make test"]}
passed = {"verdict": "pass", "review": "ok", "requirements_checked": ["all"], "evidence": ["make test"]}
print(json.dumps({"type": "result", "text": json.dumps(done if role == "worker" else passed), "tokens": 7}))
"""


class Scene:
    """A pool, a directory and an agent of a test's own."""

    def __init__(self, env: dict[str, str], directory: Path) -> None:
        self.pool = f"p{uuid.uuid4().hex[:8]}"
        self.env = env | {"TURNGATE_IDENTITY": f"r-{self.pool}"}
        self.directory = directory
        self.session = f"s-{self.pool}"
        self.agent = directory / "agent.py"
        self.agent.write_text(AGENT)
        self.agent.chmod(self.agent.stat().st_mode | stat.S_IXUSR)

    def runner(self, *arguments: str, name: str = "runner", **env: str) -> Background:
        return Background(self.directory / name, "runner", "--pool", self.pool, *arguments, env=self.env | env)

    def esm(self, *arguments: str) -> str:
        done = inside("esm", *arguments, env=self.env)
        assert done.code == 0, done.err
        return done.out

    def create(self, text: str, *more: str) -> None:
        self.esm("create", self.session, text, "--pool", self.pool, *more)


@pytest.fixture
def scene(supervised: dict[str, str], tmp_path: Path) -> Scene:
    return Scene(supervised, tmp_path)


def test_a_command_line_agent_completes_an_objective(scene):
    work = scene.directory / "work"
    work.mkdir()
    command = (sys.executable, str(scene.agent), "{role}")
    options = ("--output", "events", "--allow-env", "AGENT_KEY", "--root", str(scene.directory))
    with scene.runner(*options, "--", *command, AGENT_KEY="1", OTHER_KEY="2") as runner:
        runner.wait_ready()
        scene.create("Make every test pass", "--work-dir", str(work))
        scene.esm("watch", scene.session, "--timeout", "30")
        assert runner.end() == 0, runner.err

    assert "Make every test pass" in (work / "prompt-audit").read_text()
    seen = (work / "environment").read_text().split("\n")
    assert "AGENT_KEY" in seen
    assert "OTHER_KEY" not in seen
    assert not any(name.startswith("TURNGATE_") for name in seen)
    assert "21 tokens" in scene.esm("show", scene.session)


def test_it_says_when_it_is_ready_and_drains(scene):
    with scene.runner("--role", "critic", "--slots", "3", "--", "true") as runner:
        runner.wait_ready()
        ready = runner.ready()[0]
        code = runner.end()

    assert code == 0
    assert ready["ready"] == [f"r-{scene.pool}"]
    assert (ready["pools"], ready["roles"], ready["slots"]) == ([scene.pool], ["critic"], 3)
    assert "draining: SIGTERM" in runner.err


def test_what_it_can_not_finish_is_handed_back_and_its_agent_is_gone(scene):
    work = scene.directory / "work"
    work.mkdir()
    command = (sys.executable, str(scene.agent), "{role}")
    with scene.runner("--drain", "1", "--output", "events", "--", *command) as runner:
        runner.wait_ready()
        scene.create("Please take your time", "--work-dir", str(work))
        pid = int(wait_until_sync(lambda: (work / "pid").exists() and (work / "pid").read_text(), 20, "an agent runs"))
        assert runner.end() == 0, runner.err

    assert not is_alive(pid)
    assert "worker waits for a runner" in scene.esm("show", scene.session)


def test_a_second_signal_ends_it_at_once(scene):
    path = scenarios.scenario_file(scene.directory, default=scenarios.HANGS)
    with scene.runner("--drain", "60", "--scenario", str(path)) as runner:
        runner.wait_ready()
        scene.create("Hang")
        wait_until_sync(lambda: "worker on" in scene.esm("show", scene.session), 20, "an agent runs")
        runner.process.send_signal(signal.SIGTERM)
        runner.wait_for("draining")
        assert runner.end() == 128 + signal.SIGTERM
    scene.esm("clear", scene.session)


def test_work_outside_of_the_roots_fails_the_role_and_waits_for_a_person(scene):
    root = scene.directory / "root"
    root.mkdir()
    with scene.runner("--root", str(root), "--", sys.executable, str(scene.agent), "worker") as runner:
        runner.wait_ready()
        scene.create("Leave", "--work-dir", "/")
        wait_until_sync(lambda: "waits for a person" in scene.esm("show", scene.session), 20, "it is stopped")
        shown = scene.esm("show", scene.session)
        assert runner.end() == 0

    assert "outside of this runner" in shown


async def test_a_runner_with_roots_answers_for_the_files_below_them(scene):
    (scene.directory / "made.txt").write_text("made")
    asked = StatPaths("s1", "t1", (str(scene.directory / "made.txt"), "/etc/passwd"))
    with scene.runner("--root", str(scene.directory), "--", "true") as runner:
        await asyncio.to_thread(runner.wait_ready)
        connection = await connect(scene.env["TURNGATE_NATS_URL"], name="asks")
        requester = await Requester.start(connection)
        subject = Subjects(scene.env["TURNGATE_NAMESPACE"]).runner_stat(f"r-{scene.pool}")
        reply = await requester.request(subject, codec.encode(asked))
        await requester.stop()
        await connection.close()
        assert await asyncio.to_thread(runner.end) == 0, runner.err

    stated = codec.decode(reply.body, PathsStated, "a PathsStated")
    assert [answer.state for answer in stated.answers] == [RefState.PRESENT, RefState.UNCHECKABLE]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "give the agent's command line after --"),
        (["--scenario", "x.yaml", "--", "agent"], "give the agent's command line after --"),
        (["--scenario", "/does/not/exist"], "can't be read"),
        (["--root", "/does/not/exist", "--", "agent"], "is no directory"),
        (["--work-dir", "/", "--root", "/usr", "--", "agent"], "is below no --root"),
        (["--role", "boss", "--", "agent"], "invalid choice"),
        (["--output", "xml", "--", "agent"], "invalid choice"),
        (["--pool", "a.b", "--", "agent"], "is not an id"),
    ],
)
def test_what_can_not_be_used_is_exit_code_2(arguments, says):
    outcome = inside("runner", *arguments)

    assert outcome.code == 2
    assert says in outcome.err


def test_a_scenario_that_is_none_says_why(tmp_path):
    path = tmp_path / "scenario.yaml"
    path.write_text("default:\n  - worker: {respones: x}\n")

    outcome = inside("runner", "--scenario", str(path))

    assert outcome.code == 2
    assert "respones" in outcome.err


def test_no_server_is_exit_code_3():
    env = {"TURNGATE_NATS_URL": "nats://127.0.0.1:1", "TURNGATE_CONNECT_TIMEOUT_MS": "300"}

    assert inside("runner", "--", "agent", env=env).code == 3


@pytest.mark.parametrize("host", ["build-3.example.org", "", "x" * 300, "маша"])
def test_a_runner_that_nobody_named_has_an_id_of_its_own(host):
    assert check_id("identity", default_runner(host, os.getpid())).endswith(str(os.getpid()))
