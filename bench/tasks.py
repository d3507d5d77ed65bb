"""Delegated tasks from their end to the prompt for their parent, with one at a time and with many: beside a no-op.

A task ends with a block that cites two files; the conclusion service asks the runner which of them exist, judges, and
has validation queue the prompt. Both services run in one process. The no-op takes the task
and queues a prompt of the same kind at once: no state, no evidence.
"""

import asyncio
import secrets
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from bench.load import SILENCE_S
from bench.options import Options
from bench.rig import BenchmarkFailed, Cpu, Rig, requests, rig
from bench.rows import Row, median_row, paired
from turngate.jetstream.consume import ConsumeLoop, Delivery
from turngate.jetstream.provision import ensure_consumer
from turngate.jetstream.request import Requester
from turngate.process import run as run_loop
from turngate.runner.stat import StatService
from turngate_contracts import codec
from turngate_contracts.headers import SCHEMA, block
from turngate_contracts.messages import SCHEMAS
from turngate_contracts.tasks import TaskFinished
from turngate_contracts.topology import Durability
from turngate_protocol.conclusion import CLOSING_TAG, OPENING_TAG, Task

NAME: Final = "tasks"

_RUNNER: Final = "bench"
_POOL: Final = "bench"
_AT_ONCE: Final = 64
_FILES: Final = ("src/retry.py", "tests/test_retry.py")
_OUTPUT: Final = f"""{"I looked at the call sites first, then wrote the policy. " * 20}
{OPENING_TAG}
status: success
summary: The retry policy and its tests are in place
artifacts: [{", ".join(_FILES)}]
confidence: 0.85
{CLOSING_TAG}
"""
_HEAD: Final = block({SCHEMA: SCHEMAS[TaskFinished]})


class _Round(Struct, frozen=True):
    """A round; `one` is the median from a task's end to its prompt in ms, `many` tasks a second."""

    one: float
    many: float
    cpu: Cpu


def run(options: Options) -> list[Row]:
    """Measure with relaxed durability."""
    with rig("noop-tasks", Durability.RELAXED) as noop, rig("conclusions", Durability.RELAXED) as real:
        noops, reals = run_loop(_alternate(noop, real, options))
    latency, rate, cpu = "task to prompt, no-op", "tasks, no-op", "no-op: CPU, worker"
    return [
        median_row(NAME, latency, [r.one for r in noops], "ms"),
        median_row(NAME, "task to prompt", [r.one for r in reals], "ms", ceiling=latency),
        median_row(NAME, rate, [r.many for r in noops], "tasks/s"),
        median_row(NAME, "tasks", [r.many for r in reals], "tasks/s", ceiling=rate),
        median_row(NAME, "tasks / no-op", paired([r.many for r in reals], [r.many for r in noops])),
        median_row(NAME, cpu, [r.cpu.worker for r in noops], "µs/task"),
        median_row(
            NAME, "conclusion and validation: CPU, worker", [r.cpu.worker for r in reals], "µs/task", ceiling=cpu
        ),
        median_row(NAME, "conclusion and validation: CPU, nats-server", [r.cpu.server for r in reals], "µs/task"),
    ]


async def _alternate(noop: Rig, real: Rig, options: Options) -> tuple[Sequence[_Round], Sequence[_Round]]:
    found: tuple[list[_Round], list[_Round]] = ([], [])
    with tempfile.TemporaryDirectory(prefix="turngate-bench-") as directory:
        for name in _FILES:
            path = Path(directory) / name
            path.parent.mkdir(exist_ok=True)
            path.touch()
        for _ in range(options.rounds):
            for on, rounds in zip((noop, real), found, strict=True):
                rounds.append(await _round(on, directory, options))
    return found


async def _round(on: Rig, directory: str, options: Options) -> _Round:
    async with requests(on) as requester:
        parent = await _Parent.start(on, requester, directory)
        await parent.finish(5, 1)
        one = await parent.finish(options.latency_turns // 2, 1)
        before, began, count = on.cpu(), time.perf_counter(), options.latency_turns * 5
        await parent.finish(count, _AT_ONCE)
        many = count / (time.perf_counter() - began)
        cpu = on.cpu().per_turn_us(before, count)
        await parent.stop()
    return _Round(statistics.median(one), many, cpu)


class _Parent:
    """The runner of tasks and of their parents' sessions: it tells that tasks ended and takes the prompts."""

    def __init__(self, on: Rig, requester: Requester, directory: str) -> None:
        self._requester = requester
        self._subjects = on.topology.subjects
        self._directory = directory
        self._stat = StatService(requester.connection, self._subjects, _RUNNER, [directory])
        stream, consumer = self._subjects.stream("work"), self._subjects.prompt_consumer(_POOL)
        self._loop = ConsumeLoop(requester.connection, stream, consumer, self._on_prompt, window=_AT_ONCE)
        self._prefix = secrets.token_hex(4)
        self._told = 0
        self._waiting: dict[str, asyncio.Future[None]] = {}

    @classmethod
    async def start(cls, on: Rig, requester: Requester, directory: str) -> "_Parent":
        """Answer for files, and take prompts."""
        for stream, config in on.topology.pool_consumers(_POOL):
            await ensure_consumer(requester, stream, config)
        self = cls(on, requester, directory)
        await self._stat.start()
        await self._loop.start()
        return self

    async def stop(self) -> None:
        """Take no more prompts."""
        await self._loop.stop()

    async def finish(self, count: int, at_once: int) -> list[float]:
        """Have tasks end, and return how long each took until its parent was told, in ms.

        Raises:
            BenchmarkFailed: a parent was not told.
        """
        slots, took = asyncio.Semaphore(at_once), list[float]()

        async def one() -> None:
            async with slots:
                began = time.perf_counter()
                await self._one()
                took.append((time.perf_counter() - began) * 1000)

        await asyncio.gather(*(one() for _ in range(count)))
        return took

    async def _one(self) -> None:
        self._told += 1
        session = f"s-{self._prefix}-{self._told}"
        had = self._waiting[session] = asyncio.get_running_loop().create_future()
        record = Task("task", "completed", work_dir=self._directory, output=_OUTPUT)
        body = codec.encode(TaskFinished(session, _RUNNER, _POOL, record))
        await self._requester.publish(self._subjects.task_finished(_POOL, _RUNNER, session), body, _HEAD)
        try:
            async with asyncio.timeout(SILENCE_S):
                await had
        except TimeoutError:
            raise BenchmarkFailed(f"a parent was told nothing within {SILENCE_S:g} s") from None

    def _on_prompt(self, delivery: Delivery) -> None:
        delivery.ack()
        had = self._waiting.pop(codec.decode(delivery.body, _Told, "a prompt").session, None)
        if had is not None and not had.done():
            had.set_result(None)


class _Told(Struct, frozen=True):
    session: str
