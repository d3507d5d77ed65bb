"""The command adapter: any command line agent, run as a process group that dies with its role run.

The prompt goes to the command's standard input, or into a file where the command line names `{prompt_file}`. Nothing is
passed through a shell. The agent sees only the environment variables that are allowed. Its output is read line by line,
bounded, and understood by a reader of `streams`; whatever it leaves running is killed with its group.
"""

import asyncio
import contextlib
import os
import re
import shutil
import signal
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from turngate.runner.adapters.base import RoleContext, RoleResult, failed
from turngate.runner.adapters.streams import READERS, Ended, Reader
from turngate_contracts.errors import InvalidMessage
from turngate_protocol.esm.classify import FailureKind
from turngate_protocol.esm.evidence import ToolEvent
from turngate_protocol.esm.roles import RoleRequest
from turngate_protocol.text import trim

OUTPUT_BYTES: Final = 16 * 1024 * 1024
"""Most bytes of output that are read; an agent that writes more is stopped."""
LINE_BYTES: Final = 4 * 1024 * 1024
"""Longest line that is understood; what is longer is cut."""
ERRORS_BYTES: Final = 4 * 1024
"""How much of the end of its error output a failure quotes."""
END_S: Final = 5.0
"""How long an agent may take to end after it was told to, before it is killed."""
ALLOWED: Final = ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "TMPDIR", "TZ", "TERM")
"""Environment variables that every agent sees."""
LEFT_OVER_S: Final = 1.0
"""How long is still read from what an agent left behind when it ended."""
EXIT_CHECK_S: Final = 0.02

_READ: Final = 65536


