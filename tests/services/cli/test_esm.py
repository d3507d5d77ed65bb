"""`turngate esm` against a running supervisor and a runner whose agents follow a script."""

import json
import os
import pty
import subprocess
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.services.cli import scenarios
from tests.services.cli.samples import ESCAPES
from tests.services.cli.shell import COMMAND, Background, Outcome, environment, inside
from tests.waiting import wait_until_sync

Esm = Callable[..., Outcome]


@pytest.fixture(scope="module")
def pool() -> str:
    """A pool of these tests' own."""
    return f"p{uuid.uuid4().hex[:8]}"


@pytest.fixture(scope="module")
def runner(supervised: dict[str, str], pool: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Background]:
    """A runner that plays a scenario by the beginning of a session's name."""
    directory = tmp_path_factory.mktemp("runner")
    path = scenarios.scenario_file(
        directory,
        complete_=scenarios.COMPLETES,
        rejected_=scenarios.REJECTED,
        limited_=scenarios.LIMITED,
        hangs_=scenarios.HANGS,
        hostile_=scenarios.HOSTILE,
    )
    arguments = ("runner", "--pool", pool, "--slots", "8", "--drain", "1", "--scenario", str(path))
    with Background(directory, *arguments, env=supervised | {"TURNGATE_IDENTITY": f"r-{pool}"}) as process:
        process.wait_ready()
        yield process
        assert process.end() == 0, process.err


@pytest.fixture
def esm(supervised: dict[str, str], pool: str) -> Esm:
    """Runs `turngate esm …` in the system; objectives belong to this module's pool."""

    def run(*arguments: str, stdin: bytes = b"", **env: str) -> Outcome:
        more = ("--pool", pool) if arguments[0] == "create" else ()
        return inside("esm", *arguments, *more, env=supervised | env, stdin=stdin)

    return run


def named(scenario: str) -> str:
    return f"{scenario}-{uuid.uuid4().hex[:8]}"


def activity(esm: Esm, session: str) -> str:
    kind: str = esm("show", session, "--json").json()["activity"]["kind"]
    return kind


def until(esm: Esm, session: str, kind: str) -> None:
    wait_until_sync(lambda: activity(esm, session) == kind, 30, f"{session} is {kind}")


def test_an_objective_is_watched_until_it_is_complete(esm, runner):
    session = named("complete")
    created = esm("create", session, "Make every test pass")

    watched = esm("watch", session, "--timeout", "30")

    assert created.code == 0, created.err
    assert created.out.startswith(f"session {session}  active; worker")
    assert watched.code == 0, watched.err
    lines = watched.out.splitlines()
    assert "Make every test pass" in watched.out
    assert any("worker finished" in line and "continue" in line and "1,200 tokens" in line for line in lines)
    assert "audit finished" in lines[-1]
    assert all(line.isprintable() for line in lines)


def test_a_script_reads_what_happens_as_json(esm, runner):
    session = named("complete")
    esm("create", session, "Make every test pass")

    lines = esm("watch", session, "--json", "--timeout", "30").json_lines()

    assert lines[-1]["cause"]["role"] == "audit"
    assert lines[-1]["objective"]["status"] == "complete"
    revisions = [line["cause"]["revision"] for line in lines]
    assert revisions == sorted(set(revisions))


def test_what_a_critic_rejects_is_worked_on_again(esm, runner):
    session = named("rejected")
    esm("create", session, "Write it, with docs")

    watched = esm("watch", session, "--timeout", "30")
    history = esm("history", session, "--all", "--json").json_lines()

    assert watched.code == 0, watched.err
    causes = [cause for page in history for cause in page["entries"]]
    verdicts = [cause["verdict"] for cause in causes if cause["type"] == "role_finished"]
    assert verdicts[:2] == ["complete_candidate", "fail"]
    assert verdicts[-2:] == ["pass", "pass"]


