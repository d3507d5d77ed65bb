"""The wiring of one console: what it reads and serves, and how it starts and drains."""

import logging
from pathlib import Path

from turngate.console.acting import Acting
from turngate.console.actions import Actions
from turngate.console.api import JsonApi
from turngate.console.app import App
from turngate.console.auth import Auth
from turngate.console.drawing import Drawing
from turngate.console.hub import Hub
from turngate.console.listening import bind
from turngate.console.live import Live
from turngate.console.pages import Pages
from turngate.console.places import ANY, is_loopback, secret_path, tokens_path, url_of
from turngate.console.reading import Requests
from turngate.console.server import HttpServer
from turngate.console.sessions import Sessions, load_secret
from turngate.console.tokens import TokenFile
from turngate.jetstream.connect import Connection
from turngate.jetstream.request import Requester
from turngate.settings import Settings
from turngate_contracts.errors import ErrorCode, TurngateError

log = logging.getLogger(__name__)

# Written whatever the level is: people and scripts look for the address.
_ready = logging.getLogger(f"{__name__}.ready")
_ready.setLevel(logging.INFO)


class NeedsTokens(TurngateError):
    """An address that others reach is to be listened on, and nobody has a token."""

    code = ErrorCode.INVALID_ARGUMENT

    def __init__(self, host: str, path: Path) -> None:
        super().__init__(
            f"others can reach {host}, so the console needs tokens there: make one with "
            f"`turngate console token add NAME --role operator` (in {path}), or listen on 127.0.0.1",
            host=host,
            path=str(path),
        )


class ConsoleService:
    """The console of one process."""

    def __init__(self, connection: Connection, requester: Requester, settings: Settings) -> None:
        self._settings = settings
        topology = settings.topology()
        tokens = TokenFile(tokens_path(settings))
        loopback = is_loopback(settings.console_host)
        if not loopback and not tokens.tokens():
            raise NeedsTokens(settings.console_host, tokens.path)
        sessions = Sessions(load_secret(secret_path(settings)))
        self.hub = Hub(connection, requester, topology.subjects)
        # Where even clients need identities, a browser that needs none would be a way around them.
        open_to_all = loopback and not settings.nats_seed_file
        auth = Auth(sessions, tokens, open_to_all=open_to_all, local_actor=settings.console_actor)
        drawing = Drawing(settings.namespace, auth, self.hub)
        requests = Requests(connection, requester, topology.subjects)
        acting = Acting(requests)
        live = Live(self.hub, auth)
        pages = Pages(auth, self.hub, drawing, requests, connection, requester, topology)
        actions = Actions(auth, drawing, requests, acting)
        api = JsonApi(auth, requests, acting, live)
        self.app = App(auth, self.hub, drawing, live, pages, actions, api, hosts_of(settings)).app
        self._server: HttpServer | None = None
        self.url = ""

    async def start(self) -> None:
        """Follow the events and serve.

        Raises:
            CannotListen: the port is taken.
            Unavailable: the events can't be read.
        """
        listening = bind(self._settings.console_host, self._settings.console_port)
        await self.hub.start()
        self._server = HttpServer(self.app, listening)
        await self._server.start()
        self.url = url_of(self._settings.console_host, listening.getsockname()[1])
        _ready.info("console: %s", self.url, extra={"facts": {"console": self.url}})

    async def stop(self, timeout_ms: int = 10_000) -> bool:  # noqa: ARG002  uvicorn's own grace is shorter
        """Take no more requests, end the streams, and finish what is under way."""
        await self.hub.stop()
        if self._server is not None:
            await self._server.stop()
        return True


def hosts_of(settings: Settings) -> tuple[str, ...]:
    """Return the names that browsers may call this console by."""
    more = tuple(name.strip() for name in settings.console_hosts.split(",") if name.strip())
    return more if settings.console_host in ANY else (settings.console_host, *more)
