"""Where a walk happens: a namespace, the service that is ended again and again, and the clients of its flows."""

import contextlib
import os
import re
import signal
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any, Final

from tests.system.faults.nurslings import Nursery, Nursling
from tests.system.ledger import Ledger
from tests.system.observer import Observer
from tests.system.patience import patiently
from tests.system.runners import Runners
from turngate.jetstream.provision import provision
from turngate_contracts.topology import Durability, Topology

_REACHED: Final = re.compile(r"reached effect ([a-z._-]+)")
PRESENCE_MS: Final = 1_200
IMPATIENT: Final = {
    "TURNGATE_DURABILITY": "relaxed",
    "TURNGATE_LOG_FORMAT": "json",
    "TURNGATE_PRESENCE_MS": str(PRESENCE_MS),
    "TURNGATE_WATCHDOG_MS": "300",
    "TURNGATE_FIRST_DELAY_MS": "20",
    "TURNGATE_LONGEST_DELAY_MS": "200",
    "TURNGATE_STAT_TIMEOUT_MS": "5000",
    "TURNGATE_POOL": "pool-1",
}


class Scene:
    """One namespace; make it with `scene`."""

    def __init__(self, nursery: Nursery, observer: Observer, runners: Runners, url: str, directory: Path) -> None:
        self.observer = observer
        self.subjects = observer.subjects
        self.requester = observer.requester
        self.runners = runners
        self.ledger = Ledger()
        self.directory = directory
        self.url = url
        self.notes: dict[str, Any] = {}
        """What a flow keeps for the settling of its accounts."""
        self.reached: set[str] = set()
        self._started = 0
        self._nursery = nursery
        self._environment = {k: v for k, v in os.environ.items() if not k.startswith("TURNGATE_")} | IMPATIENT
        self._environment |= {"TURNGATE_NATS_URL": url, "TURNGATE_NAMESPACE": observer.subjects.namespace}

    async def start(self, service: str, **variables: str) -> Nursling:
        """Start a process of a service; `is_ready` says when it takes work."""
        self._started += 1
        name = f"{self.subjects.namespace}-{service}-{self._started}"
        return await self._nursery.start(name, service, self._environment | variables)

    async def clean(self, service: str, **variables: str) -> Nursling:
        """Start a process, wait until it takes work, and have what a dead one held come again soon."""
        process = await self.start_and_wait(service, **variables)
        await self.observer.hasten()
        return process

    async def start_and_wait(self, service: str, **variables: str) -> Nursling:
        """Start a process and wait until it takes work."""
        process = await self.start(service, **variables)
        await process.is_ready()
        return process

    async def drain(self, process: Nursling) -> None:
        """Have a process end, which it must do well."""
        process.signal(signal.SIGTERM)
        code = await process.ended()
        assert code == 0, f"it ended with {code}: {process.log()[-2000:]}"

    def note_reached(self, process: Nursling) -> None:
        """Remember the effects that a process with a crash point has come to."""
        self.reached.update(_REACHED.findall(process.log()))

    async def consumer(self, stream: str, name: str, **changes: Any) -> None:
        """Change a consumer."""
        there = (await self.observer.consumer(stream, name))["config"]
        wanted = {"stream_name": stream, "config": {**there, **changes}}
        await self.requester.api(f"CONSUMER.DURABLE.CREATE.{stream}.{name}", wanted)

    @contextlib.asynccontextmanager
    async def refusing(self, *streams: str) -> AsyncIterator[None]:
        """Have streams refuse whatever would be stored, for the time of the block."""
        before = [(await self.observer.stream(stream))["config"] for stream in streams]
        try:
            for config in before:
                # Where old messages would make room, none of any size is taken.
                full = {"max_bytes": 1} if config["discard"] == "new" else {"max_msg_size": 1}
                await self._update(config | full)
            yield
        finally:
            for config in before:
                await self._update(config)

    async def _update(self, config: dict[str, Any]) -> None:
        await patiently(lambda: self.requester.api(f"STREAM.UPDATE.{config['name']}", config))


Flow = Callable[[Scene, str], Coroutine[Any, Any, None]]
"""Plays what a service does once; the text is part of the names of its sessions. It is patient."""


@contextlib.asynccontextmanager
async def scene(nursery: Nursery, url: str, namespace: str, directory: Path) -> AsyncIterator[Scene]:
    """Provision a namespace and give a scene in it."""
    async with contextlib.AsyncExitStack() as stack:
        observer = await Observer.connect(url, namespace)
        stack.push_async_callback(observer.close)
        await provision(observer.requester, Topology(observer.subjects, Durability.RELAXED, presence_ms=PRESENCE_MS))
        yield Scene(nursery, observer, Runners(url, namespace, stack), url, directory)
