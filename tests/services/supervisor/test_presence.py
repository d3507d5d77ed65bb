"""Presence: known while it is fresh, forgotten by the server's clock, and kept again after the server forgot all."""

from tests.supervised import supervising
from tests.waiting import wait_until
from turngate.jetstream.embedded import EmbeddedServer
from turngate.supervisor.presence import takers
from turngate_contracts.beats import RunnerPresence
from turngate_contracts.errors import Unavailable
from turngate_protocol.esm.objective import Role


async def test_a_server_that_forgot_who_is_alive_is_told_again(own_server: EmbeddedServer, namespace: str):
    async with supervising(own_server.url, namespace, presence_ms=5_000) as supervised:
        person, hand = await supervised.person(), await supervised.runner()
        await hand.beat()
        await wait_until(lambda: supervised.supervisor.presences.deaf_ms == 0, why="it listened for long enough")

        own_server.restart()
        await wait_until(lambda: supervised.supervisor.presences.deaf_ms > 0, 30, "it knows that it was cut off")

        async def listed() -> bool:
            try:
                await hand.beat()
                return [runner.runner for runner in await person.runners()] == ["hand-1"]
            except Unavailable:
                return False

        await wait_until(listed, 30, "a beat was kept")


def test_who_could_take_a_role_takes_its_pool_and_role_and_does_not_end():
    def runner(**changed: object) -> RunnerPresence:
        facts = {"runner": "r", "at": 1, "incarnation": "i", "pools": ("p",), "roles": (Role.CRITIC,)}
        return RunnerPresence(**facts | changed)  # type: ignore[arg-type]

    alive = [runner(), runner(draining=True), runner(pools=("q",)), runner(roles=(Role.WORKER,))]

    assert takers(alive, "p", "critic") == 1
