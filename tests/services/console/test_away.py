"""While the NATS server is away: a clear word, nothing half-done, and on by itself afterwards."""

import time
from pathlib import Path

import pytest

from tests.services.console.serving import card, serving
from tests.waiting import wait_until
from turngate.jetstream.embedded import EmbeddedServer


async def test_an_action_while_the_server_is_away_is_safe_to_repeat(
    own_server: EmbeddedServer, namespace: str, tmp_path: Path
) -> None:
    async with serving(own_server.url, namespace, tmp_path) as console, console.browser() as page:
        client = await console.system.client()
        await card(client)
        await page.get("/sessions/s1")
        answer = {"turn": 1, "option": 1, "op": "op-1"}

        own_server.stop()
        await wait_until(lambda: not console.service.hub.connected)
        began = time.monotonic()
        shown = await page.get("/sessions/s1")
        done = await page.post("/sessions/s1/answer", **answer)
        took_s = time.monotonic() - began

        assert (shown.status_code, done.status_code) == (503, 503)
        assert "the NATS server is away" in shown.text
        assert done.json()["code"] == "unavailable"
        assert int(done.headers["retry-after"]) > 0
        assert took_s < 5, "it is told at once, without waiting for an answer"
        assert (await page.get("/healthz")).status_code == 200

        own_server.start()
        repeated = []

        async def answered() -> bool:
            repeated.append(await page.post("/sessions/s1/answer", **answer))
            return repeated[-1].status_code == 200

        await wait_until(answered, 30, "the console goes on by itself")
        assert {each.status_code for each in repeated} <= {200, 503}
        given = (await client.get("s1")).state.current.answer
        assert given is not None
        assert (given.number, given.op) == (1, "op-1")


async def test_a_service_that_does_not_answer_is_told_in_bounded_time(
    nats_server: EmbeddedServer, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("turngate.console.reading.TIMEOUT_MS", 300)
    async with (
        serving(nats_server.url, namespace, tmp_path, validation=False) as console,
        console.browser() as page,
    ):
        found = await page.get("/", accept="application/json")

    assert (found.status_code, found.json()["code"]) == (503, "unavailable")
    assert "nobody answers" in found.json()["message"]
