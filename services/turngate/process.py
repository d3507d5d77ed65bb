"""Running services as a process: connect, provision, start, say that it is ready, and drain when told to end.

SIGTERM and SIGINT drain: nothing more is taken, what is under way is finished and acknowledged, the connection is
closed. A second signal ends the process at once, which is safe too: what it held is delivered to another process. The
process also ends when its connection is closed for good, and, where it was started by another one of ours, with that.
"""

import asyncio
import contextlib
import gc
import logging
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from typing import Any, Final, TypeVar

import nats.errors

from turngate import tracing
from turngate.children import Children
from turngate.clock import system_clock
from turngate.jetstream.connect import Connection, NotPermitted, connect
from turngate.jetstream.provision import provision
from turngate.jetstream.request import Requester
from turngate.jetstream.watermarks import Watermarks
from turngate.logs import without_secrets
from turngate.metrics.monitor import Monitor
from turngate.registry import CONSOLE, Service, factory
from turngate.settings import Settings
from turngate_contracts.errors import Unavailable

T = TypeVar("T")

log = logging.getLogger(__name__)

DRAIN_MS: Final = 10_000
"""How long each service may take to finish what is under way."""
PARENT_CHECK_S: Final = 0.5
YOUNG_OBJECTS: Final = 20_000
"""How many containers must be made and not freed until cycles are looked for. What a full window of messages holds is
less, and has no cycles: it would else be walked through for every few of them, at 4 to 6 % of a validation process."""

# Written whatever the level is: scripts and supervisors wait for this line.
_ready = logging.getLogger(f"{__name__}.ready")
_ready.setLevel(logging.INFO)


class ConnectionClosed(Unavailable):
    """The NATS server ended the connection for good, for instance because it refuses this identity."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"the NATS server closed the connection for good ({reason}); see its log, then start again")


class TopologyNotOurs(Unavailable):
    """Streams are missing or older, and this identity may not change them."""

    def __init__(self, namespace: str, subject: str) -> None:
        super().__init__(
            f"the streams of namespace {namespace} are missing or older than this version, and this identity may not"
            f" change them ({subject}); run `turngate provision` with the administrator's seed",
            namespace=namespace,
        )


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine as what a process is for: in uvloop's event loop where it can be imported, else asyncio's."""
    gc.set_threshold(YOUNG_OBJECTS, *gc.get_threshold()[1:])
    loop_factory: Callable[[], asyncio.AbstractEventLoop] | None = None
    with contextlib.suppress(ImportError):
        import uvloop

        loop_factory = uvloop.new_event_loop
    with asyncio.Runner(loop_factory=loop_factory) as runner:
        return runner.run(main)


class Ending:
    """Why and when the process ends. Make it inside of the event loop, before anything that takes time."""

    def __init__(self, parent: int = 0) -> None:
        """Take over SIGTERM and SIGINT.

        Args:
            parent: process id of the process that this one ends with; 0 for none.
        """
        self.wanted = asyncio.Event()
        self.reason = ""
        self.error: Exception | None = None
        self._watch: asyncio.Task[None] | None = None
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._on_signal, number)
        if parent:
            self._watch = asyncio.create_task(self._follow(parent), name="turngate-parent")

    def want(self, reason: str) -> None:
        """Have the process drain; the first reason is kept."""
        self.reason = self.reason or reason
        self.wanted.set()

    def fail(self, error: Exception) -> None:
        """Have the process drain, and then end with an error."""
        self.error = self.error or error
        self.want(str(error))

    def _on_signal(self, number: int) -> None:
        if self.wanted.is_set():
            # A second one: whoever sends it does not want to wait. What is not acknowledged is delivered again.
            sys.stderr.flush()
            os._exit(128 + number)
        self.want(signal.Signals(number).name)

    async def _follow(self, parent: int) -> None:
        # No event tells of another process's end everywhere; a changed parent id does.
        while os.getppid() == parent:  # noqa: ASYNC110
            await asyncio.sleep(PARENT_CHECK_S)
        self.want("the process that started this one has ended")


