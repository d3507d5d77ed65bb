"""A user interface, a real process, stands still while ten thousand events come; it then shows each of them once."""

import asyncio
import json
import os
import signal
import sys

from tests.system.faults.findings import Findings
from tests.system.faults.rig import NAMESPACE, Rig, Scale, pause, resume
from tests.waiting import wait_until
from turngate.jetstream.store import Event
from turngate_contracts import codec
from turngate_protocol.cause import Cause
from turngate_protocol.report.session import Phase, SessionTurns, Turn

KEYS = 64


async def run(rig: Rig, seed: int, scale: Scale) -> Findings:
    """Pause `turngate events`, store, let it go on, and compare what it said with the stream."""
    count = scale.of(2_000, 10_000)
    log = rig.directory / "events.jsonl"
    command = (sys.executable, "-m", "turngate.cli.main", "events", "tail", "--from", "0", "--json")
    environment = os.environ | {"TURNGATE_NATS_URL": rig.url, "TURNGATE_NAMESPACE": NAMESPACE}
    with log.open("wb") as out:
        screen = await asyncio.create_subprocess_exec(*command, stdout=out, stderr=out, env=environment)
    try:
        await _store(rig, "before", 1)
        await wait_until(lambda: b"before" in log.read_bytes(), 30, "the interface shows an event")
        pause(screen.pid)
        try:
            await asyncio.gather(*(_store(rig, f"k{key}", count // KEYS + 1) for key in range(KEYS)))
            await rig.observer.events_are_complete()
        finally:
            resume(screen.pid)
        await _store(rig, "after", 1)
        wanted = [event.cursor for event in await rig.observer.events()]
        last = wanted[-1]
        await wait_until(lambda: _cursors(log.read_text())[-1:] == [last], 60, f"the interface shows event {last}")
    finally:
        screen.send_signal(signal.SIGTERM)
        await screen.wait()
    shown = _cursors(log.read_text())
    lost, twice = len(set(wanted) - set(shown)), len(shown) - len(set(shown))
    problems = () if shown == sorted(shown) else ("events were shown out of order",)
    return Findings(len(wanted), lost, twice, problems)


async def _store(rig: Rig, key: str, count: int) -> None:
    revision = 0
    for number in range(count):
        cause = Cause("turn.ended", "runner-1", number)
        state = SessionTurns(key, "pool-1", Turn(1, number, "runner-1", Phase.ENDED), cause)
        revision = await rig.observer.turns.save(key, codec.encode(state), revision, Event(cause.type, 1))


def _cursors(text: str) -> list[int]:
    """The events that were shown, by their place in the stream; the last line may not be whole yet."""
    whole = text[: text.rfind("\n") + 1]
    return [int(json.loads(line)["cursor"]) for line in whole.splitlines() if line.startswith("{")]
