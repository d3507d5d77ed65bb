"""The slots of a runner host: so many role runs at once, from several consumers.

The consumers of a host share its slots. Each is asked for as many messages as slots are free, so that whichever has
work is served at once; what comes when the last slot was just taken goes back, for another runner or for later.
"""

from collections.abc import Callable, Iterable
from typing import Final

from turngate.jetstream.connect import Connection
from turngate.jetstream.consume import ConsumeLoop, Delivery

BACK_MS: Final = 250
"""After what a message that found no slot is delivered again, to whoever asks then."""


class Slots:
    """A number of slots that several durable consumers fill.

    Args:
        connection: where to pull from.
        stream: the stream of the consumers.
        consumers: their names.
        count: how many slots there are.
        on_delivery: called with a message that has a slot; whoever takes it gives the slot back.
    """

    def __init__(
        self,
        connection: Connection,
        stream: str,
        consumers: Iterable[str],
        count: int,
        on_delivery: Callable[[Delivery], None],
    ) -> None:
        self.count = count
        self.free = count
        self._on_delivery = on_delivery
        self._stopping = False
        self._loops = [self._loop(connection, stream, name) for name in consumers]

    async def start(self) -> None:
        """Begin to pull."""
        for loop in self._loops:
            await loop.start()

    def give_back(self) -> None:
        """Say that a slot is free again."""
        self.free += 1
        self._share()

    async def stop(self, timeout_ms: int = 10_000) -> bool:
        """Pull no more, wait until all messages are ended, and say whether they were in time."""
        self._stopping = True
        ended = [await loop.stop(timeout_ms) for loop in self._loops]
        return all(ended)

    def _loop(self, connection: Connection, stream: str, name: str) -> ConsumeLoop:
        def on_delivery(delivery: Delivery) -> None:
            if self.free == 0:
                # Ending it would ask for the next one, which would find no slot either.
                loop.window = max(0, loop.handling - 1)
                delivery.nak(BACK_MS)
                return
            self.free -= 1
            self._share()
            self._on_delivery(delivery)

        loop = ConsumeLoop(connection, stream, name, on_delivery, window=self.count)
        return loop

    def _share(self) -> None:
        if not self._stopping:
            for loop in self._loops:
                loop.resize(loop.handling + self.free)
