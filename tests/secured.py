"""A server with accounts, and everybody's identity on it."""

import contextlib
import os
import signal
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

from tests.running import requesting
from tests.waiting import wait_until
from turngate.auth.certificates import make_certificates
from turngate.auth.directory import ADMIN, AuthDirectory
from turngate.jetstream.connect import Connection, connect
from turngate.jetstream.embedded import EmbeddedServer
from turngate.jetstream.provision import provision
from turngate.jetstream.request import Requester
from turngate.login import Login
from turngate.registry import factory
from turngate.runner import TurnClient
from turngate.settings import Settings
from turngate_contracts.permissions import Kind
from turngate_contracts.service_permissions import SERVICES
from turngate_contracts.subjects import Subjects
from turngate_contracts.topology import Durability, Topology

POOL, OTHER_POOL = "web", "gpu"
RUNNERS = {"r1": (POOL,), "r2": (POOL,), "r3": (OTHER_POOL,)}
PEOPLE = {"ann": Kind.OPERATOR, "bob": Kind.OPERATOR, "vic": Kind.VIEWER}


class Secured:
    """What `secured` gives a test."""

    def __init__(self, server: EmbeddedServer, directory: AuthDirectory, tls_ca: str = "") -> None:
        self.server = server
        self.directory = directory
        self.topology = directory.listed().topology
        self.subjects = self.topology.subjects
        self.tls_ca = tls_ca

    def login(self, name: str) -> Login:
        return Login(str(self.directory.seed_file(name)), tls_ca=self.tls_ca)

    def settings(self, name: str, **more: Any) -> Settings:
        """The settings of a process that acts as this identity."""
        return Settings(
            nats_url=self.server.url,
            namespace=self.subjects.namespace,
            durability=Durability.RELAXED,
            nats_seed_file=str(self.directory.seed_file(name)),
            tls_ca=self.tls_ca,
            **more,
        )

    async def connection(self, name: str) -> Connection:
        return await connect(self.server.url, name=f"test-{name}", login=self.login(name))

    async def client(self, name: str, pool: str = POOL) -> TurnClient:
        return await TurnClient.connect(
            name, pool=pool, url=self.server.url, namespace=self.subjects.namespace, login=self.login(name)
        )

    def as_(self, name: str) -> contextlib.AbstractAsyncContextManager[Requester]:
        """The requests of an identity, on a connection of its own."""
        return requesting(self.connection(name))

    @contextlib.asynccontextmanager
    async def services(self, *names: str, **settings: Any) -> AsyncIterator[None]:
        """Provision as the administrator, then run each service under its own identity."""
        async with contextlib.AsyncExitStack() as stack:
            async with self.as_(ADMIN) as admin:
                await provision(admin, self.topology)
            for name in names or SERVICES:
                requester = await stack.enter_async_context(self.as_(name))
                service = factory(name)(requester.connection, requester, self.settings(name, **settings))
                await service.start()
                stack.push_async_callback(service.stop)
                stack.callback(_check_permissions, name, requester.connection)
            yield

    def reload(self) -> None:
        """Tell the server that its configuration is another."""
        os.kill(self.server.pid, signal.SIGHUP)

    async def move_to(self, namespace: str) -> None:
        """Give everybody the same permissions in another namespace."""
        before = self._reloads()
        self.directory.init(Topology(Subjects(namespace), Durability.RELAXED), certificates=None)
        self.topology = self.directory.listed().topology
        self.subjects = self.topology.subjects
        self.reload()
        await wait_until(lambda: self._reloads() > before, why="the server has read the configuration")

    def _reloads(self) -> int:
        return self.server.log_file.read_text().count("Reloaded server configuration")


def _check_permissions(name: str, connection: Connection) -> None:
    assert connection.refusals.permissions == [], name


@contextlib.contextmanager
def secured(path: Path, namespace: str = "tg", *, tls: bool = False) -> Iterator[Secured]:
    """Run a server with the identities of RUNNERS and PEOPLE beside those of the services."""
    directory = AuthDirectory(path / "auth")
    certificates = None
    if tls:
        directory.path.mkdir(mode=0o700, parents=True)
        certificates = make_certificates(directory.path / "tls", ["127.0.0.1", "localhost"])
    directory.init(Topology(Subjects(namespace), Durability.RELAXED), certificates=certificates)
    for runner, pools in RUNNERS.items():
        directory.add(runner, Kind.RUNNER, pools)
    for person, kind in PEOPLE.items():
        directory.add(person, kind)
    include = f'include "{os.path.relpath(directory.config_file, path / "state")}"'
    with EmbeddedServer(path / "state", sync_always=False, extra_config=include) as server:
        yield Secured(server, directory, certificates.ca if certificates else "")
