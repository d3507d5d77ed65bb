"""The command adapter: real processes, well-behaved and not; nothing of them is left behind."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

from tests.services.runner.adapters import samples
from tests.waiting import wait_until
from turngate.runner.adapters import RoleResult
from turngate.runner.adapters.command import OUTPUT_BYTES, CommandAdapter
from turngate_contracts.errors import InvalidMessage
from turngate_protocol.esm.classify import FailureKind
from turngate_protocol.esm.evidence import EvidenceTracker, ToolEvent
from turngate_protocol.esm.objective import Objective, Role
from turngate_protocol.esm.roles import RoleRequest


class Context:
    """A role run's context that remembers what it was told."""

    def __init__(self, work_dir: Path) -> None:
        self.cancelled = asyncio.Event()
        self.steering: asyncio.Queue[str] = asyncio.Queue()
        self.work_dir = work_dir
        self.evidence = EvidenceTracker()
        self.said: list[str] = []

    def tool_event(self, event: ToolEvent) -> None:
        self.evidence.observe(event)

    def progress(self, text: str) -> None:
        self.said.append(text)


def request(prompt: str = "Do it.") -> RoleRequest:
    objective = Objective(session_id="s", esm_id="e", text="t", created_at=0, updated_at=0)
    return RoleRequest("s", "e-1-critic", "e-1", 1, "c", Role.CRITIC, prompt, objective, tools=("read", "grep"))


def python(code: str, *arguments: str, **options: object) -> CommandAdapter:
    return CommandAdapter([sys.executable, "-c", code, *arguments], **options)  # type: ignore[arg-type]


async def run(adapter: CommandAdapter, work_dir: Path, prompt: str = "Do it.") -> tuple[RoleResult, Context]:
    context = Context(work_dir)
    return await adapter.run(request(prompt), context), context


def is_gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return True


async def test_the_prompt_comes_on_standard_input_and_the_answer_on_standard_output(tmp_path: Path):
    result, _ = await run(python("import sys; print(sys.stdin.read().upper())"), tmp_path, "ünder")
    assert result == RoleResult("ÜNDER")


async def test_placeholders_are_filled_and_the_prompt_file_holds_the_prompt(tmp_path: Path):
    code = "import sys; print(open(sys.argv[1]).read(), *sys.argv[2:], sep='|')"
    result, _ = await run(
        python(code, "{prompt_file}", "{work_dir}", "{role}", "{tools}", "{session}", '{"json": 1}'), tmp_path, "P"
    )
    assert result.response == f'P|{tmp_path}|critic|read,grep|s|{{"json": 1}}'


async def test_braces_in_the_name_of_a_directory_stay(tmp_path: Path):
    place = tmp_path / "{role}"
    place.mkdir()
    result, _ = await run(python("import sys; print(sys.argv[1])", "{work_dir}"), place)
    assert result.response == str(place)


async def test_it_works_in_its_work_directory_and_sees_only_allowed_variables(tmp_path: Path):
    environment = {"PATH": os.environ["PATH"], "SECRET": "x", "MY_KEY": "y"}
    code = "import os; print(os.getcwd(), sorted(k for k in os.environ if k in ('SECRET', 'MY_KEY')))"
    result, _ = await run(python(code, allowed=["MY_KEY"], environment=environment), tmp_path)
    assert result.response == f"{tmp_path} ['MY_KEY']"


async def test_an_event_stream_becomes_evidence_and_progress(tmp_path: Path):
    (tmp_path / "stream").write_bytes(b"\n".join(samples.CLAUDE))
    result, context = await run(python("print(open('stream').read())", output="claude"), tmp_path)
    assert result == RoleResult('{"status": "continue"}', 125)
    assert context.evidence.summary().tool_calls == 2
    assert context.said == ["I look at the tests first."]


async def test_a_command_that_fails_says_why_with_the_end_of_its_error_output(tmp_path: Path):
    code = "import sys; sys.stderr.write('x' * 100_000 + 'rate limit exceeded'); sys.exit(3)"
    result, _ = await run(python(code), tmp_path)
    assert result.failure is FailureKind.ERROR
    assert "exit code 3" in result.message
    assert result.message.endswith("rate limit exceeded")
    assert len(result.message) < 5_000


