"""A console inside of the test's process, on a real socket, and what tests do with it."""

import contextlib
import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
from msgspec.structs import replace

from tests.running import System, running
from turngate.console.service import ConsoleService
from turngate.console.tokens import Role, TokenFile
from turngate.jetstream.connect import Connection, connect
from turngate.jetstream.request import Requester
from turngate.registry import factory
from turngate.runner import TurnClient

REPORT: dict[str, Any] = json.loads((Path(__file__).parents[3] / "examples" / "report.json").read_text())
REPORT["blocks"][2]["options"][2]["effect"] = "collect"
_CSRF = re.compile(r'name="csrf" value="([0-9a-f]{64})"')


class Console:
    """A console that runs, and the system behind it."""

    def __init__(self, system: System, service: ConsoleService, tokens: TokenFile) -> None:
        self.system = system
        self.service = service
        self.tokens = tokens

    @property
    def url(self) -> str:
        return self.service.url

    def add_token(self, name: str, role: Role = Role.OPERATOR) -> str:
        return self.tokens.add(name, role, 1_700_000_000_000)

    def browser(self, **given: Any) -> "Page":
        return Page(httpx.AsyncClient(base_url=self.url, timeout=20, verify=False, **given))


class Page:
    """A browser without scripts: it keeps cookies, and sends forms with what its last page gave it."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        self.http = http
        self.csrf = ""

    async def __aenter__(self) -> "Page":
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.http.aclose()

    async def get(self, path: str, **headers: str) -> httpx.Response:
        found = await self.http.get(path, headers=headers)
        token = _CSRF.search(found.text)
        self.csrf = token[1] if token else self.csrf
        return found

    async def post(self, path: str, *, as_json: Any = True, headers: Any = None, **fields: Any) -> httpx.Response:
        """Send a form as a script does, or as a browser does by itself."""
        wanted = {"accept": "application/json"} if as_json else {"accept": "text/html"}
        return await self.http.post(path, data={"csrf": self.csrf, **fields}, headers=wanted | (headers or {}))

    async def log_in(self, token: str) -> httpx.Response:
        await self.get("/login")
        return await self.post("/login", token=token)


@contextlib.asynccontextmanager
async def serving(
    url: str, namespace: str, directory: Path, *, whole: bool = False, **settings: Any
) -> AsyncIterator[Console]:
    """Run a system with a console; with the services beside validation where the whole of it is wanted."""
    given = {"state_dir": str(directory), "console_port": 0, "pool": "pool-1", **settings}
    async with running(url, namespace, conclusion=whole, **given) as system, contextlib.AsyncExitStack() as stack:
        for name in ("supervisor", "deadletter") if whole else ():
            beside = factory(name)(system.connection, system.requester, system.settings)
            await beside.start()
            stack.push_async_callback(beside.stop)
        service = await started(system, stack)
        yield Console(system, service, TokenFile(directory / "console-tokens.json"))


async def started(system: System, stack: contextlib.AsyncExitStack, **changed: Any) -> ConsoleService:
    """Start a console on a connection of its own, that ends with the stack."""
    settings = replace(system.settings, **changed)
    connection: Connection = await connect(settings.nats_url, name="test-console")
    stack.push_async_callback(connection.close)
    requester = await Requester.start(connection)
    stack.push_async_callback(requester.stop)
    service = ConsoleService(connection, requester, settings)
    await service.start()
    stack.push_async_callback(service.stop)
    return service


def with_text(field: str, text: str) -> dict[str, Any]:
    """The report, with a text of a model's choice as its headline or in its first block."""
    changed = json.loads(json.dumps(REPORT))
    (changed if field == "headline" else changed["blocks"][0])[field] = text
    return changed  # type: ignore[no-any-return]


async def card(client: TurnClient, session: str = "s1", turn: int = 1) -> None:
    """End a turn with a report that asks something; its third option collects a text."""
    verdict = await client.submit_report(session, turn, REPORT, mutated=True)
    assert verdict.outcome == "accepted", verdict.text
