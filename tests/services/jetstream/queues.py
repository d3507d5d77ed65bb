"""A stream with one consumer, for tests of what consumes."""

import asyncio
from typing import Any

from turngate.jetstream.connect import Connection
from turngate.jetstream.consume import ConsumeLoop, Delivery
from turngate.jetstream.request import Requester


class Queue:
    """A work queue and its durable consumer."""

    def __init__(self, requester: Requester, namespace: str, config: dict[str, Any]) -> None:
        self.requester = requester
        self.stream = f"{namespace}_QUEUE".upper()
        self.consumer = "worker"
        self.subject = f"{namespace}.queue.x"
        self._subjects = f"{namespace}.queue.*"
        self._config = {"durable_name": self.consumer, "ack_policy": "explicit", **config}

    @classmethod
    async def make(cls, requester: Requester, namespace: str, *, ack_wait_ms: int = 30_000, **config: Any) -> "Queue":
        self = cls(requester, namespace, {"ack_wait": ack_wait_ms * 1_000_000, **config})
        await self.make_stream()
        await self.make_consumer()
        return self

    async def make_stream(self) -> None:
        config = {"name": self.stream, "subjects": [self._subjects], "retention": "workqueue", "storage": "file"}
        await self.requester.api(f"STREAM.CREATE.{self.stream}", config)

    async def make_consumer(self) -> None:
        name = f"CONSUMER.DURABLE.CREATE.{self.stream}.{self.consumer}"
        await self.requester.api(name, {"stream_name": self.stream, "config": self._config})

    async def delete_stream(self) -> None:
        await self.requester.api(f"STREAM.DELETE.{self.stream}")

    async def delete_consumer(self) -> None:
        await self.requester.api(f"CONSUMER.DELETE.{self.stream}.{self.consumer}")

    async def publish(self, count: int, body: bytes = b"") -> None:
        await asyncio.gather(*(self.requester.publish(self.subject, body) for _ in range(count)))

    async def info(self) -> dict[str, Any]:
        return await self.requester.api(f"CONSUMER.INFO.{self.stream}.{self.consumer}")

    async def unfinished(self) -> int:
        """How many messages are delivered and not ended."""
        return int((await self.info())["num_ack_pending"])

    async def waiting(self) -> int:
        """How many messages were not delivered yet."""
        return int((await self.info())["num_pending"])

    async def is_asked(self) -> bool:
        """Whether a pull is open."""
        return int((await self.info())["num_waiting"]) > 0

    async def is_empty(self) -> bool:
        info = await self.requester.api(f"STREAM.INFO.{self.stream}")
        return int(info["state"]["messages"]) == 0


class Worker:
    """Handles deliveries, or holds them until it is told what to do with them."""

    def __init__(self, *, hold: bool = False) -> None:
        self.hold = hold
        self.held: list[Delivery] = []
        self.sequences: list[int] = []
        self.most_deliveries = 0
        self.most_at_once = 0
        self.loop: ConsumeLoop | None = None

    async def start(self, connection: Connection, queue: Queue, *, window: int = 8) -> ConsumeLoop:
        self.loop = ConsumeLoop(connection, queue.stream, queue.consumer, self.take, window=window)
        await self.loop.start()
        return self.loop

    def take(self, delivery: Delivery) -> None:
        self.sequences.append(delivery.sequence)
        self.most_deliveries = max(self.most_deliveries, delivery.deliveries)
        if self.loop is not None:
            self.most_at_once = max(self.most_at_once, self.loop.handling)
        if self.hold:
            self.held.append(delivery)
        else:
            delivery.ack()

    def release(self, count: int = 1_000_000) -> None:
        """Ack the oldest of what is held."""
        released, self.held = self.held[:count], self.held[count:]
        for delivery in released:
            delivery.ack()


def loop_of(worker: Worker) -> ConsumeLoop:
    assert worker.loop is not None
    return worker.loop
