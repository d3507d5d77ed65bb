"""The gauge of dead letters counts those that somebody must still decide about, and reads only what changed."""

import pytest

from tests.running import running
from tests.services.deadletter.letters import bury_unreadable
from turngate.jetstream.embedded import EmbeddedServer
from turngate.metrics.letters import WaitingLetters
from turngate_contracts.dead import DeadDecided, DropDead


async def test_decided_letters_do_not_wait_and_an_unchanged_stream_is_not_read_again(
    nats_server: EmbeddedServer, namespace: str, monkeypatch: pytest.MonkeyPatch
):
    async with running(nats_server.url, namespace, deadletter=True) as system:
        letters = [await bury_unreadable(system, session) for session in ("s1", "s2")]
        counting = WaitingLetters(system.requester, system.settings.topology())

        async def count() -> int:
            info = await system.requester.api(f"STREAM.INFO.{system.subjects.stream('dead')}")
            return await counting.count(info["state"])

        both = await count()
        await (await system.client("ann")).call("dead.drop", DropDead(letters[0].letter), DeadDecided)
        one = await count()

        async def unread() -> int:
            raise AssertionError("it was read again")

        monkeypatch.setattr(counting, "_read", unread)
        assert (both, one, await count()) == (2, 1, 1)
