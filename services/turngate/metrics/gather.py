"""Gathering everything that a process measures, in Prometheus' text form, when somebody asks for it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from turngate import __version__
from turngate.jetstream.connect import Connection
from turngate.metrics.histogram import Histogram
from turngate.metrics.names import METRICS
from turngate.metrics.observed import Labels, Observed
from turngate.metrics.sampler import Figures
from turngate_contracts.errors import Unavailable

if TYPE_CHECKING:
    from prometheus_client.core import Metric

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"


class MetricsMissing(Unavailable):
    """The library that writes metrics is not installed."""

    def __init__(self) -> None:
        super().__init__("metrics need the package prometheus-client: pip install 'turngate[metrics]'")


def text_of(families: "Iterable[Metric]") -> bytes:
    """Return metrics as Prometheus reads them.

    Raises:
        MetricsMissing: prometheus-client is not installed.
    """
    try:
        from prometheus_client import CollectorRegistry, generate_latest
        from prometheus_client.registry import Collector
    except ImportError:
        raise MetricsMissing from None

    class Once(Collector):
        def collect(self) -> "Iterable[Metric]":
            return families

    registry = CollectorRegistry(auto_describe=False)
    registry.register(Once())
    return generate_latest(registry)


def is_available() -> bool:
    """Say whether metrics can be written here."""
    from importlib.util import find_spec

    return find_spec("prometheus_client") is not None


class Gathered:
    """Values of metrics on their way into families, each checked against the table of names."""

    def __init__(self) -> None:
        self._values: dict[str, dict[tuple[str, ...], Any]] = {}

    def add(self, name: str, labels: Labels, value: float) -> None:
        """Add to a counter or gauge; what several parts of a process count under the same labels is summed."""
        values = self._values.setdefault(name, {})
        key = labels if isinstance(labels, tuple) else (labels,)
        values[key] = values.get(key, 0.0) + value

    def add_histogram(self, name: str, labels: Labels, histogram: Histogram) -> None:
        """Add a histogram."""
        key = labels if isinstance(labels, tuple) else (labels,)
        self._values.setdefault(name, {})[key] = (histogram.buckets(), histogram.sum)

    def add_connection(self, connection: Connection) -> None:
        """Add what a connection counted."""
        self.add("turngate_connected", (), connection.is_connected)
        self.add("turngate_reconnects_total", (), connection.stats["reconnects"])
        self.add("turngate_malformed_messages_total", (), connection.dropped_malformed)
        self.add("turngate_refused_operations_total", (), connection.refusals.count)
        self.add("turngate_send_buffer_bytes", (), connection.pending_data_size)

    def add_service(self, name: str, observed: Observed) -> None:
        """Add what a service shows."""
        for loop in observed.all_loops:
            self.add("turngate_in_hand", loop.consumer, loop.handling)
            self.add("turngate_consumer_gone", loop.consumer, loop.gone)
            watch = loop.watch
            if watch is not None:
                for outcome, count in watch.outcomes.items():
                    self.add("turngate_deliveries_total", (loop.stream, loop.consumer, outcome), count)
                self.add("turngate_redeliveries_total", (loop.stream, loop.consumer), watch.redelivered)
                self.add_histogram("turngate_handler_seconds", loop.consumer, watch.handling)
                self.add_histogram("turngate_message_age_seconds", loop.consumer, watch.age)
        for lanes in observed.lanes:
            bucket = lanes.store.bucket
            self.add("turngate_saves_total", bucket, lanes.saves)
            self.add("turngate_conflicts_total", bucket, lanes.conflicts)
            self.add("turngate_lane_depth", bucket, lanes.busy)
            self.add("turngate_cached_states", bucket, lanes.cached)
        for reconciler in observed.reconcilers:
            self.add("turngate_reconciled_total", reconciler.bucket, reconciler.performed)
        for api in observed.apis:
            if api.watch is not None:
                for labels, count in api.watch.answers.items():
                    self.add("turngate_requests_total", labels, count)
                for request, seconds in api.watch.seconds.items():
                    self.add_histogram("turngate_request_seconds", request, seconds)
        self._add_counts(name, observed)

    def _add_counts(self, service: str, observed: Observed) -> None:
        for name, counts in observed.counts.items():
            per_service = METRICS[name].labels[:1] == ("service",)
            for labels, count in ({(): counts} if isinstance(counts, int) else counts).items():
                given = labels if isinstance(labels, tuple) else (labels,)
                self.add(name, (service, *given) if per_service else given, count)
        for name, histograms in observed.histograms.items():
            for label, histogram in histograms.items():
                self.add_histogram(name, label, histogram)

    def add_figures(self, figures: Figures) -> None:
        """Add what was sampled."""
        for name, values in figures.items():
            for labels, value in values.items():
                self.add(name, labels, value)

    def add_process(self, services: Sequence[str], ready: bool) -> None:
        """Add what runs here."""
        self.add("turngate_info", (__version__, ",".join(services)), 1)
        self.add("turngate_ready", (), ready)

    def families(self) -> "Iterator[Metric]":
        """Yield the metrics that have values, in the order of the table."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

        for metric in METRICS.values():
            values: Mapping[tuple[str, ...], Any] = self._values.get(metric.name, {})
            if not values:
                continue
            made: Any
            if metric.kind == "counter":
                made = CounterMetricFamily(metric.name, metric.help, labels=metric.labels)
            elif metric.kind == "gauge":
                made = GaugeMetricFamily(metric.name, metric.help, labels=metric.labels)
            else:
                made = HistogramMetricFamily(metric.name, metric.help, labels=metric.labels)
            for labels, value in sorted(values.items()):
                if metric.kind == "histogram":
                    made.add_metric(labels, buckets=value[0], sum_value=value[1])
                else:
                    made.add_metric(labels, float(value))
            yield made
