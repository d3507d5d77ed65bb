"""A browser's end of server-sent events, read from a socket by hand, so that it can also not read."""

import asyncio
import contextlib
import json
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct


class Sent(Struct, frozen=True):
    """One event; `id` 0 where it had none."""

    event: str
    data: dict[str, Any]
    id: int = 0


class Stream:
    """One open stream. It reads when it is asked to and not before."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self.status = 0
        self.last = 0

    @classmethod
    async def open(cls, url: str, after: int | None = None, *, path: str = "/live", cookie: str = "") -> "Stream":
        place = urlsplit(url)
        # A small buffer: a reader that pauses is felt soon.
        reader, writer = await asyncio.open_connection(place.hostname, place.port, limit=1 << 20)
        lines = [f"GET {path} HTTP/1.1", f"Host: {place.netloc}", "Accept: text/event-stream"]
        lines += [f"Last-Event-ID: {after}"] if after is not None else []
        lines += [f"Cookie: {cookie}"] if cookie else []
        writer.write("\r\n".join([*lines, "", ""]).encode())
        self = cls(reader, writer)
        head = await reader.readuntil(b"\r\n\r\n")
        self.status = int(head.split(b" ", 2)[1])
        return self

    async def next(self, within_s: float = 20) -> Sent:
        """Return the next event that is there."""
        async with asyncio.timeout(within_s):
            while True:
                fields = await self._block()
                if "event" in fields:
                    sent = Sent(fields["event"], json.loads(fields["data"]), int(fields.get("id", 0)))
                    self.last = sent.id or self.last
                    return sent

    async def until(self, event: str, within_s: float = 20, **wanted: Any) -> Sent:
        """Return the next event of this name whose data has these values."""
        async with asyncio.timeout(within_s):
            while True:
                sent = await self.next(within_s)
                if sent.event == event and all(sent.data.get(name) == value for name, value in wanted.items()):
                    return sent

    async def close(self) -> None:
        self._writer.close()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()

    async def ended(self, within_s: float = 10) -> bool:
        """Read to the end, and say that it came."""
        async with asyncio.timeout(within_s):
            await self._reader.read()
        return True

    async def _block(self) -> dict[str, str]:
        fields: dict[str, str] = {}
        while True:
            line = (await self._reader.readuntil(b"\n")).decode().rstrip("\r\n")
            name, colon, value = line.partition(": ")
            if colon and name:
                fields[name] = value
            elif not line and fields:
                return fields