def test_a_history_is_read_page_by_page(esm, runner):
    session = named("complete")
    esm("create", session, "Make every test pass")
    esm("watch", session, "--timeout", "30")

    whole = esm("history", session, "--json").json()["entries"]
    pages, cursor = [], ""
    while True:
        arguments = ("--cursor", cursor) if cursor else ()
        page = esm("history", session, "--limit", "3", "--json", *arguments).json()
        pages += page["entries"]
        cursor = page["cursor"]
        if not page.get("more"):
            break
    first = esm("history", session, "--limit", "3")

    assert pages == whole
    assert "there is more: turngate esm history" in first.out
    assert "created" in first.out


def test_a_usage_limit_waits_for_a_person_and_resumes(esm, runner):
    session = named("limited")
    esm("create", session, "Spend it all")

    watched = esm("watch", session, "--until-rest", "--timeout", "30")
    listed = esm("list", "--status", "usage_limited", "--all")
    resumed = esm("resume", session)

    assert watched.code == 1
    assert session in listed.out
    assert "waits for a person" in listed.out
    assert resumed.code == 0


def test_a_running_objective_is_paused_guided_and_resumed(esm, runner):
    session = named("hangs")
    esm("create", session, "Take your time")
    until(esm, session, "running")

    paused = esm("pause", session)
    guided = esm("guide", session, "-", stdin=b"Start with the tokenizer")
    shown = esm("show", session)
    resumed = esm("resume", session)
    until(esm, session, "running")
    cleared = esm("clear", session)

    assert (paused.code, guided.code, resumed.code, cleared.code) == (0, 0, 0, 0)
    assert paused.out == f"session {session}  paused\n"
    assert "guidance: Start with the tokenizer" in shown.out
    assert cleared.out == f"session {session}  no objective\n"


def test_an_edit_of_a_running_objective_starts_it_anew(esm, runner):
    session = named("hangs")
    esm("create", session, "The first text")
    until(esm, session, "running")
    first = esm("show", session, "--json").json()["activity"]["role_run_id"]

    edited = esm("edit", session, "The second text")

    assert edited.code == 0
    now = esm("show", session, "--json").json()
    assert now["state"]["objective"]["objective"] == "The second text"
    assert now["activity"].get("role_run_id") != first
    esm("clear", session)


def test_what_runs_is_listed_with_its_runner(esm, runner, supervised, pool):
    session = named("hangs")
    esm("create", session, "Take your time")
    until(esm, session, "running")

    def held() -> dict[str, Any]:
        lines = inside("runners", "--json", env=supervised).json_lines()
        mine: dict[str, Any] = next((line for line in lines if line["runner"] == f"r-{pool}"), {"held": []})
        runs = {run["session"]: run for run in mine["held"]}
        # Its beats tell of the role run first and of what its agent does a moment later.
        return runs[session] if runs.get(session, {}).get("tool_calls") else {}

    run = wait_until_sync(held, 20, "the runner says what its agent does")
    shown = inside("runners", "--only-pool", pool, env=supervised).out
    elsewhere = inside("runners", "--only-pool", "nowhere", env=supervised)
    esm("clear", session)

    assert (run["role"], run["tool_calls"]) == ("worker", 1)
    assert "reading the parser" in shown
    assert elsewhere.code == 0
    assert "no runner is alive" in elsewhere.out


def test_an_objective_without_a_runner_says_that_it_waits(esm, supervised):
    session = named("nobody")
    inside("esm", "create", session, "Wait", "--pool", "nobody", env=supervised)

    shown = esm("show", session)
    ran = esm("run", session)
    esm("clear", session)

    assert "worker waits for a runner of pool nobody" in shown.out
    assert "none is alive" in shown.out
    assert ran.code == 0


def test_an_objective_that_waits_is_moved_to_a_pool_that_has_a_runner(esm, runner, pool, supervised):
    session = named("complete")
    inside("esm", "create", session, "Wait", "--pool", "nobody", env=supervised)

    configured = esm("configure", session, "--pool", pool, "--mode", "careful")
    watched = esm("watch", session, "--timeout", "30")
    state = esm("show", session, "--json").json()["state"]

    assert configured.code == 0, configured.err
    assert f"worker waits for a runner of pool {pool}" in configured.out
    assert watched.code == 0, watched.err
    assert (state["pool"], state["mode"]) == (pool, "careful")


