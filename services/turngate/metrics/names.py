"""Every metric by its name: the one table for the collector, the dashboard, the alerts and the documentation."""

from typing import Final, Literal, NamedTuple

Kind = Literal["counter", "gauge", "histogram"]


class Metric(NamedTuple):
    """One metric: its name, kind, labels, and what it says."""

    name: str
    kind: Kind
    labels: tuple[str, ...]
    help: str


_PROCESS: Final = (
    Metric("turngate_info", "gauge", ("version", "services"), "1; its labels say what runs here"),
    Metric("turngate_ready", "gauge", (), "1 while this process takes work"),
    Metric("turngate_connected", "gauge", (), "1 while the NATS server is reached"),
    Metric("turngate_reconnects_total", "counter", (), "How often the connection came back"),
    Metric("turngate_malformed_messages_total", "counter", (), "Messages that could not be read, and were dropped"),
    Metric("turngate_refused_operations_total", "counter", (), "Operations that the server's permissions refused"),
    Metric("turngate_send_buffer_bytes", "gauge", (), "Bytes that wait to be sent"),
)
_HANDLING: Final = (
    Metric(
        "turngate_deliveries_total",
        "counter",
        ("stream", "consumer", "outcome"),
        "Deliveries that ended, by outcome: acked, retried, dead, dropped",
    ),
    Metric("turngate_redeliveries_total", "counter", ("stream", "consumer"), "Deliveries that were not the first"),
    Metric("turngate_handler_seconds", "histogram", ("consumer",), "From a delivery to its end"),
    Metric(
        "turngate_message_age_seconds",
        "histogram",
        ("consumer",),
        "From a message's storing to its acknowledgement; for `validation`, from a runner's publish to the verdict",
    ),
    Metric("turngate_in_hand", "gauge", ("consumer",), "Deliveries that are being handled"),
    Metric("turngate_consumer_gone", "gauge", ("consumer",), "1 while the server has no such consumer"),
    Metric("turngate_saves_total", "counter", ("bucket",), "Revisions that this process tried to store"),
    Metric("turngate_conflicts_total", "counter", ("bucket",), "Saves that another process came before"),
    Metric("turngate_lane_depth", "gauge", ("bucket",), "Keys that have work under way"),
    Metric("turngate_cached_states", "gauge", ("bucket",), "States that are cached"),
    Metric("turngate_reconciled_total", "counter", ("bucket",), "States whose wants were performed"),
    Metric("turngate_requests_total", "counter", ("request", "code"), "Answered requests, by error code or ok"),
    Metric("turngate_request_seconds", "histogram", ("request",), "From a request to its answer"),
)
_DOMAIN: Final = (
    Metric("turngate_verdicts_total", "counter", ("outcome",), "New verdicts on reports"),
    Metric("turngate_problems_total", "counter", ("code",), "Problems of rejected reports"),
    Metric("turngate_endings_total", "counter", ("outcome",), "Endings of turns: settled, reminder, unreported"),
    Metric("turngate_repeats_total", "counter", ("service",), "Messages that were answered from the state"),
    Metric("turngate_refusals_total", "counter", ("service", "code"), "Messages and commands that changed nothing"),
    Metric("turngate_questions_total", "counter", ("event",), "Questions asked, and their outcomes"),
    Metric("turngate_conclusions_total", "counter", ("status",), "Verdicts on finished tasks"),
    Metric("turngate_evidence_refs_total", "counter", ("state",), "What was found of the evidence that tasks cite"),
    Metric("turngate_silent_runners_total", "counter", (), "Runners that did not say in time which files exist"),
    Metric("turngate_objective_causes_total", "counter", ("cause",), "Changes of objectives, by cause"),
    Metric("turngate_role_verdicts_total", "counter", ("role", "verdict"), "What roles said of objectives"),
    Metric("turngate_ignored_results_total", "counter", ("reason",), "Results of role runs that changed nothing"),
    Metric("turngate_role_seconds", "histogram", ("role",), "How long role runs took, by their runners' clocks"),
)
_SAMPLED: Final = (
    Metric("turngate_sampled_timestamp_seconds", "gauge", (), "When the server was last sampled"),
    Metric("turngate_stream_messages", "gauge", ("stream",), "Messages in a stream"),
    Metric("turngate_stream_bytes", "gauge", ("stream",), "Bytes in a stream"),
    Metric("turngate_stream_limit_bytes", "gauge", ("stream",), "Most bytes that a stream takes, where limited"),
    Metric("turngate_replicas_behind", "gauge", ("stream",), "Replicas of a stream that are offline or not current"),
    Metric("turngate_consumer_pending", "gauge", ("stream", "consumer"), "Messages that wait for a consumer: its lag"),
    Metric("turngate_consumer_ack_pending", "gauge", ("stream", "consumer"), "Messages that its processes hold"),
    Metric("turngate_consumer_pulls", "gauge", ("stream", "consumer"), "Pulls that wait for messages"),
    Metric("turngate_events_lag", "gauge", (), "Revisions that the events stream has not taken over yet"),
    Metric("turngate_dead_letters", "gauge", (), "Dead letters that wait for a person"),
    Metric("turngate_waiting", "gauge", ("kind",), "What waits for a person: cards, questions, objectives"),
    Metric("turngate_objectives", "gauge", ("status",), "Objectives by status"),
)

METRICS: Final = {metric.name: metric for metric in (*_PROCESS, *_HANDLING, *_DOMAIN, *_SAMPLED)}
"""All metrics by name."""
