"""Traces over OpenTelemetry, where an OTLP exporter is configured in its own variables; otherwise nothing is recorded.

`traceparent` travels in the headers of messages and of saves, so that one trace leads from a runner's publish over the
handler to the reconciler's effects and the event. It is handed on also where this process records nothing, because
others may. What was not configured is not imported, and costs a comparison a message.

    OTEL_EXPORTER_OTLP_ENDPOINT=http://collector:4318   where spans go; without it, or the one for traces, nowhere
    OTEL_TRACES_SAMPLER, OTEL_SERVICE_NAME, OTEL_SDK_DISABLED, …   as OpenTelemetry says
"""

import contextlib
import logging
import os
import re
from collections.abc import Iterator
from contextvars import ContextVar, Token
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from turngate_contracts.headers import TRACE_PARENT

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Tracer

log = logging.getLogger(__name__)

_ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
_FORM: Final = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")
_LINE: Final = re.compile(rb"\r\ntraceparent: *([0-9a-f-]{55})\r\n")
FLUSH_MS: Final = 3_000

_current: ContextVar[str] = ContextVar("turngate_trace_parent", default="")
_facts: ContextVar[dict[str, Any]] = ContextVar("turngate_facts", default={})  # noqa: B039  never changed


class _State:
    """What this process records with; one for all of it, as OpenTelemetry's own provider is."""

    def __init__(self) -> None:
        self.tracer: Tracer | None = None
        self.own: TracerProvider | None = None


_state: Final = _State()


def set_up(service: str) -> None:
    """Record spans from now on, where an exporter is configured; does nothing otherwise, or a second time.

    Args:
        service: what this process is, where OTEL_SERVICE_NAME does not say.
    """
    if _state.tracer is not None or not _is_configured():
        return
    try:
        from opentelemetry import trace
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError:
        log.warning("an OTLP exporter is configured, but traces need: pip install 'turngate[otel]'")
        return
    given = trace.get_tracer_provider()
    if isinstance(given, TracerProvider):
        # The program that uses our SDK records already: its spans and ours belong together.
        _state.tracer = given.get_tracer("turngate")
        return
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    name = os.environ.get("OTEL_SERVICE_NAME") or f"turngate-{service}"
    own = TracerProvider(resource=Resource.create({"service.name": name}))
    own.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    _state.own = own
    _state.tracer = own.get_tracer("turngate")


def shut_down() -> None:
    """Send what was recorded, within seconds, and record no more."""
    own, _state.own, _state.tracer = _state.own, None, None
    if own is not None:
        own.force_flush(FLUSH_MS)
        own.shutdown()


def trace_parent_of(head: bytes) -> str:
    """Return the traceparent of a header block; empty where there is none, or none that is well formed."""
    if b"traceparent" not in head:
        return ""
    found = _LINE.search(head)
    return well_formed(found[1].decode()) if found else ""


def well_formed(given: str) -> str:
    """Return a traceparent that somebody sent; empty where it is none."""
    return given if _FORM.fullmatch(given) else ""


def current() -> str:
    """Return the traceparent of what is being handled here; empty for none."""
    return _current.get()


def facts() -> dict[str, Any]:
    """Return what is being handled here, for log lines: such as its session, and its trace."""
    given = _current.get()
    return {**_facts.get(), "trace": given.split("-")[1]} if given else _facts.get()


def is_traced(head: bytes) -> bool:
    """Say whether a message's handling is part of a trace, or begins one."""
    return _state.tracer is not None or b"traceparent" in head


def headers() -> dict[str, str]:
    """Return the header that hands the current trace on, if there is one."""
    given = _current.get()
    return {TRACE_PARENT: given} if given else {}


class Span:
    """A piece of work that is part of a trace; as a context manager it is the current one.

    Where this process records nothing, it only hands its parent on, and tells log lines what is being handled.
    """

    __slots__ = ("_facts", "_span", "_tokens", "trace_parent")

    def __init__(self, name: str, parent: str = "", kind: str = "internal", **facts: Any) -> None:
        """Begin it.

        Args:
            name: what is done; the same for each of its kind.
            parent: the traceparent that it belongs to; empty for the program's own current span, or a new trace.
            kind: OpenTelemetry's kind of span: `producer`, `consumer` or `internal`.
            facts: what it is about, such as a session.
        """
        self.trace_parent = parent
        self._facts = {fact: value for fact, value in facts.items() if value != ""}
        self._tokens: tuple[Token[str], Token[dict[str, Any]]] | None = None
        self._span: Any = None
        if _state.tracer is not None:
            self._begin(name, kind)

    def _begin(self, name: str, kind: str) -> None:
        from opentelemetry.trace import SpanKind
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        form = TraceContextTextMapPropagator()
        context = form.extract({TRACE_PARENT: self.trace_parent}) if self.trace_parent else None
        attributes = {f"turngate.{fact}": value for fact, value in self._facts.items()}
        assert _state.tracer is not None  # noqa: S101  whoever calls this has looked
        self._span = _state.tracer.start_span(name, context, SpanKind[kind.upper()], attributes)
        given = self._span.get_span_context()
        self.trace_parent = f"00-{given.trace_id:032x}-{given.span_id:016x}-{int(given.trace_flags):02x}"

    def end(self, error: BaseException | None = None) -> None:
        """End it, with an error where it failed; a second end does nothing."""
        span, self._span = self._span, None
        if span is None:
            return
        if error is not None:
            from opentelemetry.trace import StatusCode

            span.set_status(StatusCode.ERROR, f"{type(error).__name__}: {error}"[:200])
        span.end()

    @contextlib.contextmanager
    def active(self) -> Iterator[None]:
        """Make it the current one for a while, without ending it then."""
        tokens = _current.set(self.trace_parent), _facts.set({**_facts.get(), **self._facts})
        try:
            yield
        finally:
            _current.reset(tokens[0])
            _facts.reset(tokens[1])

    def __enter__(self) -> Self:
        self._tokens = (_current.set(self.trace_parent), _facts.set({**_facts.get(), **self._facts}))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._tokens is not None:
            _current.reset(self._tokens[0])
            _facts.reset(self._tokens[1])
        self.end(error)


def _is_configured() -> bool:
    if os.environ.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return False
    if os.environ.get("OTEL_TRACES_EXPORTER", "otlp") != "otlp":
        return False
    return any(os.environ.get(name) for name in _ENDPOINTS)
