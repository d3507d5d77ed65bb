"""What the metrics say of what happened."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.fundamentals.reports import CARD, DONE
from tests.services.metrics.conftest import Served, Serving, Values
from tests.waiting import wait_until
from turngate.metrics.histogram import Histogram
from turngate.metrics.names import METRICS
from turngate.metrics.sampler import Sampler
from turngate.metrics.watches import DeliveryWatch
from turngate.registry import SERVICES
from turngate_contracts.errors import Refusal

DEPLOY = Path(__file__).parents[3] / "deploy"
_NAME = re.compile(r"\bturngate_[a-z_]+\b")
_SUFFIX = re.compile(r"_(bucket|sum|count)$")


@pytest.fixture(autouse=True)
def sampled_often(monkeypatch):
    monkeypatch.setattr("turngate.metrics.sampler.INTERVAL_S", 0.1)


async def until(served: Served, condition: Any, why: str) -> Values:
    """Wait until the metrics are so, and return them."""
    newest = Values()

    async def holds() -> bool:
        nonlocal newest
        newest = await served.values()
        return bool(condition(newest))

    await wait_until(holds, why=why)
    return newest


async def test_verdicts_and_problems_are_counted_by_code(serving: Serving):
    async with serving() as served, await served.client() as client:
        await client.submit_report("s1", 1, b"no report")
        await client.submit_report("s1", 1, json.dumps(DONE), attempt=2, mutated=True)
        await client.submit_report("s2", 1, json.dumps(DONE), mutated=True)
        await client.end_turn("s3", 1, mutated=True)
        values = await served.values()

    assert values.of("turngate_verdicts_total", outcome="accepted") == 2
    assert values.of("turngate_verdicts_total", outcome="rejected") == 1
    assert values.of("turngate_problems_total") >= 1
    assert values.of("turngate_endings_total", outcome="reminder") == 1


async def test_a_message_is_measured_from_its_storing_to_its_verdict(serving: Serving):
    async with serving() as served, await served.client() as client:
        await client.submit_report("s1", 1, json.dumps(DONE))
        values = await until(
            served,
            lambda now: now.of("turngate_deliveries_total", consumer="validation", outcome="acked") == 1,
            "the message is acked",
        )

    assert values.of("turngate_message_age_seconds_count", consumer="validation") == 1
    assert 0 < values.of("turngate_message_age_seconds_sum", consumer="validation") < 60
    assert 0 < values.of("turngate_handler_seconds_sum", consumer="validation") < 60
    assert values.of("turngate_message_age_seconds_bucket", consumer="validation", le="+Inf") == 1


async def test_requests_are_measured_by_name_and_code(serving: Serving):
    async with serving() as served, await served.client() as client:
        await client.inbox()
        with pytest.raises(Refusal):
            await client.get("nobody")
        values = await served.values()

    assert values.of("turngate_requests_total", request="inbox.list", code="ok") == 1
    assert values.of("turngate_requests_total", request="turn.get", code="not_found") == 1
    assert values.of("turngate_request_seconds_count", request="turn.get") == 1


async def test_what_waits_and_what_is_dead_is_sampled(serving: Serving):
    async with serving() as served, await served.client() as client:
        await client.submit_report("s1", 1, json.dumps(CARD), mutated=True)
        await client.publish(client.subjects.turn_report("pool-1", "runner-1", "s1"), b"{", b"")
        values = await until(
            served,
            lambda now: now.of("turngate_dead_letters") == 1 and now.of("turngate_waiting", kind="card") == 1,
            "the samples show them",
        )

    assert values.of("turngate_deliveries_total", consumer="validation", outcome="dead") == 1
    assert values.of("turngate_waiting", kind="question") == 0
    assert values.of("turngate_stream_limit_bytes") > 0


async def test_objectives_are_counted_by_status_as_they_change(serving: Serving):
    async with serving("validation", "supervisor") as served, await served.client("ann") as client:
        for session in ("a", "b", "c"):
            await client.objectives.create(session, f"make {session} pass", pool=client.pool)
        await until(served, lambda now: now.of("turngate_objectives", status="active") == 3, "three are active")
        await client.objectives.pause("a")
        await client.objectives.clear("b")
        values = await until(served, lambda now: now.of("turngate_objectives", status="paused") == 1, "one is paused")

        assert values.of("turngate_objectives") == 2
        assert values.of("turngate_objective_causes_total", cause="paused") == 1


async def test_a_stale_sample_is_not_shown(serving: Serving, monkeypatch):
    async with serving() as served:
        await until(served, lambda now: "turngate_consumer_pending" in now.names, "there is a sample")
        monkeypatch.setattr("turngate.metrics.sampler.STALE_S", -1.0)

        assert "turngate_consumer_pending" not in (await served.values()).names


async def test_every_metric_of_the_services_is_in_the_table(serving: Serving):
    async with serving(*SERVICES) as served, await served.client() as client:
        await client.submit_report("s1", 1, json.dumps(DONE))
        values = await until(served, lambda now: "turngate_events_lag" in now.names, "there is a sample")

    exported = {_SUFFIX.sub("", name) for name in values.names}
    assert exported <= METRICS.keys()


def test_a_redelivery_is_counted_and_a_clock_that_is_behind_makes_no_negative_age():
    watch = DeliveryWatch()

    watch.ended(b"$JS.ACK.S.C.2.7.9.99999999999999999999.0", b"+ACK", 0.5)
    watch.ended(b"$JS.ACK.domain.account.S.C.1.7.9.1700000000000000000.0.token", b'-NAK {"delay": 5}', 0.5)

    assert watch.redelivered == 1
    assert watch.outcomes == {"acked": 1, "retried": 1}
    assert watch.age.sum == 0


def test_buckets_count_what_is_at_most_their_bound():
    histogram = Histogram((1.0, 2.0))

    for value in (0.5, 1.0, 1.5, 9.0):
        histogram.add(value)

    assert histogram.buckets() == [("1", 2.0), ("2", 3.0), ("+Inf", 4.0)]


def _expressions(value: Any) -> list[str]:
    """Every PromQL expression in a dashboard or in rules."""
    if isinstance(value, dict):
        own = [value["expr"]] if isinstance(value.get("expr"), str) else []
        own += [value["query"]] if isinstance(value.get("query"), str) else []
        return own + [found for each in value.values() for found in _expressions(each)]
    return [found for each in value for found in _expressions(each)] if isinstance(value, list) else []


@pytest.mark.parametrize("file", ["grafana/turngate.json", "prometheus/alerts.yaml"])
def test_dashboard_and_alerts_name_only_metrics_and_labels_that_exist(file):
    text = (DEPLOY / file).read_text()
    expressions = _expressions(json.loads(text) if file.endswith(".json") else yaml.safe_load(text))
    named = {_SUFFIX.sub("", name) for expression in expressions for name in _NAME.findall(expression)}

    assert len(named) > 10
    assert named <= METRICS.keys()
    labels = {label for name in named for label in METRICS[name].labels} | {"job", "instance", "le"}
    used = {
        label.strip()
        for expression in expressions
        for group in re.findall(r"\b(?:by|on)\s*\(([^)]*)\)", expression)
        for label in group.split(",")
    }
    used |= set(re.findall(r"[{,]\s*([a-z_]+)\s*(?:=~|!~|!=|=)", " ".join(expressions)))
    assert used <= labels


def test_every_alert_has_a_chapter_in_the_runbook():
    rules = yaml.safe_load((DEPLOY / "prometheus/alerts.yaml").read_text())
    alerts = [rule for group in rules["groups"] for rule in group["rules"]]
    runbook = (DEPLOY.parent / "docs" / "operations.md").read_text()
    chapters = set(re.findall(r"^### (\w+)$", runbook, re.MULTILINE))

    assert {rule["alert"] for rule in alerts} == chapters
    for rule in alerts:
        assert rule["annotations"].keys() == {"summary", "runbook"}
        assert rule["annotations"]["runbook"] == f"docs/operations.md#{rule['alert'].lower()}"
        assert rule["labels"]["severity"] in ("page", "ticket")


def test_every_metric_is_explained_in_the_table_of_the_documentation():
    page = (DEPLOY.parent / "docs" / "operations.md").read_text()
    rows = dict(re.findall(r"^\| `(turngate_\w+)` \| (.*) \|$", page, re.MULTILINE))

    assert rows == {name: metric.help for name, metric in METRICS.items()}


async def test_a_sample_needs_no_process_of_its_own(system):
    sampler = Sampler(system.requester, system.settings.topology())

    await sampler.sample()

    assert sampler.figures["turngate_consumer_pending"]
