"""Prompts for a pool: each is received by one runner, which takes it over or gives it back."""

import asyncio
from collections.abc import AsyncGenerator

from turngate.jetstream.connect import Connection
from turngate.jetstream.consume import ConsumeLoop, Delivery
from turngate_contracts import codec
from turngate_contracts.errors import InvalidMessage
from turngate_contracts.subjects import Subjects
from turngate_protocol.report.session import Prompt


class IncomingPrompt:
    """A prompt that one runner of a pool received. `take` it over, or it goes to another runner."""

    def __init__(self, prompt: Prompt, delivery: Delivery) -> None:
        self.prompt = prompt
        self._delivery = delivery
        self.ended = False

    def take(self) -> None:
        """Say that this runner does it: the prompt is not given to anybody again."""
        if not self.ended:
            self.ended = True
            self._delivery.ack()

    def give_back(self, delay_ms: int = 1_000) -> None:
        """Have it given to a runner again, after a delay."""
        if not self.ended:
            self.ended = True
            self._delivery.nak(delay_ms)


async def receive(
    connection: Connection, subjects: Subjects, pool: str, slots: int
) -> AsyncGenerator[IncomingPrompt, None]:
    """Yield the prompts of a pool as they come; the pool's consumer exists.

    Args:
        connection: where to pull from.
        subjects: the namespace.
        pool: the pool.
        slots: most prompts that are held untaken.
    """
    queue: asyncio.Queue[Delivery] = asyncio.Queue()
    loop = ConsumeLoop(
        connection, subjects.stream("work"), subjects.prompt_consumer(pool), queue.put_nowait, window=max(1, slots)
    )
    await loop.start()
    try:
        while True:
            delivery = await queue.get()
            try:
                incoming = IncomingPrompt(codec.decode(delivery.body, Prompt, "a Prompt"), delivery)
            except InvalidMessage:
                delivery.term("invalid_message")
                continue
            try:
                yield incoming
            finally:
                incoming.give_back()
    finally:
        while not queue.empty():
            queue.get_nowait().nak(0)
        await loop.stop(1_000)
