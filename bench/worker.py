"""One service in a process of its own: `python -m bench.worker KIND --url URL --durability relaxed`.

It provisions its namespace, says `ready` on standard output, and serves until its standard input closes: however the
benchmark ends, the worker ends with it.
"""

import argparse
import asyncio
import logging
import signal
import sys
from collections.abc import Callable
from typing import Final

from bench.checked import CheckedService
from bench.noop import BareService, Idle, NoopQuestions, NoopService, NoopSupervisor, NoopTasks
from bench.ungrouped import OneByOneService, PipelinedService
from turngate.conclusion.service import ConclusionService
from turngate.jetstream.connect import Connection, connect
from turngate.jetstream.provision import provision
from turngate.jetstream.request import Requester
from turngate.process import run
from turngate.registry import Service
from turngate.settings import Settings
from turngate.supervisor.service import SupervisorService
from turngate.validation.service import ValidationService
from turngate_contracts.topology import Durability


class Conclusions:
    """The conclusion service and the validation service, which queues its prompts, in one process."""

    def __init__(self, connection: Connection, requester: Requester, settings: Settings) -> None:
        self._services = (
            ValidationService(connection, requester, settings),
            ConclusionService(connection, requester, settings),
        )

    async def start(self) -> None:
        """Start both."""
        for service in self._services:
            await service.start()

    async def stop(self, timeout_ms: int = 10_000) -> bool:
        """Stop both, and say whether all that was taken is done."""
        return all([await service.stop(timeout_ms) for service in self._services])


KINDS: Final[dict[str, Callable[[Connection, Requester, Settings], Service]]] = {
    "idle": lambda _connection, _requester, _settings: Idle(),
    "bare": BareService,
    "noop": NoopService,
    "checked": CheckedService,
    "faststream": lambda _connection, requester, settings: _faststream(requester, settings),
    "taskiq": lambda _connection, requester, settings: _taskiq(requester, settings),
    "validation": ValidationService,
    "pipelined": PipelinedService,
    "one-by-one": OneByOneService,
    "noop-questions": NoopQuestions,
    "noop-tasks": NoopTasks,
    "conclusions": Conclusions,
    "noop-supervisor": NoopSupervisor,
    "supervisor": SupervisorService,
}


def _faststream(requester: Requester, settings: Settings) -> Service:
    from bench.peer_faststream import FastStreamService

    return FastStreamService(requester, settings)


def _taskiq(requester: Requester, settings: Settings) -> Service:
    from bench.peer_taskiq import TaskiqService

    return TaskiqService(requester, settings)


async def serve(kind: str, settings: Settings) -> None:
    """Run one service until standard input closes or a signal asks for the end."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    loop.add_reader(sys.stdin.fileno(), stop.set)
    connection = await connect(settings.nats_url, name=f"bench-{kind}")
    requester = await Requester.start(connection)
    await provision(requester, settings.topology())
    service = KINDS[kind](connection, requester, settings)
    await service.start()
    print("ready", flush=True)
    await stop.wait()
    loop.remove_reader(sys.stdin.fileno())
    await service.stop(2_000)
    await requester.stop()
    await connection.close()


def main() -> None:
    """Read the arguments and serve."""
    parser = argparse.ArgumentParser(prog="python -m bench.worker", description=__doc__)
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--url", required=True)
    parser.add_argument("--durability", choices=[d.value for d in Durability], default=Durability.RELAXED.value)
    parser.add_argument("--replicas", type=int, default=1)
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.WARNING, format=f"{arguments.kind}: %(message)s")
    # Ctrl-C reaches the whole group; the benchmark decides when its workers end.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    durability, replicas = Durability(arguments.durability), arguments.replicas
    run(serve(arguments.kind, Settings(nats_url=arguments.url, durability=durability, replicas=replicas)))


if __name__ == "__main__":
    main()
