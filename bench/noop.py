"""The ceiling: a service with the same connection and the same consume loop that does nothing with a turn.

It tells the runner's mailbox one short message and acks, which is what no service on this client can do without.
"""

from turngate.jetstream.connect import Connection
from turngate.jetstream.consume import ConsumeLoop, Delivery
from turngate.settings import Settings
from turngate_contracts.subjects import Subjects, sender_and_session
from turngate_contracts.topology import VALIDATION


class NoopService:
    """Takes turns as the validation service does, and decides nothing."""

    def __init__(self, connection: Connection, settings: Settings) -> None:
        self._connection = connection
        self._subjects = Subjects(settings.namespace)
        stream = self._subjects.stream("turns")
        self._loop = ConsumeLoop(connection, stream, VALIDATION, self._on_delivery, window=settings.window)

    async def start(self) -> None:
        """Begin to take turns."""
        await self._loop.start()

    async def stop(self, timeout_ms: int = 10_000) -> bool:
        """Take no more, and say whether all that was taken is acked."""
        return await self._loop.stop(timeout_ms)

    def _on_delivery(self, delivery: Delivery) -> None:
        runner, session = sender_and_session(delivery.subject)
        told = f'{{"session":"{session}","outcome":"accepted"}}'
        self._connection.send(self._subjects.mailbox(runner, "verdict"), told.encode())
        delivery.ack()
