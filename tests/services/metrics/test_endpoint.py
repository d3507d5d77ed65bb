"""`/metrics`, `/healthz` and `/readyz` of a process: what they say, and what they refuse."""

import asyncio
import importlib.util

import pytest

from tests.services.metrics.conftest import Served, Serving
from tests.waiting import wait_until
from turngate.metrics import endpoint, gather
from turngate.metrics.endpoint import PortTaken


async def test_a_process_that_takes_work_is_healthy_and_ready(serving: Serving):
    async with serving("validation", "conclusion") as served:
        health, ready = await served.get("/healthz"), await served.get("/readyz")

    assert (health.status, health.body) == (200, "ok\n")
    assert ready.status == 200
    assert ready.body == '{"ready":true,"services":["validation","conclusion"],"reasons":[]}\n'


async def test_a_process_that_lost_its_server_is_healthy_and_not_ready(serving: Serving, own_server):
    async with serving(nats_url=own_server.url) as served:
        await asyncio.to_thread(own_server.kill)

        async def says_why() -> bool:
            answer = await served.get("/readyz")
            return answer.status == 503 and "the NATS server is not reached" in answer.body

        await wait_until(says_why, why="it is not ready")
        health = await served.get("/healthz")
        assert health.status == 200
        assert (await served.values()).of("turngate_connected") == 0
        await asyncio.to_thread(own_server.start)


async def test_a_draining_process_says_so_until_it_has_ended(serving: Serving, monkeypatch):
    answers = []

    async with serving() as served:
        from turngate.validation.service import ValidationService

        drain = ValidationService.stop

        async def ask_and_stop(self: ValidationService, timeout_ms: int = 10_000) -> bool:
            answers.append(await served.get("/readyz"))
            return await drain(self, timeout_ms)

        monkeypatch.setattr(ValidationService, "stop", ask_and_stop)

    assert answers[0].status == 503
    assert "starting or draining" in answers[0].body
    with pytest.raises(OSError, match=r"."):
        await served.get("/readyz")


async def test_a_head_has_no_body(serving: Serving):
    async with serving() as served:
        answer = await served.ask(b"HEAD /healthz HTTP/1.1\r\n\r\n")

    assert "Content-Length: 3" in answer.head
    assert answer.body == ""


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"GET /etc/passwd HTTP/1.1\r\n\r\n", 404),
        (b"POST /metrics HTTP/1.1\r\n\r\n", 405),
        (b"\xff\xfe\x00 \r\n\r\n", 405),
        (b"GET /metrics?x=%00 HTTP/1.1\r\n\r\n", 200),
        (b"GET /" + b"x" * 20_000 + b" HTTP/1.1\r\n\r\n", 400),
    ],
    ids=["unknown path", "unknown method", "not HTTP", "a query is ignored", "too long"],
)
async def test_anything_else_is_refused(serving: Serving, request_, status):
    async with serving() as served:
        assert (await served.ask(request_)).status == status


async def test_whoever_asks_too_slowly_is_cut_off_and_holds_up_nobody(serving: Serving, monkeypatch):
    monkeypatch.setattr(endpoint, "REQUEST_S", 0.3)
    async with serving() as served:
        slow = [await _connect(served) for _ in range(endpoint.AT_ONCE + 5)]
        closed = await asyncio.wait_for(asyncio.gather(*(_all_of(reader) for reader, _ in slow)), 10)
        answer = await served.get("/healthz")
        for _, writer in slow:
            writer.close()

    assert set(closed) == {b""}
    assert answer.status == 200


async def _connect(served: Served) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", served.settings.metrics_port)
    writer.write(b"GET /metrics")
    return reader, writer


async def _all_of(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.read()
    except ConnectionResetError:
        return b""  # closed with something unread


async def test_a_taken_port_is_a_clear_error(serving: Serving):
    async with serving() as served:
        with pytest.raises(PortTaken, match="choose another metrics_port"):
            async with serving(metrics_port=served.settings.metrics_port):
                pass


async def test_without_the_library_health_is_served_and_metrics_say_what_to_install(serving: Serving, monkeypatch):
    monkeypatch.setattr(gather, "is_available", lambda: False)
    monkeypatch.setitem(__import__("sys").modules, "prometheus_client", None)
    async with serving() as served:
        answer = await served.get("/metrics")

        assert answer.status == 501
        assert "pip install 'turngate[metrics]'" in answer.body
        assert (await served.get("/healthz")).status == 200


async def test_without_a_port_nothing_is_served_and_nothing_is_counted(serving: Serving):
    async with serving(metrics_port=0) as served, await served.client() as client:
        verdict = await client.submit_report("s1", 1, b"no report")

    assert verdict.outcome == "rejected"
    assert importlib.util.find_spec("prometheus_client")
