"""What a scenario works with: a server and a namespace of its own, services as processes, clients, and the accounts."""

import contextlib
import enum
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

from tests.system.faults.findings import Findings
from tests.system.faults.nurslings import Nursery, Nursling
from tests.system.ledger import Ledger
from tests.system.load import Load
from tests.system.nothing_lost import assert_the_same_is_told_again, assert_the_server_agrees, verdicts_in
from tests.system.observer import Observer
from tests.system.runners import Runners
from tests.waiting import wait_until
from turngate.jetstream.embedded import EmbeddedServer
from turngate.jetstream.provision import provision
from turngate_contracts.topology import Durability, Topology

NAMESPACE = "tg"


class Scale(enum.Enum):
    """How much of a fault: a short form for every run of the tests, or all of it."""

    SHORT = "short"
    FULL = "full"

    def of(self, short: int, full: int) -> int:
        """Return one of two numbers."""
        return full if self is Scale.FULL else short


class Rig:
    """One scenario's own system; make it with `rig`."""

    def __init__(self, server: EmbeddedServer, nursery: Nursery, observer: Observer, runners: Runners, where: Path):
        self.server = server
        self.observer = observer
        self.runners = runners
        self.directory = where
        self.url = server.url
        self.nursery = nursery
        self.processes: list[Nursling] = []
        self.tools = 0
        self._environment = {k: v for k, v in os.environ.items() if not k.startswith("TURNGATE_")} | {
            "TURNGATE_NATS_URL": server.url,
            "TURNGATE_NAMESPACE": NAMESPACE,
            "TURNGATE_DURABILITY": "relaxed",
            "TURNGATE_LOG_FORMAT": "json",
        }

    async def start(self, service: str = "validation", *, count: int = 1, **variables: str) -> list[Nursling]:
        """Start processes of a service and wait until each takes work."""
        started = []
        for _ in range(count):
            name = f"{service}-{len(self.processes) + 1}"
            process = await self.nursery.start(name, service, self._environment | variables)
            self.processes.append(process)
            started.append(process)
        for process in started:
            await process.is_ready()
        return started

    async def tool(self, *arguments: str, **variables: str) -> Nursling:
        """Run `turngate` with arguments to its end."""
        self.tools += 1
        process = await self.nursery.run(f"tool-{self.tools}", arguments, self._environment | variables)
        await process.ended()
        return process

    async def end(self, process: Nursling) -> None:
        """Have a process drain, which it must do well."""
        process.signal(signal.SIGTERM)
        code = await process.ended()
        assert code == 0, f"it ended with {code}: {process.log()[-2000:]}"

    async def load(self, seed: int, *, runners: int = 2, in_flight: int = 24) -> Load:
        """Make the load of fleets, drawn from a seed; it runs for the time of an `async with` block."""
        return Load(await self.runners.several(runners), await self.runners.person(), seed, in_flight=in_flight)

    def crashes(self) -> tuple[str, ...]:
        """Tracebacks in the logs: a fault may delay work, it must not meet errors that nobody handles."""
        return tuple(
            f"process {process.pid} logged: {line[:600]}"
            for process in self.processes
            for line in process.log().splitlines()
            if "Traceback" in line or '"traceback"' in line
        )[:3]

    async def settle(self, ledger: Ledger, *, ask_again: bool = True) -> Findings:
        """Settle the accounts of turns: count what was lost or happened twice, and check all else.

        With `ask_again` whatever was told is asked for again, which must change nothing.
        """
        connection = self.observer.connection
        await wait_until(lambda: connection.is_connected, 30, "the observer is connected again")
        history = await self.observer.history(self.observer.turns)
        given = verdicts_in(history)
        told = [number for number, entry in ledger.reports.items() if entry.verdict is not None]
        problems = list(self.crashes())
        try:
            await assert_the_server_agrees(self.observer, ledger)
            if ask_again:
                await assert_the_same_is_told_again(self.observer, ledger)
        except AssertionError as error:
            problems.append(str(error)[:2000])
        return Findings(
            acknowledged=len(told) + len(ledger.endings) + len(ledger.answers) + len(ledger.expected_prompts),
            lost=sum(number not in given for number in told),
            twice=sum(len(found) > 1 for found in given.values()),
            problems=tuple(problems),
        )


@contextlib.asynccontextmanager
async def rig(directory: Path) -> AsyncIterator[Rig]:
    """Run a server with a provisioned namespace for the time of an `async with` block."""
    directory.mkdir(parents=True, exist_ok=True)  # noqa: ASYNC240  nothing else runs yet
    with EmbeddedServer(directory / "server", sync_always=False) as server:
        async with contextlib.AsyncExitStack() as stack:
            nursery = await stack.enter_async_context(Nursery(directory))
            observer = await Observer.connect(server.url, NAMESPACE)
            stack.push_async_callback(observer.close)
            await provision(observer.requester, Topology(observer.subjects, Durability.RELAXED))
            yield Rig(server, nursery, observer, Runners(server.url, NAMESPACE, stack), directory)


def pause(pid: int) -> None:
    """Have a process stand still, as one does whose machine was suspended."""
    os.kill(pid, signal.SIGSTOP)


def resume(pid: int) -> None:
    """Have it go on."""
    os.kill(pid, signal.SIGCONT)
