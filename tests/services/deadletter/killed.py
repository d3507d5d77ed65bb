"""A validation process that ends at once when it is given a certain message: `python -m … URL NAMESPACE`.

The message is named by its text in the environment variable TURNGATE_TEST_KILLED_BY.
"""

import asyncio
import os
import sys

from turngate.jetstream.connect import connect
from turngate.jetstream.consume import Delivery
from turngate.jetstream.request import Requester
from turngate.settings import Settings
from turngate.validation.handler import Intake
from turngate.validation.service import ValidationService
from turngate_contracts.topology import Durability

KILLED_BY = "TURNGATE_TEST_KILLED_BY"
EXIT_CODE = 86


async def main(url: str, namespace: str) -> None:
    poison = os.environ[KILLED_BY].encode()
    take = Intake.on_delivery

    def on_delivery(self: Intake, delivery: Delivery) -> None:
        if poison in delivery.body:
            os._exit(EXIT_CODE)
        take(self, delivery)

    Intake.on_delivery = on_delivery  # type: ignore[method-assign]
    connection = await connect(url, name="killed")
    requester = await Requester.start(connection)
    settings = Settings(nats_url=url, namespace=namespace, durability=Durability.RELAXED)
    await ValidationService(connection, requester, settings).start()
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
