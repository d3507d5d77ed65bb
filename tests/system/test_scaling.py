"""More processes share the load, and one that is told to end finishes what it has: nothing is lost or done twice."""

import random
from collections import Counter

import pytest

from tests.system.load import Load
from tests.system.nothing_lost import assert_nothing_lost
from tests.system.observer import Observer
from tests.system.processes import Fleet
from tests.system.runners import Runners
from turngate_contracts import codec
from turngate_protocol.report.session import SessionTurns

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

DRAINS = 3


async def test_two_processes_share_the_load(fleet: Fleet, observer: Observer, runners: Runners):
    await fleet.start(2)

    async with Load(await runners.several(2), await runners.person(), random.randrange(10**6)) as load:
        await load.reached(500)

    await assert_nothing_lost(observer, load.ledger)
    decided = await decisions_by_process(observer)
    assert len(decided) == 2, f"{len(decided)} of 2 processes decided anything: {decided}"
    fleet.assert_no_crash_was_logged()


async def test_processes_that_drain_under_load_hand_over_everything_once(
    fleet: Fleet, observer: Observer, runners: Runners
):
    (oldest,) = await fleet.start()
    acks = await Acks.tap(observer)

    async with Load(await runners.several(2), await runners.person(), random.randrange(10**6)) as load:
        for _ in range(DRAINS):
            (newer,) = await fleet.start()
            await load.goes_on(100)
            oldest.terminate()
            assert await oldest.ended() == 0, f"{oldest.name} did not drain:\n{oldest.last_words()}"
            warned = [line for line in oldest.log() if line["level"] != "info"]
            assert not warned, f"{oldest.name} did not finish what it had taken: {warned}"
            await load.goes_on(50)
            oldest = newer

    await observer.quiet()
    acks.assert_nothing_was_done_twice()
    await assert_nothing_lost(observer, load.ledger)
    decided = await decisions_by_process(observer)
    assert len(decided) == DRAINS + 1, f"{len(decided)} of {DRAINS + 1} processes decided anything: {decided}"
    fleet.assert_no_crash_was_logged()


async def decisions_by_process(observer: Observer) -> dict[str, int]:
    """How many revisions each process saved; operation ids begin with what is the process's own."""
    counts: dict[str, int] = {}
    for revisions in (await observer.history(observer.turns)).values():
        for revision in revisions:
            process = codec.decode(revision.body, SessionTurns, "a session's state").op.partition("-")[0]
            counts[process] = counts.get(process, 0) + 1
    return counts


class Acks:
    """How every delivery was ended, as it crossed the wire."""

    def __init__(self) -> None:
        self._done: Counter[tuple[str, int]] = Counter()
        self._failed: list[str] = []

    @classmethod
    async def tap(cls, observer: Observer) -> "Acks":
        """Listen to the acknowledgements of every consumer of the namespace."""
        made = cls()
        for stream, config in observer.topology.consumers():
            await observer.connection.listen(f"$JS.ACK.{stream}.{config['durable_name']}.>", made._on_ack)
        return made

    def assert_nothing_was_done_twice(self) -> None:
        """Fail when a message was done twice or failed; one that was handed back untouched was not done."""
        twice = [place for place, times in self._done.items() if times > 1]
        assert not twice, f"{len(twice)} messages were done twice, such as {twice[:5]}"
        assert not self._failed, f"{len(self._failed)} deliveries failed, such as {self._failed[:3]}"

    def _on_ack(self, subject: bytes, _reply: bytes, body: bytes, _head: bytes) -> None:
        _, _, _, name, _, sequence, *_ = subject.decode().split(".")
        if body == b"+ACK":
            self._done[name, int(sequence)] += 1
        elif body not in (b"+WPI", b'-NAK {"delay": 0}'):
            self._failed.append(f"{subject.decode()} {body.decode()}")
