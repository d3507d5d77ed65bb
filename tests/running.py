"""A running system inside the test's own process: provisioned, with the validation service, and clients for it."""

import contextlib
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from urllib.parse import urlsplit

from turngate.conclusion.service import ConclusionService
from turngate.deadletter.service import DeadLetterService
from turngate.jetstream.connect import Connection, connect
from turngate.jetstream.provision import provision
from turngate.jetstream.request import Requester
from turngate.login import NOBODY, Login
from turngate.runner import TurnClient
from turngate.settings import Settings
from turngate.validation.service import ValidationService
from turngate_contracts.subjects import Subjects
from turngate_contracts.topology import Durability, Topology


def nobody(_name: str) -> Login:
    """No identities, as on the server that all tests share."""
    return NOBODY


@contextlib.asynccontextmanager
async def requesting(connecting: Awaitable[Connection]) -> AsyncIterator[Requester]:
    """The requests of a connection that is made for them."""
    connection = await connecting
    requester = await Requester.start(connection)
    try:
        yield requester
    finally:
        await requester.stop()
        await connection.close()


class System:
    """What `running` gives a test."""

    def __init__(
        self,
        settings: Settings,
        connection: Connection,
        requester: Requester,
        clients: contextlib.AsyncExitStack,
        login: Callable[[str], Login] = nobody,
    ) -> None:
        self.login = login
        self.settings = settings
        self.connection = connection
        self.requester = requester
        self.subjects = settings.topology().subjects
        self.validation: ValidationService | None = None
        self.conclusion: ConclusionService | None = None
        self.deadletter: DeadLetterService | None = None
        self._clients = clients

    async def client(self, identity: str = "runner-1", pool: str = "pool-1") -> TurnClient:
        """A client that is closed with the system."""
        made = await TurnClient.connect(
            identity,
            pool=pool,
            url=self.settings.nats_url,
            namespace=self.settings.namespace,
            login=self.login(identity),
        )
        return await self._clients.enter_async_context(made)


@contextlib.asynccontextmanager
async def running(
    url: str,
    namespace: str,
    *,
    validation: bool = True,
    conclusion: bool = False,
    deadletter: bool = False,
    login: Callable[[str], Login] = nobody,
    **settings: object,
) -> AsyncIterator[System]:
    """Provision a namespace and run the validation service in it, and the other services where they are wanted.

    With `login` everybody has an identity of their own, the services too.
    """
    given = Settings(nats_url=url, namespace=namespace, durability=Durability.RELAXED, **settings)  # type: ignore[arg-type]
    connection = await connect(url, name="test-system", login=login("admin"))
    async with contextlib.AsyncExitStack() as stack:
        stack.push_async_callback(connection.close)
        requester = await Requester.start(connection)
        stack.push_async_callback(requester.stop)
        await provision(requester, given.topology())
        clients = await stack.enter_async_context(contextlib.AsyncExitStack())
        system = System(given, connection, requester, clients, login)
        if validation:
            system.validation = ValidationService(*await _of(system, "validation", stack), given)
            await system.validation.start()
            stack.push_async_callback(_drain, system.validation)
        if conclusion:
            system.conclusion = ConclusionService(*await _of(system, "conclusion", stack), given)
            await system.conclusion.start()
            stack.push_async_callback(_drain, system.conclusion)
        if deadletter:
            system.deadletter = DeadLetterService(*await _of(system, "deadletter", stack), given)
            await system.deadletter.start()
            stack.push_async_callback(_drain, system.deadletter)
        yield system


async def _of(system: System, service: str, stack: contextlib.AsyncExitStack) -> tuple[Connection, Requester]:
    """The connection of a service: the system's, or one of its own where it has an identity."""
    login = system.login(service)
    if login is NOBODY:
        return system.connection, system.requester
    connection = await connect(system.settings.nats_url, name=service, login=login)
    stack.push_async_callback(connection.close)
    requester = await Requester.start(connection)
    stack.push_async_callback(requester.stop)
    return connection, requester


async def _drain(service: ValidationService | ConclusionService | DeadLetterService) -> None:
    assert await service.stop(), f"{type(service).__name__} did not drain"


def keep_folder(url: str) -> None:
    """Make a stream that stays: with an account's last one its folder goes, and a stream made in that moment fails."""
    config = '{"name":"KEPT","subjects":["kept"],"storage":"file"}'
    _tell(url, f"PUB $JS.API.STREAM.CREATE.KEPT kept.answer {len(config)}\r\n{config}\r\n")


def forget(url: str, namespace: str) -> None:
    """Delete a namespace's streams: a server that keeps hundreds of them makes every later test slower."""
    names = [stream["name"] for stream in Topology(Subjects(namespace)).streams()]
    # An answer is asked for, or the server does nothing, but nobody waits for it.
    _tell(url, "".join(f"PUB $JS.API.STREAM.DELETE.{name} forgotten 0\r\n\r\n" for name in names))


def _tell(url: str, commands: str) -> None:
    """Send commands of the protocol and return when the server has read them."""
    where = urlsplit(url)
    with socket.create_connection((where.hostname or "127.0.0.1", where.port or 4222), timeout=10) as server:
        server.sendall(f'CONNECT {{"verbose":false,"pedantic":false}}\r\n{commands}PING\r\n'.encode())
        received = chunk = server.recv(65536)
        while chunk and b"PONG" not in received:
            received += (chunk := server.recv(65536))