def test_what_an_agent_says_is_watched_as_it_says_it(esm, runner, pool, supervised, tmp_path: Path):
    session = named("hangs")
    inside("esm", "create", session, "Say something", "--pool", "nobody", env=supervised)
    with Background(tmp_path, "esm", "watch", session, "--timeout", "60", env=supervised) as watching:
        watching.wait_for("waits for a runner of pool nobody")

        esm("configure", session, "--pool", pool)

        watching.wait_for("worker says: reading the parser")
        esm("clear", session)
        assert watching.process.wait(30) == 1


def test_hostile_texts_can_not_harm_the_terminal(esm, runner):
    session = named("hostile")
    esm("create", session, f"{ESCAPES}\n{ESCAPES}")
    esm("guide", session, ESCAPES)
    watched = esm("watch", session, "--until-rest", "--timeout", "30")

    shown = [
        watched,
        esm("show", session),
        esm("show", session, "--json"),
        esm("history", session),
        esm("history", session, "--json"),
        esm("list", "--all"),
        esm("clear", session),
    ]

    assert watched.code == 1
    for outcome in shown:
        assert all(line.isprintable() for line in outcome.out.splitlines())
        assert outcome.out


def test_a_terminal_is_drawn_on_in_place(esm, runner, supervised):
    session = named("complete")
    esm("create", session, "Make every test pass")
    ours, theirs = pty.openpty()
    command = [*COMMAND, "esm", "watch", session, "--timeout", "30"]

    with subprocess.Popen(command, env=environment(supervised), stdout=theirs, stderr=theirs, cwd="/") as process:
        os.close(theirs)
        drawn = b""
        while chunk := _read(ours):
            drawn += chunk
        assert process.wait(30) == 0, drawn
    os.close(ours)

    text = drawn.decode()
    assert "\x1b[J" in text
    assert "complete for" in text
    assert "audit finished" in text


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65536)
    except OSError:  # how a terminal ends whose other side is closed
        return b""


def test_creating_twice_is_refused_and_repeating_an_operation_is_not(esm, runner):
    session = named("hangs")
    first, again = (esm("create", session, "Once", "--op", "op-1", "--json") for _ in range(2))

    second = esm("create", session, "Twice", "--json")
    esm("clear", session)

    assert (first.code, again.code, second.code) == (0, 0, 1)
    assert again.json()["repeated"]
    assert second.json()["error"]["code"] == "objective_exists"


def test_a_session_without_an_objective_is_exit_code_1(esm):
    for command in ("show", "watch", "pause", "resume", "run"):
        outcome = esm(command, "nothing-here")
        assert outcome.code == 1, command
        assert "no objective" in outcome.err
    assert esm("history", "nothing-here").out == "nothing has happened\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ["create", "a.b", "x"],
        ["create", "s"],
        ["create", "s", "x", "--file", "y"],
        ["create", "s", "--file", "/does/not/exist"],
        ["guide", "s", "\udcff"],
        ["list", "--limit", "0"],
        ["list", "--status", "fine"],
        ["list", "--all", "--cursor", "x"],
        ["run", "s", "--op", "a b"],
        ["configure", "s"],
    ],
    ids=repr,
)
def test_what_can_not_be_used_is_exit_code_2(esm, arguments):
    assert esm(*arguments).code == 2


def test_a_text_over_its_limit_is_refused(esm, tmp_path: Path):
    path = tmp_path / "objective.md"
    path.write_text("x" * 70_000)

    outcome = esm("create", named("big"), "--file", str(path), "--json")

    assert outcome.code == 1
    assert json.loads(outcome.out)["error"]["code"] == "invalid_objective"


def test_a_file_that_is_no_text_of_a_person_is_not_sent(esm, tmp_path: Path):
    path = tmp_path / "core"
    path.write_bytes(b"\0" * 5_000_000)

    outcome = esm("create", named("dump"), "--file", str(path))

    assert outcome.code == 2
    assert "core has 5000000 bytes" in outcome.err


def test_no_server_is_exit_code_3():
    env = {"TURNGATE_NATS_URL": "nats://127.0.0.1:1", "TURNGATE_CONNECT_TIMEOUT_MS": "300"}

    assert inside("esm", "list", env=env).code == 3
