"""One advisory: read, find its message, bury it, take it out of its queue, ack.

The message is buried before it is removed, under an id that it has however it is found: killed in between, the advisory
comes again and finds the letter there. A message that is gone was handled, or buried by whoever ended it.
"""

import asyncio
import logging
from typing import Final

from msgspec import Struct

from turngate.deadletter import advisories
from turngate.deadletter.burial import Burial
from turngate.jetstream.consume import Delivery
from turngate_contracts.dead import FoundBy
from turngate_contracts.errors import InvalidMessage

log = logging.getLogger(__name__)

RETRY_MS: Final = (200, 500, 1_000, 2_000, 5_000)


class Handler(Struct, frozen=True):
    """What handling an advisory needs."""

    burial: Burial
    tasks: set[asyncio.Task[None]]

    def on_delivery(self, delivery: Delivery) -> None:
        """Take one advisory; it is ended once its message is where it belongs."""
        task = asyncio.create_task(self._handle(delivery))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def _handle(self, delivery: Delivery) -> None:
        try:
            advisory = advisories.read(delivery.body)
            stored = await self.burial.places.load(advisory.stream, advisory.stream_seq)
            if stored is not None:
                await self.burial.bury(
                    advisory.stream,
                    stored,
                    advisories.reason_of(delivery.subject, advisory),
                    FoundBy.ADVISORY,
                    consumer=advisory.consumer,
                    deliveries=advisory.deliveries,
                )
        except InvalidMessage as error:
            log.error("an advisory on %s is passed over: %s", delivery.subject, error)
        except Exception as error:  # noqa: BLE001  whatever it is: its message is still where nobody looks
            delay = RETRY_MS[min(delivery.deliveries, len(RETRY_MS)) - 1]
            log.warning("advisory %d is not handled yet (again in %d ms): %s", delivery.sequence, delay, error)
            delivery.nak(delay)
            return
        delivery.ack()
