import pytest

from turngate_protocol.esm import Evidence, EvidenceTracker, ToolEvent


def track(*events: ToolEvent) -> Evidence:
    tracker = EvidenceTracker()
    for event in events:
        tracker.observe(event)
    return tracker.summary()


def test_nothing_happened_before_the_first_event():
    assert track() == Evidence()


def test_a_call_counts_once_whichever_of_its_events_come():
    seen = track(
        ToolEvent("tool_call", "c1", "read"),
        ToolEvent("tool_execution_start", "c1", "read"),
        ToolEvent("tool_result", "c1", "read"),
    )
    assert seen == Evidence(1, {"read": 1}, 0)


@pytest.mark.parametrize("kind", ["tool_call", "tool_execution_start"])
def test_calls_without_an_id_count_each(kind):
    assert track(ToolEvent(kind, name="ls"), ToolEvent(kind, name="ls")) == Evidence(2, {"ls": 2}, 0)


@pytest.mark.parametrize("kind", ["tool_result", "tool_execution_end"])
def test_an_id_that_failed_once_has_failed_for_good(kind):
    seen = track(ToolEvent("tool_call", "c1"), ToolEvent(kind, "c1", error=True), ToolEvent(kind, "c1"))
    assert (seen.tool_calls, seen.tool_errors) == (1, 1)


def test_a_failure_without_an_id_marks_nothing():
    assert track(ToolEvent("tool_result", error=True)) == Evidence()


def test_other_events_are_no_evidence():
    assert track(ToolEvent("message", "c1", "read", error=True)) == Evidence()


def test_a_summary_is_not_changed_by_later_events():
    tracker = EvidenceTracker()
    tracker.observe(ToolEvent("tool_call", "c1", "read"))
    before = tracker.summary()
    tracker.observe(ToolEvent("tool_call", "c2", "read"))
    assert before.tool_names == {"read": 1}
