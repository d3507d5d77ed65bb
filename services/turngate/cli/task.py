"""`turngate task`: telling that a delegated task ended, as its runner does."""

import argparse
import time
from pathlib import Path
from typing import TYPE_CHECKING

from turngate.cli.commands import OK, Parser, seconds, utf8
from turngate.cli.conclusion import output_of
from turngate.cli.connected import add_connection, with_client
from turngate.cli.inputs import STDIN

if TYPE_CHECKING:
    from turngate.runner import TurnClient
    from turngate_protocol.conclusion import Task

_STATES = ("completed", "failed", "cancelled")


def add_arguments(parser: Parser) -> None:
    """Add `finish`."""
    parser.explain(
        "Tell that delegated tasks ended, as their runner does.",
        """
        my-agent 'Add retries' | turngate task finish s1 task-7
        """,
    )
    _add_finish(parser.add_command("finish", "tell that a task ended, and print what was concluded"))


def _add_finish(parser: Parser) -> None:
    parser.explain(
        """
        Tell that a task ended, with the output of its agent, and print what was concluded.
        Until then this command is the task's runner: it answers which of the cited files
        exist, for files below --work-dir and --root only. Telling the same again is harmless.
        Exit code 1 unless it is a success that may be believed.
        """,
        """
        turngate task finish s1 task-7 output.txt --work-dir ~/project
        my-agent 'Add retries' | turngate task finish s1 task-7 --tool-calls 12
        turngate task finish s1 task-8 --status failed --error 'out of memory' --exit-code 137 /dev/null
        turngate task finish s1 task-9 output.txt --no-wait
        """,
    )
    parser.add_argument("session", metavar="SESSION", type=utf8, help="the session that delegated the task")
    parser.add_argument("task", metavar="TASK", type=utf8, help="the task's id")
    parser.add_argument("file", nargs="?", default=STDIN, metavar="FILE", help="the output; - or none: standard input")
    parser.add_argument("--status", choices=_STATES, default=_STATES[0], help="how the task ended (default completed)")
    parser.add_argument("--exit-code", type=int, default=None, metavar="N", help="the agent's exit code")
    parser.add_argument("--error", type=utf8, default="", metavar="TEXT", help="what went wrong")
    parser.add_argument("--engine", type=utf8, default="", metavar="NAME", help="what ran the agent")
    parser.add_argument("--model", type=utf8, default="", metavar="NAME", help="the model that it ran")
    parser.add_argument("--work-dir", default=".", metavar="DIR", help="where relative paths start (default: here)")
    parser.add_argument("--project", default="", metavar="DIR", help="the project's path (default: --work-dir)")
    parser.add_argument("--root", action="append", default=[], metavar="DIR", help="answer for files below this too")
    parser.add_argument("--tool-calls", type=int, default=None, metavar="N", help="how many tool calls were seen")
    parser.add_argument(
        "--timeout", type=seconds(0, 86_400), default=30.0, metavar="S", help="how long to wait (default 30)"
    )
    parser.add_argument("--no-wait", action="store_true", help="end once it is stored, and answer for no files")
    parser.add_json("the conclusion's state and revision; with --no-wait what was stored")
    add_connection(parser, "identity", "pool")
    parser.runs(_finish)


def _finish(args: argparse.Namespace) -> int:
    task, roots = _task(args), [_absolute(root) for root in (args.work_dir, *args.root)]

    async def work(client: "TurnClient") -> int:
        from turngate.cli import conclusion_shown
        from turngate.cli.output import print_json
        from turngate.terminal import Terminal

        timeout_ms = int(args.timeout * 1000)
        if not args.no_wait:
            await client.serve_stat(roots)
        stored = await client.finish_task(args.session, task, timeout_ms=timeout_ms)
        if not args.no_wait:
            told = await client.conclusion(args.session, args.task, wait_ms=timeout_ms)
            return conclusion_shown.found(told, as_json=args.json)
        if args.json:
            print_json(stored)
        else:
            cut = f"; {stored.output_cut} bytes of its output were left out" if stored.output_cut else ""
            Terminal().line(f"task {stored.task} of session {stored.session} is stored{cut}")
        return OK

    return with_client(args, work)


def _task(args: argparse.Namespace) -> "Task":
    from turngate_protocol.conclusion import Task

    work_dir = _absolute(args.work_dir)
    return Task(
        args.task,
        args.status,
        engine=args.engine,
        model=args.model,
        work_dir=work_dir,
        project_path=_absolute(args.project) if args.project else work_dir,
        output=output_of(args.file),
        error=args.error,
        exit_code=args.exit_code,
        finished_at_ms=time.time_ns() // 1_000_000,
        tool_calls=args.tool_calls,
    )


def _absolute(directory: str) -> str:
    return str(Path(directory).expanduser().resolve())
