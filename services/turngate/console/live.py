"""Server-sent events to one browser: written as fast as it reads, and not faster.

`send` waits while the browser does not read, so what happens meanwhile gathers in its bounded map and nowhere else.
"""

import asyncio
from typing import Final

from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from turngate.console.auth import Actor, Auth, address_of
from turngate.console.errors import refuse
from turngate.console.hub import Browser, Hub

HEARTBEAT_S: Final = 15.0
RETRY_MS: Final = 1_000
"""After how long a browser comes back."""
PER_BROWSER: Final = 20
IN_ALL: Final = 1_000
MOST_SEQUENCE: Final = 2**53
_MOST_DIGITS: Final = 16


class Live:
    """The streams of one console."""

    def __init__(self, hub: Hub, auth: Auth) -> None:
        self._hub = hub
        self._auth = auth

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one stream.

        Raises:
            Refused: not_signed_in, too_many.
        """
        request = Request(scope, receive)
        actor = self._auth.require(request)
        owner = address_of(request) if actor.session.fresh else actor.session.number
        if self._hub.open_by(owner) >= PER_BROWSER or self._hub.open >= IN_ALL:
            raise refuse("too_many", f"too many streams are open: {PER_BROWSER} at once are allowed", retry_after=5)
        browser = await self._hub.attach(owner, after_of(request))
        try:
            await self._stream(browser, actor, receive, send)
        finally:
            self._hub.detach(browser)

    async def _stream(self, browser: Browser, actor: Actor, receive: Receive, send: Send) -> None:
        headers = [(b"content-type", b"text/event-stream; charset=utf-8"), (b"x-accel-buffering", b"no")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        writer = asyncio.create_task(self._write(browser, actor, send), name="turngate-console-stream")
        gone = asyncio.create_task(_until_gone(receive), name="turngate-console-gone")
        try:
            await asyncio.wait((writer, gone), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (writer, gone):
                task.cancel()
            await asyncio.gather(writer, gone, return_exceptions=True)

    async def _write(self, browser: Browser, actor: Actor, send: Send) -> None:
        await _say(send, f"retry: {RETRY_MS}\n\n".encode())
        while not browser.closed:
            said = browser.take()
            if said:
                await _say(send, said)
                continue
            try:
                async with asyncio.timeout(HEARTBEAT_S):
                    await browser.wake.wait()
            except TimeoutError:
                if not self._auth.still_may(actor):
                    break
                await _say(send, b": still here\n\n")
        await send({"type": "http.response.body", "body": b"", "more_body": False})


def after_of(request: Request) -> int | None:
    """Return the last sequence that a browser saw, or None where it says none that could be one."""
    for text in (request.headers.get("last-event-id", ""), request.query_params.get("after", "")):
        if text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS and int(text) <= MOST_SEQUENCE:
            return int(text)
    return None


async def _say(send: Send, body: bytes) -> None:
    await send({"type": "http.response.body", "body": body, "more_body": True})


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
