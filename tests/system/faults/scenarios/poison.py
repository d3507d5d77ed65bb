"""A corpus of what nothing can be done with, into every queue, in the middle of good work: each ends as one letter."""

import random
from collections import Counter
from collections.abc import Iterable

from tests.system.faults.findings import Findings
from tests.system.faults.rig import Rig, Scale
from tests.system.ledger import Ledger
from tests.system.nothing_lost import assert_one_verdict_each
from tests.waiting import wait_until
from turngate_contracts.headers import ORIGIN_SEQUENCE

BODIES = (
    b"",
    b"null",
    b"[]",
    b"{}",
    b'{"turn":',
    b'{"turn":"seven"}',
    b"\xff\xfe\x00\x01",
    b"[" * 100_000,
    b'{"a":' * 20_000,
    b'{"turn":' + b"9" * 5_000 + b"}",
    b'{"session":"a b","turn":1}',
    b'{"session":"../../x","turn":1,"attempt":1,"runner":"r","pool":"p"}',
    '{"session":"\ud800"}'.encode("utf-8", "surrogatepass"),
    b"x" * 200_000,
)
HEADS = (b"", b"NATS/1.0\r\nTurngate-Schema: nothing.v9\r\n\r\n", b"NATS/1.0\r\ntraceparent: \xff\xfe\r\n\r\n")
WIRE = (b"NATS/1.0\r\n\r\n", b"NATS/1.0 100 Idle Heartbeat\r\n\r\n", b"NATS/1.0 \xff\r\n\r\n")
"""Header blocks that end a plain client's reading; stored ones would disable each consumer."""


async def run(rig: Rig, seed: int, scale: Scale) -> Findings:
    """Publish the corpus beside the load, and look for a letter of each."""
    for service in ("validation", "conclusion", "supervisor", "deadletter"):
        await rig.start(service)
    chance = random.Random(seed)
    sent: set[tuple[str, int]] = set()
    async with await rig.load(seed, in_flight=12) as load:
        await load.goes_on(20)
        corpus = list(_corpus(rig))
        chance.shuffle(corpus)
        for number, (subject, body, head) in enumerate(corpus[: scale.of(60, len(corpus))]):
            ack = await rig.observer.requester.publish(subject, body, head)
            sent.add((ack.stream, ack.seq))
            if number % 20 == 0:
                await load.goes_on(5)
        await load.goes_on(20)
    await wait_until(lambda: _all_buried(rig, len(sent)), 60, f"{len(sent)} messages have letters")
    letters = Counter(await _letters(rig))
    found = await _good_work(rig, load.ledger)
    return Findings(
        found.acknowledged + len(sent),
        found.lost + len(sent - letters.keys()),
        found.twice + sum(times > 1 for times in letters.values()),
        (*found.problems, *(f"a letter of {place}, which was never sent" for place in letters.keys() - sent)),
    )


def _corpus(rig: Rig) -> Iterable[tuple[str, bytes, bytes]]:
    s = rig.observer.subjects
    subjects = (
        s.turn_report("bad", "bad", "bad-1"),
        s.turn_ended("bad", "bad", "bad-2"),
        s.task_finished("bad", "bad", "bad-3"),
        s.esm_result("bad", "bad-4"),
        s.esm_start("bad-5"),
        *(s.timer_due(kind, "bad-6") for kind in ("question", "continuation", "watchdog")),
    )
    for subject in subjects:
        yield from ((subject, body, head) for body in BODIES for head in HEADS)
        yield from ((subject, b"{}", head) for head in WIRE)


async def _letters(rig: Rig) -> list[tuple[str, int]]:
    s = rig.observer.subjects
    found = [m async for m in rig.observer.messages(s.stream("dead"), s.dead_letters())]
    return [(m.subject.split(".")[2], int(m.fields[ORIGIN_SEQUENCE])) for m in found]


async def _all_buried(rig: Rig, count: int) -> bool:
    return len(await _letters(rig)) >= count


async def _good_work(rig: Rig, ledger: Ledger) -> Findings:
    """Settle the accounts of the load; what was poison has letters, which the usual accounts do not expect."""
    problems = list(rig.crashes())
    try:
        await rig.observer.quiet()
        assert_one_verdict_each(ledger, await rig.observer.history(rig.observer.turns))
    except AssertionError as error:
        problems.append(str(error)[:2000])
    return Findings(len(ledger.reports), problems=tuple(problems))
