"""The clocks of two of three processes are off by an hour, one each way: turns are judged, questions expire."""

import asyncio
from collections import Counter

from tests.system.faults.findings import Findings
from tests.system.faults.rig import Rig, Scale
from tests.system.patience import PATIENCE_MS, each, patiently
from turngate.runner import TurnClient
from turngate_protocol.question import ExpireAfter, OutcomeKind, ToolCall, reconcile

HOUR_MS = 3_600_000
EXPIRY_MS = 500


async def run(rig: Rig, seed: int, scale: Scale) -> Findings:
    """Play turns and let questions expire on all of them."""
    for offset in (0, HOUR_MS, -HOUR_MS):
        await rig.start(TURNGATE_CLOCK_OFFSET_MS=str(offset))
    runner = await rig.runners.one("asker", "pool-1")
    sessions = [f"q-{number}" for number in range(scale.of(10, 200))]
    async with await rig.load(seed) as load:
        asked = await each(sessions, lambda session: runner.ask(_call(session), session, policy=FOR_A_DAY))
        await load.goes_on(scale.of(20, 500))
    problems = []
    waiting = [pending for question in asked if (pending := question.pending) is not None]
    if len(waiting) != len(sessions):
        problems.append(f"{len(sessions) - len(waiting)} questions do not wait, whose time is a day away")
    outcomes = await asyncio.gather(*(_resolved(runner, session) for session in sessions))
    odd = Counter(outcomes) - Counter({OutcomeKind.CHAT: len(sessions)})
    problems += [f"{count} questions came out as {kind}" for kind, count in odd.items()]
    problems += await _expire(rig, runner, scale.of(5, 60))
    found = await rig.settle(load.ledger)
    return Findings.sum([found, Findings(len(sessions), problems=tuple(problems))])


async def _expire(rig: Rig, runner: TurnClient, count: int) -> list[str]:
    """Let questions expire, whichever clock asked, and whichever is asked whether it is time."""
    sessions = [f"e-{number}" for number in range(count)]
    calls = {session: _call(session) for session in sessions}
    await each(sessions, lambda session: runner.ask(calls[session], session, policy=ExpireAfter(EXPIRY_MS)))
    kinds = await asyncio.gather(*(_waited(runner, calls[session], session) for session in sessions))
    early = [kind for kind in kinds if kind is not OutcomeKind.EXPIRED]
    events = [e.key for e in await rig.observer.events() if e.type == "turngate.question.expired"]
    twice = [session for session, times in Counter(events).items() if times > 1]
    return [f"{kind} instead of expired" for kind in early] + [f"{session} expired twice" for session in twice]


async def _waited(runner: TurnClient, call: ToolCall, session: str) -> OutcomeKind:
    request = reconcile([call])
    assert request is not None
    return (await patiently(lambda: runner.wait(request, session, timeout_ms=2_000))).kind


FOR_A_DAY = ExpireAfter(24 * HOUR_MS)


def _call(session: str) -> ToolCall:
    return ToolCall("ask_user_text", session, '{"question":"How on?"}')


async def _resolved(runner: TurnClient, session: str) -> OutcomeKind:
    found = await runner.questions.get(session, timeout_ms=PATIENCE_MS)
    assert found.pending is not None
    told = await runner.questions.resolve(session, found.pending.request, chat="On.", timeout_ms=PATIENCE_MS)
    return told.outcome.kind
