"""Watching one process: its metrics, whether it is alive, and whether it takes work, over HTTP.

Healthy is a process whose loop still answers and whose connection may still come back; one that is not should be
started again. Ready is one that takes work: it was started, reaches the server and its consumers, and does not drain.
"""

import logging
from collections.abc import Mapping

import msgspec

from turngate.jetstream.connect import Connection
from turngate.jetstream.request import Requester
from turngate.metrics.endpoint import Endpoint, Page
from turngate.metrics.gather import CONTENT_TYPE, Gathered, MetricsMissing, is_available, text_of
from turngate.metrics.observed import Observable, Observed
from turngate.metrics.sampler import Sampler
from turngate.metrics.watches import DeliveryWatch, RequestWatch
from turngate.settings import Settings

log = logging.getLogger(__name__)


class Monitor:
    """Watches the services of a process and serves what it sees; does nothing where no port is set."""

    def __init__(self, settings: Settings, connection: Connection, requester: Requester, names: list[str]) -> None:
        self._settings = settings
        self._connection = connection
        self._names = names
        self._observed: dict[str, Observed] = {}
        self._ready = False
        self._sampler = Sampler(requester, settings.topology(), supervises="supervisor" in names)
        self.endpoint = Endpoint({"/metrics": self._metrics, "/healthz": self._health, "/readyz": self._readiness})

    async def start(self) -> None:
        """Serve; not ready yet.

        Raises:
            PortTaken: the address can't be listened on.
        """
        if not self._settings.metrics_port:
            return
        await self.endpoint.start(self._settings.metrics_host, self._settings.metrics_port)
        if not is_available():
            log.warning("%s; /healthz and /readyz are served all the same", MetricsMissing().message)
        log.info("metrics on http://%s:%d/metrics", self._settings.metrics_host, self.endpoint.port)

    async def watch(self, services: Mapping[str, object]) -> None:
        """Watch services, which have been started: from now on the process is ready."""
        self._ready = True
        if not self._settings.metrics_port:
            return
        for name, service in services.items():
            if isinstance(service, Observable):
                self._observed[name] = service.observed()
        if is_available():
            self._hang_watches()
            await self._sampler.start()

    def draining(self) -> None:
        """Say from now on that this process takes no more work."""
        self._ready = False

    async def stop(self) -> None:
        """Serve no more."""
        await self._sampler.stop()
        await self.endpoint.stop()

    def _hang_watches(self) -> None:
        for observed in self._observed.values():
            for loop in observed.all_loops:
                loop.watch = DeliveryWatch()
            for api in observed.apis:
                api.watch = RequestWatch()

    def _metrics(self) -> Page:
        gathered = Gathered()
        gathered.add_process(self._names, not self._not_ready())
        gathered.add_connection(self._connection)
        for name, observed in self._observed.items():
            gathered.add_service(name, observed)
        gathered.add_figures(self._sampler.figures)
        try:
            return Page(200, text_of(gathered.families()), CONTENT_TYPE)
        except MetricsMissing as error:
            return Page(501, f"{error.message}\n".encode())

    def _health(self) -> Page:
        if self._connection.closed_for_good.is_set():
            return Page(503, b"the connection is closed for good\n")
        return Page(200, b"ok\n")

    def _readiness(self) -> Page:
        reasons = self._not_ready()
        body = msgspec.json.encode({"ready": not reasons, "services": self._names, "reasons": reasons})
        return Page(503 if reasons else 200, body + b"\n", "application/json")

    def _not_ready(self) -> list[str]:
        reasons = [] if self._ready else ["it is starting or draining"]
        if not self._connection.is_connected:
            reasons.append("the NATS server is not reached")
        loops = [loop for observed in self._observed.values() for loop in observed.all_loops]
        reasons += [f"consumer {loop.consumer} of {loop.stream} is gone" for loop in loops if loop.gone]
        return reasons
