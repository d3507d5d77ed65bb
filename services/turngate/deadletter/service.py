"""The wiring of one dead-letter process: what it consumes, what it answers, what it looks after, how it drains."""

import asyncio
from typing import Final

from turngate import __version__
from turngate.clock import system_clock
from turngate.deadletter.adoption import adopt
from turngate.deadletter.burial import Burial
from turngate.deadletter.handler import Handler
from turngate.deadletter.housekeeping import Chore, Housekeeping
from turngate.deadletter.letters import Letters
from turngate.deadletter.metrics import Counters
from turngate.deadletter.places import Places
from turngate.deadletter.reaper import Reaper
from turngate.deadletter.requests import Requests
from turngate.deadletter.retrying import Retrying, finish_all
from turngate.jetstream.api import Api
from turngate.jetstream.connect import Connection
from turngate.jetstream.consume import ConsumeLoop
from turngate.jetstream.deadletter import DeadLetters
from turngate.jetstream.request import Requester
from turngate.jetstream.retention import Retention
from turngate.jetstream.watermarks import Watermarks
from turngate.metrics.observed import Observed
from turngate.settings import Settings
from turngate_contracts.topology import DEADLETTER

REAP_MS: Final = 10_000
FINISH_AFTER_MS: Final = 30_000
"""After what time a retry that did not go out counts as left behind."""
MARK_MS: Final = 5_000
WINDOW: Final = 64


class DeadLetterService:
    """One process's share of the dead letters; one is enough, several do no harm."""

    def __init__(self, connection: Connection, requester: Requester, settings: Settings) -> None:
        topology = settings.topology()
        subjects = topology.subjects
        self._clock = clock = system_clock(settings.clock_offset_ms)
        self._connection = connection
        self._requester = requester
        self._subjects = subjects
        self.counters = Counters()
        self.dead = DeadLetters(requester, subjects, clock)
        self._places = places = Places(requester, topology)
        burial = Burial(self.dead, places)
        self._letters = Letters(requester, subjects, clock)
        self._retrying = Retrying(requester, self._letters, places)
        self._tasks: set[asyncio.Task[None]] = set()
        handler = Handler(burial, self._tasks)
        stream = subjects.stream("advisories")
        self.loop = ConsumeLoop(connection, stream, DEADLETTER, handler.on_delivery, window=WINDOW)
        self.reaper = Reaper(requester, burial)
        self.retention = Retention(requester, topology, clock)
        self.watermarks = Watermarks(requester, topology, clock)
        self._housekeeping = Housekeeping(
            (
                Chore("reaper", REAP_MS, self.reaper.look),
                Chore("retries", FINISH_AFTER_MS, self._finish_retries),
                Chore("watermarks", MARK_MS, self.watermarks.note),
                Chore("retention", self.retention.every_ms, self.retention.sweep),
            )
        )
        self._api: Api | None = None

    async def start(self) -> None:
        """Begin to take advisories, to answer requests and to look after what nobody else does."""
        self._api = await Api.start(self._connection, self._subjects, DEADLETTER, __version__)
        await Requests(self._api, self._letters, self._retrying, self.counters).register()
        await adopt(self._requester, self._subjects, self._places)
        await self.loop.start()
        self._housekeeping.start()

    def observed(self) -> Observed:
        """Return what is measured here."""
        return Observed(loops=(self.loop,), apis=() if self._api is None else (self._api,))

    async def stop(self, timeout_ms: int = 10_000) -> bool:
        """Take no more, finish what is under way, and say whether all of it was finished."""
        await self._housekeeping.stop()
        finished = await self.loop.stop(timeout_ms)
        if self._api is not None:
            await self._api.stop()
        left = list(self._tasks)
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        return finished

    async def _finish_retries(self) -> None:
        self.counters.finished += await finish_all(self._retrying, self._clock() - FINISH_AFTER_MS)
