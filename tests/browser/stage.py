"""What a browser is put in front of: all services and a console in one process, and short forms for what happens."""

import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from msgspec.structs import replace
from playwright.async_api import Browser, BrowserContext, Page, Request, ViewportSize, expect

from tests.fundamentals.reports import CARD
from tests.supervised import POOL, Supervised, supervising
from tests.waiting import wait_until
from turngate.console.service import ConsoleService
from turngate.jetstream.connect import connect
from turngate.jetstream.request import Requester
from turngate.runner import TurnClient
from turngate.settings import Settings
from turngate_protocol.question import ToolCall

DESKTOP: ViewportSize = {"width": 1280, "height": 860}
PHONE: ViewportSize = {"width": 390, "height": 844}
PATIENCE_MS = 20_000


class Served:
    """One console, with a connection of its own, that can be stopped and started at the same address."""

    def __init__(self, settings: Settings, **changed: Any) -> None:
        self._settings = replace(settings, **changed)
        self._stack = contextlib.AsyncExitStack()
        self.url = ""

    async def start(self) -> None:
        connection = await connect(self._settings.nats_url, name="console")
        connection.options["reconnect_time_wait"] = 0.05
        self._stack.push_async_callback(connection.close)
        requester = await Requester.start(connection)
        self._stack.push_async_callback(requester.stop)
        service = ConsoleService(connection, requester, self._settings)
        await service.start()
        self._stack.push_async_callback(service.stop)
        self.url = service.url.rstrip("/")
        port = int(self.url.rpartition(":")[2])
        self._settings = replace(self._settings, console_port=port)

    async def stop(self) -> None:
        await self._stack.aclose()


class Stage:
    """All services, a console, and a browser in front of it."""

    def __init__(self, supervised: Supervised, served: Served, browser: Browser) -> None:
        self.supervised = supervised
        self.system = supervised.system
        self.served = served
        self.browser = browser

    @property
    def url(self) -> str:
        return self.served.url

    async def client(self, name: str = "runner-1") -> TurnClient:
        return await self.system.client(name, POOL)

    @contextlib.asynccontextmanager
    async def visit(
        self, path: str = "/", *, at: Served | None = None, live: bool = True, **context: Any
    ) -> AsyncIterator["Visit"]:
        """A person with a browser of their own, on a page; `live` false keeps what happens from them."""
        async with await self.browser.new_context(**{"viewport": DESKTOP, **context}) as made:
            made.set_default_timeout(PATIENCE_MS)
            visit = Visit((at or self.served).url, made, await made.new_page())
            if not live:
                await made.route("**/live?*", lambda route: route.abort())
            await visit.go(path)
            yield visit
            visit.check()

    @contextlib.asynccontextmanager
    async def another(self, **changed: Any) -> AsyncIterator[Served]:
        """One more console of the same system, with other settings."""
        served = Served(self.system.settings, **{"console_port": 0, **changed})
        await served.start()
        try:
            yield served
        finally:
            await served.stop()


class Visit:
    """What one person sees, and whatever went wrong in their browser."""

    def __init__(self, url: str, context: BrowserContext, page: Page) -> None:
        self.url = url
        self.page = page
        self.context = context
        self.wrong: list[str] = []
        page.on("pageerror", lambda error: self.wrong.append(f"script error: {error}"))
        page.on("console", self._on_console)
        page.on("dialog", self._on_dialog)
        page.on("request", self._on_request)

    async def go(self, path: str) -> None:
        await self.page.goto(self.url + path)

    async def press(self, *keys: str) -> None:
        for key in keys:
            await self.page.keyboard.press(key)

    async def live(self) -> None:
        """Wait until the page follows what happens."""
        await expect(self.page.locator("#live")).to_have_attribute("data-state", "on", timeout=PATIENCE_MS)

    async def until(self, selector: str, text: str) -> None:
        """Wait until what is there says so."""
        await expect(self.page.locator(selector).first).to_contain_text(text, timeout=PATIENCE_MS)

    def check(self) -> None:
        """Nothing ran that is not ours, and nothing was asked of anybody else."""
        assert not self.wrong, self.wrong

    def _on_console(self, message: Any) -> None:
        text = message.text
        if "Content Security Policy" in text or "Refused to" in text:
            self.wrong.append(f"policy: {text}")

    async def _on_dialog(self, dialog: Any) -> None:
        self.wrong.append(f"dialog: {dialog.message}")
        await dialog.dismiss()

    def _on_request(self, request: Request) -> None:
        if not request.url.startswith((self.url, "data:", "blob:")):
            self.wrong.append(f"request to {request.url}")


@contextlib.asynccontextmanager
async def staging(url: str, namespace: str, browser: Browser, state_dir: Path, **settings: Any) -> AsyncIterator[Stage]:
    """Run validation, conclusion, a supervisor and a console in a namespace."""
    given = {"state_dir": str(state_dir), "console_port": 0, "conclusion": True, "console_actor": "ann", **settings}
    async with supervising(url, namespace, **given) as supervised:
        served = Served(supervised.system.settings)
        await served.start()
        try:
            yield Stage(supervised, served, browser)
        finally:
            await served.stop()


async def deal(client: TurnClient, session: str, turn: int = 1, report: Any = CARD) -> None:
    """Put a card in front of a person."""
    verdict = await client.submit_report(session, turn, report, mutated=False)
    assert verdict.outcome == "accepted", verdict


async def prompt_of(client: TurnClient, session: str) -> str:
    """Take prompts as a runner until one of a session comes, and return its text."""
    async with contextlib.aclosing(client.prompts()) as prompts:
        async for incoming in prompts:
            await incoming.take()
            if incoming.prompt.session == session:
                return incoming.prompt.text
    raise AssertionError(f"no prompt for {session}")


async def listed(client: TurnClient, session: str, kind: str = "") -> None:
    """Wait until something of a session is in the inbox."""

    async def there() -> bool:
        return any(entry.session == session for entry in (await client.inbox(kind=kind)).entries)

    await wait_until(there, why=f"{session} is in the inbox")


def question(*questions: dict[str, Any], call: str = "call-1") -> ToolCall:
    """A call that asks structured questions."""
    return ToolCall("ask_user", call, json.dumps({"questions": questions}))
