"""What a finished task ends with when the software has added what only it knows."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turngate_protocol.conclusion import Conclusion, Project, Task, enrich
from turngate_protocol.conclusion.enrich import MAX_FALLBACK_BYTES
from turngate_protocol.text import byte_length

from .blocks import OUTPUTS, TYPICAL, block

NOW = 1_700_000_000_000


def concluded(task: Task) -> Conclusion:
    _, conclusion = enrich(task, now_ms=NOW)
    assert conclusion is not None
    return conclusion


def test_a_block_is_captured_with_its_time():
    conclusion = concluded(Task("t1", "completed", output=block(TYPICAL)))

    assert (conclusion.status, conclusion.synthesized, conclusion.captured_at_ms) == ("success", False, NOW)


def test_the_tail_counts_when_the_output_has_no_block():
    task = Task("t1", "completed", output="cut <pando:conclusion>", output_tail=block("summary: tail"))

    assert concluded(task).summary == "tail"


def test_the_output_counts_before_its_tail():
    task = Task("t1", "completed", output=block("summary: output"), output_tail=block("summary: tail"))

    assert concluded(task).summary == "output"


def test_without_block_and_fallback_there_is_no_conclusion_and_the_task_is_as_it_was():
    task = Task("t1", "completed", output="words", project_path="/a/b")

    assert enrich(task, now_ms=NOW, synthesize_fallback=False) == (task, None)


@pytest.mark.parametrize(
    ("task_status", "status"),
    [("completed", "success"), ("failed", "failed"), ("cancelled", "blocked"), ("running", "success"), ("", "success")],
)
def test_a_block_without_a_status_takes_the_tasks(task_status: str, status: str):
    assert concluded(Task("t1", task_status, output=block("summary: s"))).status == status


@pytest.mark.parametrize(
    ("task", "status", "summary"),
    [
        (Task("t", "completed", output=" words \n"), "success", "words"),
        (Task("t", "completed", output="words", exit_code=0), "success", "words"),
        (Task("t", "completed", output="words", exit_code=3), "partial", "words"),
        (Task("t", "running", output="words", exit_code=3), "success", "words"),
        (Task("t", "completed", output="words", output_tail="end"), "success", "end"),
        (Task("t", "completed", output="words", output_tail=" \n"), "success", "words"),
        (Task("t", "failed", output="words", error=" no disk\n", exit_code=1), "failed", "no disk (exit code 1)"),
        (Task("t", "failed", output="words", error=" ", exit_code=0), "failed", "(exit code 0)"),
        (Task("t", "failed", output="words"), "failed", "words"),
        (Task("t", "cancelled", error="stopped"), "blocked", "stopped"),
        (Task("t", "failed"), "failed", ""),
        (Task("t", "failed", error="half \ud800"), "failed", "half \ufffd"),
    ],
)
def test_without_a_block_a_conclusion_is_made_of_what_the_task_left(task: Task, status: str, summary: str):
    conclusion = concluded(task)

    assert (conclusion.status, conclusion.summary, conclusion.synthesized) == (status, summary, True)


def test_a_character_cut_by_the_fallback_shows_as_a_replacement_per_byte():
    conclusion = concluded(Task("t1", "completed", output="漢" * 334))

    assert conclusion.summary == "\ufffd" + "漢" * 333


@given(text=st.text(max_size=2000))
@settings(max_examples=100, deadline=None)
def test_the_fallback_keeps_at_most_its_bytes(text: str):
    summary = concluded(Task("t1", "completed", output=text + "x" * 990)).summary

    # Each of at most three broken bytes became a character of three.
    assert byte_length(summary) <= MAX_FALLBACK_BYTES + 6


@pytest.mark.parametrize(
    ("task", "projects", "expected"),
    [
        (Task("t", project_path="/a/b"), None, ("", "b")),
        (Task("t", project_path="/a/b/"), {}, ("", "b")),
        (Task("t", project_path="/a/b"), {"/a/b": Project("id1", "Name")}, ("id1", "Name")),
        (Task("t", project_path="/a/b"), {"/a/b/": Project("id1", "Name")}, ("", "b")),
        (
            Task("t", project_path="/a/b", project_id="old", project_name="was"),
            {"/a/b": Project("", "")},
            ("old", "was"),
        ),
        (Task("t", project_path="/a/b", project_id="old"), {"/a/b": Project("", "Name")}, ("old", "Name")),
        (Task("t", project_path="", project_name="kept"), {"": Project("i", "n")}, ("", "kept")),
    ],
)
def test_the_project_comes_from_the_registry_or_the_path(
    task: Task, projects: dict[str, Project] | None, expected: tuple[str, str]
):
    enriched, _ = enrich(task, now_ms=NOW, projects=projects)

    assert (enriched.project_id, enriched.project_name) == expected


def test_the_models_text_sets_no_field_of_the_software():
    claims = (
        "summary: s\nid: t9\nengine: other\nproject_name: other\ncaptured_at_ms: 5\nsynthesized: true\nwarnings: [x]"
    )
    task = Task("t1", "completed", engine="e", project_path="/a/b", parent_session="s1", output=block(claims))

    enriched, conclusion = enrich(task, now_ms=NOW)

    assert conclusion == Conclusion("success", "s", captured_at_ms=NOW)
    assert enriched == msgspec.structs.replace(task, project_name="b")


@given(raw=OUTPUTS, error=st.text(max_size=20), status=st.sampled_from(["completed", "failed", "cancelled", "odd"]))
@settings(max_examples=300, deadline=None)
def test_every_conclusion_can_be_saved_and_read_again(raw: str, error: str, status: str):
    conclusion = concluded(Task("t1", status, output=raw, error=error))

    assert msgspec.json.decode(msgspec.json.encode(conclusion), type=Conclusion) == conclusion


def test_confidence_that_is_not_a_number_does_not_reach_the_record():
    assert concluded(Task("t1", "completed", output=block("summary: s\nconfidence: .nan"))).confidence == 0.0