@contextlib.asynccontextmanager
async def running(
    settings: Settings, names: Sequence[str], *, accept_regression: bool = False
) -> AsyncIterator[Connection]:
    """Connect, provision and run services for as long as the context lasts; then drain them.

    Args:
        settings: where the server is, and how the services are set.
        names: which services, see `turngate.registry`.
        accept_regression: whether buckets that lost saves are taken as they are.

    Raises:
        NoServer: nobody answered.
        StreamRegressed: a bucket lost saves that it had acknowledged.
        TurngateError: the topology can't be made; the error says why.
    """
    identity = f"turngate-{'-'.join(names)}-{os.getpid()}"
    connection = await connect(
        settings.nats_url, name=identity, timeout_ms=settings.connect_timeout_ms, login=settings.login()
    )
    requester = await Requester.start(connection)
    monitor = Monitor(settings, connection, requester, list(names))
    started: dict[str, Service] = {}
    try:
        await monitor.start()
        # A console with an identity of its own reads; what there is to read it takes as it is.
        if list(names) != [CONSOLE] or not settings.nats_seed_file:
            await _prepare(requester, settings, accept_regression=accept_regression)
        for name in names:
            service = factory(name)(connection, requester, settings)
            started[name] = service
            await service.start()
        await monitor.watch(started)
        yield connection
    finally:
        monitor.draining()
        await _drain(list(started.values()))
        await monitor.stop()
        await requester.stop()
        await _close(connection)


async def _prepare(requester: Requester, settings: Settings, *, accept_regression: bool) -> None:
    """Make sure that the topology is what this version needs, and that nothing of it was lost."""
    topology = settings.topology()
    try:
        made = await provision(requester, topology)
    except NotPermitted as error:
        raise TopologyNotOurs(topology.subjects.namespace, str(error.details["subject"])) from None
    if made.created or made.updated:
        log.info("provisioned: %d streams made, %d updated", len(made.created), len(made.updated))
    watermarks = Watermarks(requester, topology, system_clock(settings.clock_offset_ms))
    if accept_regression:
        await watermarks.accept()
    await watermarks.check()


async def serve(
    settings: Settings,
    names: Sequence[str],
    ending: Ending,
    *,
    children: Children | None = None,
    on_ready: Callable[[], None] | None = None,
    accept_regression: bool = False,
) -> None:
    """Run services until the process should end, or until the connection is closed for good.

    Args:
        settings: where the server is, and how the services are set.
        names: which services.
        ending: when to end; made before anything that takes time.
        children: processes that run beside this one, started when this one is ready.
        on_ready: called once when this process takes work.
        accept_regression: as for `running`.

    Raises:
        ConnectionClosed: the server does not want this connection.
        NoServer, StreamRegressed, TurngateError: as for `running`.
        Exception: what `ending` failed with.
    """
    tracing.set_up("-".join(names))
    async with running(settings, names, accept_regression=accept_regression) as connection:
        if children is not None:
            children.start()
        try:
            _say_ready(settings, names)
            if on_ready is not None:
                on_ready()
            await _until_ending(ending, connection)
            log.info("draining: %s", ending.reason)
        finally:
            if children is not None:
                await children.stop()
    await asyncio.to_thread(tracing.shut_down)
    log.info("ended")
    if ending.error is not None:
        raise ending.error


def _say_ready(settings: Settings, names: Sequence[str]) -> None:
    url = without_secrets(settings.nats_url)
    facts = {"ready": list(names), "url": url, "namespace": settings.namespace}
    _ready.info("ready: %s on %s, namespace %s", ", ".join(names), url, settings.namespace, extra={"facts": facts})


async def _until_ending(ending: Ending, connection: Connection) -> None:
    waits = [asyncio.create_task(event.wait()) for event in (ending.wanted, connection.closed_for_good)]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in waits:
            task.cancel()
    if not ending.wanted.is_set():
        raise ConnectionClosed(str(connection.last_error or "no reason given"))


async def _close(connection: Connection) -> None:
    try:
        await connection.close()
    except Exception as error:  # noqa: BLE001  in the middle of a reconnect its socket may be gone already
        log.info("the connection was gone before it was closed: %s", error)


async def _drain(services: Sequence[Service]) -> None:
    # The last one started may depend on those before it, so it ends first.
    for service in reversed(services):
        try:
            if not await service.stop(DRAIN_MS):
                name = type(service).__name__
                log.warning("%s did not finish in %d ms; what is left is delivered again", name, DRAIN_MS)
        except nats.errors.Error as error:
            # The connection is gone, and with it everything that was to be told over it.
            log.warning("%s could not be drained: %s", type(service).__name__, error)
        except Exception:  # one service's trouble must not keep the others from draining
            log.exception("draining %s failed", type(service).__name__)
