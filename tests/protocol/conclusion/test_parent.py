"""What the parent is told always fits into a prompt, and always says what not to believe."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turngate_protocol.conclusion import Conclusion, RefState, StatAnswer, Task, format_for_parent
from turngate_protocol.conclusion.parent import message_for_parent
from turngate_protocol.report.session import PROMPT_BYTES
from turngate_protocol.text import byte_length

TASK = Task("t1", "completed", engine="e", project_name="p", parent_session="s")


def message(conclusion: Conclusion | None, task: Task = TASK) -> str:
    return message_for_parent(task, conclusion, {}, None)


def test_what_fits_is_told_as_it_is():
    conclusion = Conclusion("success", "done", ("a",), ("m",), "nothing", 0.5, ("careful",))

    text = message(conclusion)

    assert text.startswith("[delegated-result task=t1 engine=e project=p status=success confidence=0.50]\n")
    assert "cut" not in text


def test_sizes_and_what_is_missing_stand_behind_the_refs():
    conclusion = Conclusion("success", "done", ("a", "b"), ("m", "n"))
    answers = {"/w/a": StatAnswer(RefState.PRESENT, 7), "/w/b": StatAnswer(RefState.MISSING)}

    text = message_for_parent(TASK, conclusion, answers, {"m": RefState.MISSING}, base_dir="/w")

    assert "artifacts:\n  - a (7 B)\n  - b (missing)\n" in text
    assert "memory_refs:\n  - m (missing)\n  - n" in text


def test_without_a_conclusion_the_header_is_all():
    assert message(None) == format_for_parent(TASK, None)


@pytest.mark.parametrize(
    "conclusion",
    [
        Conclusion("success", "x" * 100_000, warnings=("the gate's word",)),
        Conclusion("success", "é" * 100_000, warnings=("the gate's word",)),
        Conclusion("success", "s", tuple(f"file-{n}" for n in range(5_000)), warnings=("the gate's word",)),
        Conclusion("success", "s", ("x" * 50_000, "y"), ("m" * 50_000,), "f" * 50_000, warnings=("the gate's word",)),
        Conclusion("success", "s", warnings=(*("w" * 900 for _ in range(100)), "the gate's word")),
    ],
    ids=["summary", "wide", "many", "long", "warnings"],
)
def test_what_does_not_fit_is_cut_but_never_the_header_or_the_gate_s_word(conclusion: Conclusion):
    text = message(conclusion)

    assert byte_length(text) <= PROMPT_BYTES
    assert text.startswith("[delegated-result task=t1 ")
    assert "this message was cut; the whole conclusion is that of task t1 in session s" in text
    assert text.endswith("the gate's word")


def test_how_many_entries_were_left_out_is_said():
    text = message(Conclusion("success", "s", tuple(f"file-{n}" for n in range(5_000))))

    shown = text.count("  - file-")
    assert f"  - … and {5_000 - shown} more\n" in text


def test_a_header_of_absurd_length_is_cut_too():
    task = Task("t1", "completed", work_dir="/" + "w" * 50_000)
    assert byte_length(message(None, task)) <= PROMPT_BYTES
    assert byte_length(message(Conclusion("success", "s"), task)) <= PROMPT_BYTES


@settings(max_examples=100, deadline=None)
@given(
    st.builds(
        Conclusion,
        status=st.just("success"),
        summary=st.text(max_size=40).map(lambda t: t * 400),
        artifacts=st.lists(st.text(max_size=60), max_size=300).map(tuple),
        memory_refs=st.lists(st.text(max_size=60), max_size=300).map(tuple),
        follow_up=st.text(max_size=20).map(lambda t: t * 300),
        warnings=st.lists(st.text(max_size=200), max_size=40).map(tuple),
    )
)
def test_every_message_fits_and_has_one_header(conclusion: Conclusion):
    text = message(conclusion)

    assert 0 < byte_length(text) <= PROMPT_BYTES
    assert text.startswith("[delegated-result task=t1 ")
    assert "\n[delegated-result" not in text