class CommandAdapter:
    """Runs one command line for each role run.

    Args:
        argv: the command line; `{prompt_file}`, `{work_dir}`, `{role}`, `{tools}` and `{session}` are replaced.
        output: how its output is read: `plain`, `events`, `claude`, `codex` or `opencode`.
        allowed: names of further environment variables that the agent may see.
        environment: where their values come from.

    Raises:
        InvalidMessage: there is no command, or no such reader.
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        output: str = "plain",
        allowed: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
    ) -> None:
        if not argv:
            raise InvalidMessage("a command adapter needs a command line, such as -- my-agent --task -")
        if output not in READERS:
            raise InvalidMessage(f"output {output[:80]!a} is none of {', '.join(READERS)}")
        self._argv = tuple(argv)
        self._reader = READERS[output]
        seen = os.environ if environment is None else environment
        self._environment = {name: seen[name] for name in (*ALLOWED, *allowed) if name in seen}

    async def run(self, request: RoleRequest, context: RoleContext) -> RoleResult:
        """Run one role as a process; see `Adapter.run`."""
        if not context.work_dir.is_dir():
            return failed(f"the work directory {context.work_dir} does not exist on this host")
        with tempfile.TemporaryDirectory(prefix="turngate-role-") as directory:
            prompt_file = Path(directory) / "prompt.md"
            prompt_file.write_text(request.prompt, encoding="utf-8", errors="replace")
            values = {
                "prompt_file": str(prompt_file),
                "work_dir": str(context.work_dir),
                "role": request.role.value,
                "tools": ",".join(request.tools or ()),
                "session": request.session_id,
            }
            argv = _filled(self._argv, values)
            names_file = any("{prompt_file}" in part for part in self._argv)
            try:
                process = await asyncio.create_subprocess_exec(
                    *argv,
                    stdin=asyncio.subprocess.DEVNULL if names_file else asyncio.subprocess.PIPE,
                    stdout=asyncio.subprocess.PIPE,
                    stderr=asyncio.subprocess.PIPE,
                    cwd=context.work_dir,
                    env=self._environment,
                    start_new_session=True,
                )
            except (OSError, ValueError) as error:
                where = "" if os.sep in argv[0] or shutil.which(argv[0]) else "; it is not on PATH"
                return failed(f"{argv[0]} can't be started: {error}{where}")
            run = _Run(process, self._reader(), context)
            try:
                return await run.to_end(b"" if names_file else request.prompt.encode("utf-8", "replace"))
            finally:
                await run.kill()


class _Run:
    """One process and what it says."""

    def __init__(self, process: asyncio.subprocess.Process, reader: Reader, context: RoleContext) -> None:
        self._process = process
        self._reader = reader
        self._context = context
        self._errors = b""
        self._too_much = False

    async def to_end(self, prompt: bytes) -> RoleResult:
        """Give it the prompt, read what it says, and return how it ended."""
        talking = [asyncio.create_task(self._write(prompt)), asyncio.create_task(self._read_errors())]
        reading = asyncio.create_task(self._read())
        cancelled = asyncio.create_task(self._context.cancelled.wait())
        try:
            await asyncio.wait({reading, cancelled}, return_when=asyncio.FIRST_COMPLETED)
            if not reading.done():
                await self._stop()
                return failed("it was told to stop", FailureKind.CANCELLED, tokens=self._reader.end().tokens)
            reading.result()
            if self._too_much:
                await self._stop()
                return failed(f"it wrote more than {OUTPUT_BYTES} bytes of output", tokens=self._reader.end().tokens)
            code = await self._exited()
            # A child that it left behind may hold its error output open: what was said by now is enough.
            await asyncio.wait(talking, timeout=0.5)
            return self._result(self._reader.end(), code)
        finally:
            for task in (*talking, reading, cancelled):
                task.cancel()
            await asyncio.gather(*talking, reading, cancelled, return_exceptions=True)

    async def kill(self) -> None:
        """End the whole process group, whatever is left of it."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        await self._exited()
        # asyncio has no public way to let go of pipes that a process outside of the group may hold open for ever.
        transport: asyncio.SubprocessTransport = self._process._transport  # type: ignore[attr-defined]
        transport.close()
        await self._process.wait()

    async def _stop(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGTERM)
        try:
            async with asyncio.timeout(END_S):
                await self._exited()
        except TimeoutError:
            await self.kill()

    async def _write(self, prompt: bytes) -> None:
        if self._process.stdin is None:
            return
        # An agent need not read its prompt to the end.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self._process.stdin.write(prompt)
            await self._process.stdin.drain()
        self._process.stdin.close()

    async def _read(self) -> None:
        async for line in self._lines():
            for said in self._reader.feed(line):
                if isinstance(said, ToolEvent):
                    self._context.tool_event(said)
                else:
                    self._context.progress(said)

    async def _lines(self) -> AsyncIterator[bytes]:
        stream = self._process.stdout
        if stream is None:
            return
        left = OUTPUT_BYTES
        kept: list[bytes] = []
        ended = asyncio.create_task(self._ended())
        try:
            while chunk := await _next_chunk(stream, ended):
                left -= len(chunk)
                if left < 0:
                    self._too_much = True
                    return
                *whole, rest = chunk.split(b"\n")
                for part in whole:
                    kept.append(part)
                    yield b"".join(kept)[:LINE_BYTES].removesuffix(b"\r")
                    kept = []
                kept.append(rest)
            if any(kept):
                yield b"".join(kept)[:LINE_BYTES]
        finally:
            ended.cancel()

    async def _exited(self) -> int:
        # `wait` also waits for the pipes, which a child of the agent may hold open.
        while self._process.returncode is None:  # noqa: ASYNC110  asyncio tells of it in no other way
            await asyncio.sleep(EXIT_CHECK_S)
        return self._process.returncode

    async def _ended(self) -> None:
        await self._exited()
        # Its own last words are still in the pipe; a child that it left behind could talk for ever.
        await asyncio.sleep(LEFT_OVER_S)

    async def _read_errors(self) -> None:
        stream = self._process.stderr
        while stream is not None and (chunk := await stream.read(_READ)):
            self._errors = (self._errors + chunk)[-ERRORS_BYTES:]

    def _result(self, ended: Ended, code: int) -> RoleResult:
        said = trim(self._errors.decode("utf-8", "replace"))
        if ended.failure is not None and (code == 0 or ended.failure is not FailureKind.INCOMPLETE):
            return RoleResult(ended.response, ended.tokens, ended.failure, ended.message)
        if code != 0:
            how = f"it ended with exit code {code}" if code > 0 else f"signal {-code} ended it"
            return failed(f"{how}: {said or ended.message or 'it said nothing'}", tokens=ended.tokens)
        return RoleResult(ended.response, ended.tokens)


async def _next_chunk(stream: asyncio.StreamReader, ended: "asyncio.Task[None]") -> bytes:
    """Return what comes next, or nothing at the end: of the output, or of the agent whose child holds it open."""
    reading = asyncio.ensure_future(stream.read(_READ))
    await asyncio.wait({reading, ended}, return_when=asyncio.FIRST_COMPLETED)
    if reading.done() and not ended.done():
        return reading.result()
    reading.cancel()
    await asyncio.gather(reading, return_exceptions=True)
    return b""


def _filled(argv: Sequence[str], values: Mapping[str, str]) -> list[str]:
    """Replace the placeholders; other braces stay as they are, so that JSON can be an argument."""
    places = re.compile("|".join(re.escape(f"{{{name}}}") for name in values))
    # In one pass: what a directory is called is not looked at again.
    return [places.sub(lambda place: values[place[0][1:-1]], part) for part in argv]
