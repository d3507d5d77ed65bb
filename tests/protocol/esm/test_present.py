import pytest

from turngate_protocol.esm import (
    AuditReport,
    Objective,
    Status,
    Verdict,
    WorkerReport,
    WorkerStatus,
    continuation_prompt,
    final_assistant_response,
    format_duration,
    format_item_detail,
    format_objective,
    format_report_parts,
)
from turngate_protocol.esm.present import (
    format_audit_review,
    format_observer_blocker,
    format_worker_blocker,
    format_worker_completion,
    worker_continue_message,
    worker_outstanding_work,
)

REPORT = WorkerReport(
    WorkerStatus.CONTINUE, "a pier", ("looked", "measured"), ("the deck", "paint"), ("no steel", "no wood")
)


def test_an_objective_is_a_few_lines_and_leaves_out_what_is_empty():
    assert format_objective(Objective("s1", "e1", "build")) == (
        "Status: active\nPhase: worker\nObjective: build\nTokens: 0\nTime: 0ms"
    )


def test_an_objective_with_everything_shows_everything():
    text = format_objective(
        Objective(
            "s1",
            "e1",
            "build",
            Status.BLOCKED,
            tokens_used=12,
            time_used_ms=61_000,
            blocked_count=3,
            blocked_reason="no steel",
            progress_summary="a pier",
            remaining_work=("the deck", "paint"),
            rejection_count=2,
            recovery_count=1,
            recovery_reason="worker deadline",
            completion_reason="it stands",
            completion_review="no railing",
        )
    )
    assert text.split("\n")[3:] == [
        "Tokens: 12",
        "Time: 1m",
        "Blocker 3/3: no steel",
        "Progress: a pier",
        "Remaining work (2): the deck; paint",
        "Rejections: 2",
        "Recoveries: 1 (worker deadline)",
        "Candidate: it stands",
        "Review: no railing",
    ]


def test_no_objective_says_so():
    assert format_objective(None) == "No objective."


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (0, "0ms"),
        (999, "999ms"),
        (1_000, "1s"),
        (59_999, "59s"),
        (60_000, "1m"),
        (3_600_000, "1h 0m"),
        (90_060_000, "25h 1m"),
    ],
)
def test_a_duration_is_as_short_as_it_can_be(milliseconds, text):
    assert format_duration(milliseconds) == text


def test_a_list_is_shown_with_its_count():
    assert format_item_detail("left", ["a", "b"]) == "left (2): a; b"
    assert format_item_detail("left", []) == ""


def test_the_parts_of_a_report_stand_on_lines_of_their_own():
    text = format_report_parts(("summary", "s"), ("evidence", ["a", "b"]), ("left", ["c"]), "raw")
    assert text == "summary: s\nevidence: a; b\nleft (1): c"


def test_a_report_without_parts_is_its_raw_text():
    assert format_report_parts(("summary", ""), ("evidence", []), ("left", []), " raw\n") == "raw"


def test_the_formats_of_the_reports():
    assert (
        format_worker_completion(REPORT)
        == "summary: a pier\nevidence: looked; measured\nremaining_work (2): the deck; paint"
    )
    assert format_worker_blocker(REPORT) == "no steel; no wood"
    assert format_observer_blocker(["a", "b"]) == "recovery observer blockers (2): a; b"
    review = AuditReport(Verdict.FAIL, "poor", (), ("paint",), ("looked",))
    assert format_audit_review(review) == "review: poor\nevidence: looked\nmissing_work (1): paint"


def test_outstanding_work_holds_the_blockers_too():
    assert worker_outstanding_work(REPORT) == ("the deck", "paint", "blocker: no steel", "blocker: no wood")


def test_a_run_that_goes_on_says_something_even_when_it_has_nothing_to_say():
    assert worker_continue_message(WorkerReport(WorkerStatus.CONTINUE)) == "The worker goes on."


def test_the_continuation_prompt_points_to_the_objective():
    assert "get_esm" in continuation_prompt(Objective("s1", "e1", "secret text"))
    assert "secret text" not in continuation_prompt(Objective("s1", "e1", "secret text"))


@pytest.mark.parametrize(
    ("messages", "text"),
    [
        ([], ""),
        ([{"role": "user", "content": "hello"}], ""),
        ([{"role": "assistant", "content": " one "}, {"role": "assistant", "content": "two"}], "two"),
        ([{"role": "assistant", "content": "one"}, {"role": "tool", "content": "two"}], "one"),
        ([{"role": "assistant", "content": "one"}, {"role": "assistant", "content": " "}], "one"),
        (
            [
                {
                    "role": "assistant",
                    "content": [{"type": "text", "text": "a"}, {"type": "tool"}, {"type": "text", "text": "b"}],
                }
            ],
            "ab",
        ),
        ([{"role": "assistant", "content": "plain", "blocks": [{"type": "text", "text": "block"}]}], "plain"),
        ([{"role": "assistant", "content": "", "blocks": [{"type": "text", "text": "block"}]}], "block"),
        ([{"role": "assistant", "content": 7}, {"role": "assistant", "blocks": [{"type": "text", "text": 7}, 7]}], ""),
    ],
)
def test_the_final_answer_is_the_last_text_of_the_assistant(messages, text):
    assert final_assistant_response(messages) == text
