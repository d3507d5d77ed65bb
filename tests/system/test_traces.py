"""One trace from a runner's publish over the service to the event and the reconciler, sent to an OTLP receiver."""

import asyncio
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span as Sent

from tests.fundamentals.reports import CARD, DONE
from tests.system.observer import Observer
from tests.system.processes import Fleet
from tests.waiting import wait_until
from turngate import tracing
from turngate.jetstream.embedded import EmbeddedServer
from turngate.runner import TurnClient
from turngate.tracing import Span, trace_parent_of

pytestmark = pytest.mark.slow


class Receiver:
    """Takes traces as a collector does: HTTP, protobuf."""

    def __init__(self) -> None:
        self.spans: list[tuple[str, Sent]] = []
        """(service, span)."""
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.take(ExportTraceServiceRequest.FromString(body))
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_arguments: object) -> None:
                """Nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def take(self, request: ExportTraceServiceRequest) -> None:
        for resource in request.resource_spans:
            (service,) = (a.value.string_value for a in resource.resource.attributes if a.key == "service.name")
            self.spans += [(service, span) for scope in resource.scope_spans for span in scope.spans]

    def of(self, name: str, trace: bytes) -> list[tuple[str, Sent]]:
        return [(service, span) for service, span in self.spans if span.name == name and span.trace_id == trace]

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def receiver(monkeypatch) -> Iterator[Receiver]:
    """A receiver to which this process, and those that it starts, send their spans."""
    made = Receiver()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", made.url)
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "100")
    yield made
    tracing.shut_down()
    made.close()


async def test_one_trace_spans_runner_service_event_and_effects(
    nats_server: EmbeddedServer, namespace: str, tmp_path: Path, receiver: Receiver
):
    fleet = Fleet(nats_server.url, namespace, tmp_path)
    observer = await Observer.connect(nats_server.url, namespace)
    try:
        (service,) = await fleet.start(OTEL_EXPORTER_OTLP_ENDPOINT=receiver.url, OTEL_BSP_SCHEDULE_DELAY="100")
        mail: list[bytes] = []
        await observer.connection.listen(
            observer.subjects.mailbox_all("r1"), lambda _s, _r, _b, head: mail.append(head)
        )
        async with await TurnClient.connect("r1", pool="p1", url=nats_server.url, namespace=namespace) as client:
            with Span("the runner's own work") as own:
                await client.submit_report("s1", 1, json.dumps(CARD), mutated=True)
        trace = bytes.fromhex(own.trace_parent.split("-")[1])

        await wait_until(lambda: receiver.of("turngate.reconcile", trace), why="the reconciler's span has come")
        service.terminate()
        await service.ended()
        await asyncio.to_thread(tracing.shut_down)

        (submitted,) = receiver.of("turngate.submit", trace)
        (validated,) = receiver.of("turngate.validate", trace)
        assert submitted[0] == "turngate-runner"
        assert validated[0] == "turngate-validation"
        assert validated[1].parent_span_id == submitted[1].span_id
        assert {a.key: a.value.string_value for a in validated[1].attributes} == {
            "turngate.session": "s1",
            "turngate.runner": "r1",
        }
        reconciled = receiver.of("turngate.reconcile", trace)
        assert reconciled[0][1].parent_span_id == validated[1].span_id
        told = observer.messages(observer.subjects.stream("events"), f"{namespace}.event.turns.s1")
        event = await anext(aiter(told))
        assert event.fields["traceparent"].startswith(f"00-{trace.hex()}-{validated[1].span_id.hex()}-")
        assert trace.hex() in trace_parent_of(mail[0])
        fleet.assert_no_crash_was_logged()
    finally:
        fleet.end()
        await observer.close()


async def test_a_trace_is_handed_on_by_processes_that_record_nothing(system):
    parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    client = await system.client()

    with Span("nothing is recorded here", parent):
        await client.submit_report("s1", 1, json.dumps(DONE), mutated=True)

    assert system.validation is not None
    entry = await system.validation.lanes.store.load("s1")
    assert entry.headers()["traceparent"] == parent


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x:1", "OTEL_SDK_DISABLED": "true"},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x:1", "OTEL_TRACES_EXPORTER": "none"},
    ],
    ids=["no exporter", "switched off", "another exporter"],
)
def test_nothing_is_recorded_where_no_exporter_is_configured(monkeypatch, environment):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)

    tracing.set_up("x")

    assert not tracing.is_traced(b"NATS/1.0\r\n\r\n")
    assert Span("x").trace_parent == ""


def test_without_the_library_a_configured_exporter_is_a_warning(monkeypatch, caplog):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://x:1")
    monkeypatch.setitem(__import__("sys").modules, "opentelemetry", None)

    tracing.set_up("x")

    assert "pip install 'turngate[otel]'" in caplog.text


@pytest.mark.parametrize(
    "head",
    [
        b"NATS/1.0\r\ntraceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\nNats-Rollup: all\r\n\r\n",
        b"NATS/1.0\r\ntraceparent: " + b"x" * 55 + b"\r\n\r\n",
        b"NATS/1.0\r\nx-traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\r\n\r\n",
        b"NATS/1.0\r\ntraceparent:\r\n\r\n",
    ],
)
def test_a_traceparent_that_is_none_is_not_handed_on(head):
    assert trace_parent_of(head) == ""