async def test_a_command_that_a_signal_ended_says_so(tmp_path: Path):
    result, _ = await run(python("import os; os.kill(os.getpid(), 9)"), tmp_path)
    assert "signal 9" in result.message


async def test_a_command_that_does_not_exist_is_a_failure_that_names_it(tmp_path: Path):
    result, _ = await run(CommandAdapter(["no-such-agent"]), tmp_path)
    assert result.failure is FailureKind.ERROR
    assert "no-such-agent" in result.message
    assert "PATH" in result.message


async def test_a_command_that_is_no_file_is_not_looked_for_on_the_path(tmp_path: Path):
    result, _ = await run(CommandAdapter(["./no-such-agent"]), tmp_path)
    assert "./no-such-agent can't be started" in result.message
    assert "PATH" not in result.message


async def test_a_work_directory_that_does_not_exist_is_a_failure_that_names_it(tmp_path: Path):
    result, _ = await run(python("print(1)"), tmp_path / "nowhere")
    assert result.failure is FailureKind.ERROR
    assert "nowhere" in result.message


async def test_a_command_that_never_reads_its_prompt_is_no_problem(tmp_path: Path):
    result, _ = await run(python("print('done')"), tmp_path, "x" * 1_000_000)
    assert result.response == "done"


async def test_a_command_that_writes_without_end_is_stopped(tmp_path: Path):
    result, _ = await run(python("while True: print('x' * 65536)"), tmp_path)
    assert result.failure is FailureKind.ERROR
    assert str(OUTPUT_BYTES) in result.message


async def test_a_line_without_end_is_read_too(tmp_path: Path):
    result, _ = await run(python("print('x' * 6_000_000, end='')"), tmp_path)
    assert set(result.response) == {"x"}


async def test_output_that_is_no_text_is_shown_as_far_as_it_is(tmp_path: Path):
    result, _ = await run(python(r"import sys; sys.stdout.buffer.write(b'a\xffb\x00')"), tmp_path)
    assert result.response == "a\ufffdb\x00"


async def test_a_cancelled_command_and_all_that_it_started_are_gone(tmp_path: Path):
    code = """
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
open("pids.new", "w").write(f"{os.getpid()} {child.pid}")
os.rename("pids.new", "pids")
time.sleep(600)
"""
    context = Context(tmp_path)
    running = asyncio.create_task(python(code).run(request(), context))
    pids = [int(p) for p in (await wait_until(lambda: _read(tmp_path / "pids"), why="it runs")).split()]
    context.cancelled.set()
    result = await running
    assert result.failure is FailureKind.CANCELLED
    await wait_until(lambda: all(is_gone(pid) for pid in pids), why="both processes are gone")


async def test_a_task_that_is_cancelled_leaves_nothing_behind(tmp_path: Path):
    code = "import os, time; open('p.new', 'w').write(str(os.getpid())); os.rename('p.new', 'pids'); time.sleep(600)"
    running = asyncio.create_task(python(code).run(request(), Context(tmp_path)))
    pid = int(await wait_until(lambda: _read(tmp_path / "pids"), why="it runs"))
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await wait_until(lambda: is_gone(pid), why="the process is gone")


async def test_a_command_that_forks_and_exits_gives_its_answer_and_its_child_is_killed(tmp_path: Path):
    code = """
import subprocess, sys
noise = "import time\\nwhile True: print('noise', flush=True); time.sleep(0.01)"
child = subprocess.Popen([sys.executable, "-c", noise])
open("pids", "w").write(str(child.pid))
print("the answer", flush=True)
"""
    result, _ = await run(python(code), tmp_path)
    assert result.response.startswith("the answer")
    pid = int((tmp_path / "pids").read_text())
    await wait_until(lambda: is_gone(pid), why="the child is gone")


@pytest.mark.parametrize(("argv", "output"), [([], "plain"), (["x"], "yaml")])
def test_an_adapter_that_can_not_work_is_refused_when_it_is_made(argv: list[str], output: str):
    with pytest.raises(InvalidMessage):
        CommandAdapter(argv, output=output)


def _read(path: Path) -> str:
    return path.read_text() if path.exists() else ""
