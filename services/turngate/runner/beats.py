"""The beats of a runner host: that it is alive, what it holds, and what the supervisor answers about each role run.

A role run whose result is stored is spoken of until the supervisor says that it is over: as long as the result waits in
its queue, nobody may take the role run for lost. Each beat also keeps the tickets of the running role runs from being
delivered again.
"""

import asyncio
import logging
from typing import TYPE_CHECKING, Final, Protocol

from msgspec.structs import replace

from turngate.clock import Clock
from turngate_contracts.beats import MAX_HELD, Beat, BeatAnswer, HeldAnswer, HeldRole
from turngate_contracts.errors import TurngateError
from turngate_protocol.esm.objective import Role
from turngate_protocol.esm.steering import BeatAction

if TYPE_CHECKING:
    from turngate.runner.client import TurnClient
    from turngate.runner.role_run import RoleRun

log = logging.getLogger(__name__)

LINGER_MS: Final = 10 * 60_000
"""For how long a role run is spoken of whose result is stored and of which nobody says that it is over."""
LEAST_S: Final = 0.05
"""Least time between two beats, however much happens."""
NEWS_S: Final = 1.0
"""Least time between two beats that are only sent because agents said something."""


class Holder(Protocol):
    """What beats: a runner host."""

    identity: str
    incarnation: str
    pools: tuple[str, ...]
    roles: tuple[Role, ...]
    slot_count: int
    draining: bool

    @property
    def held(self) -> "tuple[RoleRun, ...]":
        """The role runs that it has claimed or is claiming."""

    @property
    def client(self) -> "TurnClient":
        """The connection."""


class Beats:
    """Beats for a host every `period_s` seconds, and soon after something happened."""

    def __init__(self, host: Holder, period_s: float, clock: Clock) -> None:
        self._host = host
        self._period_s = period_s
        self._clock = clock
        self._started_at = clock()
        self._lingering: dict[str, tuple[HeldRole, int]] = {}
        self._soon = asyncio.Event()
        self._news: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin to beat."""
        self._task = asyncio.create_task(self._go(), name=f"turngate-beat-{self._host.identity}")

    async def stop(self) -> None:
        """Beat no more."""
        if self._news is not None:
            self._news.cancel()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def soon(self) -> None:
        """Beat without waiting for the period to end: a role run was claimed, or the host ends."""
        self._soon.set()

    def soon_for_news(self) -> None:
        """Beat within a second: an agent said something that people may be watching for."""
        if self._news is None:
            self._news = asyncio.get_running_loop().call_later(min(NEWS_S, self._period_s), self.soon)

    def ended(self, run: "RoleRun") -> None:
        """Note that the result of a role run is stored."""
        self._lingering[run.claim] = (replace(run.held(), ended=True), self._clock() + LINGER_MS)

    async def _go(self) -> None:
        while True:
            self._soon.clear()
            try:
                await self._beat()
            except TurngateError as error:
                log.warning("runner %s: a beat was not answered: %s", self._host.identity, error)
            await asyncio.sleep(min(LEAST_S, self._period_s))
            try:
                async with asyncio.timeout(self._period_s):
                    await self._soon.wait()
            except TimeoutError:
                continue

    async def _beat(self) -> None:
        host, now = self._host, self._clock()
        if self._news is not None:
            self._news.cancel()
            self._news = None
        self._lingering = {claim: kept for claim, kept in self._lingering.items() if kept[1] > now}
        running = {run.claim: run for run in host.held if run.request is not None}
        for run in host.held:
            run.delivery.in_progress()
        held = [run.held() for run in running.values()]
        held += [kept for kept, _until in self._lingering.values()]
        beat = Beat(
            host.incarnation,
            host.pools,
            host.roles,
            host.slot_count,
            tuple(held[:MAX_HELD]),
            self._started_at,
            host.draining,
        )
        answered = await host.client.call("runner.beat", beat, BeatAnswer, max(1_000, int(self._period_s * 1000)))
        for answer in answered.answers:
            self._take(answer, running.get(answer.claim))

    def _take(self, answer: HeldAnswer, run: "RoleRun | None") -> None:
        if run is None:
            if answer.action is BeatAction.CANCEL:
                self._lingering.pop(answer.claim, None)
            return
        if answer.action is BeatAction.CANCEL:
            run.stop(answer.message)
            return
        run.version = max(run.version, answer.version)
        if answer.action is BeatAction.STEER and run.context is not None:
            run.context.steer(answer.message)
