"""taskiq with its NATS broker, doing what `bench.checked` does; runs in the peers' virtual environment only.

It is set up as its user would for speed: pulls of a hundred, as many tasks at once as turns are in flight, no results
kept. Its broker makes its own stream, and its tasks come in its own messages.
"""

import asyncio
import contextlib
import logging
from typing import Final

from taskiq.api import run_receiver_task
from taskiq_nats import PullBasedJetStreamBroker

from bench.checked import add_stream, judged
from bench.peers import TASKIQ_SUBJECT, TASKIQ_TASK
from turngate.jetstream.request import Requester
from turngate.settings import Settings
from turngate_contracts.subjects import Subjects

_BATCH: Final = 100
_AT_ONCE: Final = 256


logging.getLogger("taskiq").setLevel(logging.ERROR)


class TaskiqService:
    """Judges turns in a taskiq worker and keeps no state."""

    def __init__(self, requester: Requester, settings: Settings) -> None:
        self._requester = requester
        self._subjects = Subjects(settings.namespace)
        self._broker = PullBasedJetStreamBroker(
            settings.nats_url, subject=TASKIQ_SUBJECT, pull_consume_batch=_BATCH, pull_consume_timeout=5.0
        )

        async def judge(submitted: str) -> None:
            runner, verdict = judged(submitted)
            await self._broker.js.publish(self._subjects.mailbox(runner, "verdict"), verdict)

        self._broker.register_task(judge, TASKIQ_TASK)
        self._running: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin to take turns."""
        await add_stream(self._requester, self._subjects)
        await self._broker.startup()
        self._running = asyncio.create_task(
            run_receiver_task(self._broker, validate_params=False, max_async_tasks=_AT_ONCE)
        )

    async def stop(self, _timeout_ms: int = 10_000) -> bool:
        """Take no more."""
        if self._running is not None:
            self._running.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._running
        await self._broker.shutdown()
        return True
