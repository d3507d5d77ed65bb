"""A session with a backlog is served beside the others, not before them."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.fundamentals.reports import DONE
from tests.running import System, running
from tests.waiting import wait_until
from turngate.jetstream.direct import read_subjects
from turngate.jetstream.embedded import EmbeddedServer
from turngate.jetstream.store import Store
from turngate.validation.service import ValidationService
from turngate_contracts import codec
from turngate_contracts.messages import ReportSubmitted, wrap_report

BACKLOG = 200
QUIET = 20
WINDOW = 64


async def test_quiet_sessions_get_their_verdicts_while_a_noisy_one_is_stuck_with_three_windows_of_turns(
    nats_server: EmbeddedServer, namespace: str, monkeypatch: pytest.MonkeyPatch
):
    held: list[Callable[[], None]] = []
    save = Store.save_nowait

    def hold_the_noisy(store: Store, key: str, value: bytes, revision: int, *rest: Any) -> None:
        if key == "noisy":
            held.append(lambda: save(store, key, value, revision, *rest))
        else:
            save(store, key, value, revision, *rest)

    async with running(nats_server.url, namespace, validation=False, window=WINDOW) as system:
        for turn in range(1, BACKLOG + 1):
            await _publish(system, "noisy", turn)
        await asyncio.gather(*(_publish(system, f"quiet-{number}", 1) for number in range(QUIET)))
        service = ValidationService(system.connection, system.requester, system.settings)

        with monkeypatch.context() as patched:
            patched.setattr(Store, "save_nowait", hold_the_noisy)
            await service.start()
            await wait_until(lambda: _has_states(system, QUIET), why="every quiet session has its verdict")
            assert len(held) == 1

        held.pop()()
        await wait_until(lambda: service.counters.verdicts.total() == BACKLOG + QUIET, why="the backlog is done too")
        assert await service.stop()


async def _has_states(system: System, count: int) -> bool:
    stream, keys = system.subjects.bucket_stream("turns"), system.subjects.key("turns", "*")
    return len(await read_subjects(system.requester, stream, keys)) == count


async def _publish(system: System, session: str, turn: int) -> None:
    raw, _ = wrap_report(json.dumps(DONE).encode())
    body = codec.encode(ReportSubmitted(session, turn, 1, "runner-1", "pool-1", report=raw))
    await system.requester.publish(system.subjects.turn_report("pool-1", "runner-1", session), body)
