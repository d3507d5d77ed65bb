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

from bench.loop import run
from bench.noop import NoopService, NoopSupervisor
from turngate.jetstream.connect import Connection, connect
from turngate.jetstream.provision import provision
from turngate.jetstream.request import Requester
from turngate.registry import Service
from turngate.settings import Settings
from turngate.supervisor.service import SupervisorService
from turngate.validation.service import ValidationService
from turngate_contracts.topology import Durability

KINDS: Final[dict[str, Callable[[Connection, Requester, Settings], Service]]] = {
    "noop": lambda connection, _requester, settings: NoopService(connection, settings),
    "validation": ValidationService,
    "noop-supervisor": NoopSupervisor,
    "supervisor": SupervisorService,
}


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
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.WARNING, format=f"{arguments.kind}: %(message)s")
    # Ctrl-C reaches the whole group; the benchmark decides when its workers end.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    run(serve(arguments.kind, Settings(nats_url=arguments.url, durability=Durability(arguments.durability))))


if __name__ == "__main__":
    main()
