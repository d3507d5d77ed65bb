"""The stored state of a task: each step once, whoever repeats it."""

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from tests.protocol.conclusion.blocks import block
from turngate_protocol.conclusion import GateOptions, Project, RefState, StartRecord, StatAnswer, Task
from turngate_protocol.conclusion.record import (
    CLOCK_GRAIN_MS,
    MAX_CONFLICTS,
    ConclusionPhase,
    Findings,
    Finished,
    PromptRefusal,
    TaskConclusion,
    content_digest,
    judge,
    key_of,
    project_key,
    prompt_id,
    receive,
    told,
    wants,
    wants_something,
)

NOW = 1_700_000_000_000
STRICT = GateOptions(strict=True)
PRESENT = StatAnswer(RefState.PRESENT, 12, NOW)
MISSING = StatAnswer(RefState.MISSING)
SUCCESS = block("\nstatus: success\nsummary: done\nartifacts: [a.txt, b.txt]\n")


def task(output: str = SUCCESS, **fields: Any) -> Task:
    return Task(**{"id": "t1", "status": "completed", "work_dir": "/w", "output": output, **fields})


def finished(record: Task | None = None, *, runner: str = "runner-1", start: StartRecord | None = None) -> Finished:
    return Finished("parent", "pool-1", runner, record or task(), start)


def received(record: Task | None = None, **fields: Any) -> TaskConclusion:
    state = receive(None, finished(record, **fields), NOW).state
    assert state is not None
    return state


def judged(state: TaskConclusion, answers: dict[str, StatAnswer], **fields: Any) -> TaskConclusion:
    new = judge(state, Findings(answers), NOW + 5, **fields)
    assert new is not None
    return new


def test_a_finished_task_is_received_with_its_conclusion_and_without_its_output():
    state = received(task("prose " + SUCCESS, prompt="do it", output_tail="the end"))

    assert state.phase is ConclusionPhase.RECEIVED
    assert state.conclusion is not None
    assert state.conclusion.summary == "done"
    assert (state.record.prompt, state.record.output, state.record.output_tail) == ("", "", "")
    assert state.output_bytes == len("prose " + SUCCESS)
    assert (state.cause.type, state.cause.actor, state.cause.message) == ("conclusion.received", "runner-1", "t1")


def test_the_parent_session_is_the_one_that_the_message_names():
    assert received().record.parent_session == "parent"


def test_the_same_ending_again_changes_nothing():
    again = receive(received(), finished(task(finished_at_ms=NOW + 9, tool_calls=4)), NOW + 9)

    assert (again.state, again.conflict) == (None, False)


@pytest.mark.parametrize(
    "other",
    [task("other"), task(status="failed"), task(exit_code=1), task(error="late"), task(output_tail="x")],
    ids=["output", "status", "exit-code", "error", "tail"],
)
def test_another_ending_is_recorded_as_a_conflict_and_the_first_stands(other: Task):
    first = received()

    taken = receive(first, finished(other, runner="runner-2"), NOW + 9)

    assert taken.conflict
    assert taken.state is not None
    assert taken.state.conclusion == first.conclusion
    assert [(c.runner, c.at, c.status) for c in taken.state.conflicts] == [("runner-2", NOW + 9, other.status)]
    assert taken.state.cause.type == "conclusion.conflict"


def test_a_conflict_is_recorded_once_and_at_most_eight_are():
    state = received()
    for number in range(MAX_CONFLICTS):
        taken = receive(state, finished(task(f"output {number}")), NOW)
        assert taken.state is not None
        state = taken.state

    assert receive(state, finished(task("output 3")), NOW).state is None
    assert receive(state, finished(task("one more")), NOW) == receive(state, finished(task("output 3")), NOW)
    assert len(state.conflicts) == MAX_CONFLICTS


def test_a_conflict_does_not_stop_what_the_task_wants():
    taken = receive(received(), finished(task("other")), NOW)

    assert taken.state is not None
    assert taken.state.phase is ConclusionPhase.RECEIVED
    assert wants(taken.state).look == wants(received()).look


def test_what_is_received_wants_its_evidence_looked_for():
    assert wants(received()).look is not None
    assert wants(received()).look.paths == ("/w/a.txt", "/w/b.txt")  # type: ignore[union-attr]


def test_relative_artifacts_start_at_the_project_where_there_is_no_work_directory():
    state = received(task(work_dir="", project_path="/p/"))
    assert wants(state).look.paths == ("/p/a.txt", "/p/b.txt")  # type: ignore[union-attr]


@pytest.mark.parametrize("output", [block("\nstatus: failed\nartifacts: [a.txt]\n"), "no block"])
def test_a_task_without_evidence_to_check_is_judged_all_the_same(output: str):
    state = received(task(output))

    assert wants(state).look is not None
    assert wants(state).look.paths == ()  # type: ignore[union-attr]
    assert judged(state, {}).phase is ConclusionPhase.JUDGED


def test_a_task_without_any_conclusion_tells_its_parent_so():
    state = receive(None, finished(task("no block")), NOW, synthesize_fallback=False).state
    assert state is not None

    done = judged(state, {})

    assert done.conclusion is None
    assert done.message.endswith("status=completed] (no conclusion captured)")


def test_judging_downgrades_what_is_disproved_and_writes_the_message_for_the_parent():
    done = judged(received(), {"/w/a.txt": PRESENT, "/w/b.txt": MISSING})

    assert done.phase is ConclusionPhase.JUDGED
    assert done.conclusion is not None
    assert done.conclusion.status == "partial"
    assert done.gate is not None
    assert (done.gate.verified_artifacts, done.gate.missing_artifacts) == (("a.txt",), ("b.txt",))
    assert done.cause.type == "conclusion.downgraded"
    assert done.message.startswith("[delegated-result task=t1 ")
    assert "  - a.txt (12 B)\n  - b.txt (missing)\n" in done.message


def test_the_first_verdict_stands():
    done = judged(received(), {"/w/a.txt": PRESENT, "/w/b.txt": PRESENT})

    assert judge(done, Findings({"/w/a.txt": MISSING}), NOW + 9) is None


def test_the_registry_names_the_project():
    state = received(task(project_path="/srv/web/"))
    assert state.record.project_name == "web"

    done = judge(state, Findings({}, project=Project("p-7", "Web shop")), NOW)

    assert done is not None
    assert (done.record.project_id, done.record.project_name) == ("p-7", "Web shop")
    assert " project=Web shop " in done.message


def test_a_project_is_looked_for_by_its_canonical_path():
    assert project_key(task(project_path="/srv//web/./x/..//")) == "/srv/web"
    assert project_key(task()) == ""


def test_what_is_judged_wants_one_prompt_with_an_id_for_ever():
    prompt = wants(judged(received(), {})).prompt

    assert prompt is not None
    assert (prompt.session, prompt.pool, prompt.id) == ("parent", "pool-1", prompt_id("parent", "t1"))
    assert prompt.text.startswith("[delegated-result ")


def test_what_is_told_wants_nothing_more():
    done = told(judged(received(), {}), None, NOW)

    assert done is not None
    assert done.phase is ConclusionPhase.SETTLED
    assert done.cause.type == "conclusion.prompt_sent"
    assert not wants_something(done)
    assert wants(done) == wants(replace(done, phase=ConclusionPhase.SETTLED))
    assert told(done, None, NOW) is None


def test_a_parent_that_can_not_be_told_is_recorded():
    refusal = PromptRefusal("pool_mismatch", "session parent belongs to pool web")

    done = told(judged(received(), {}), refusal, NOW)

    assert done is not None
    assert (done.phase, done.refusal) == (ConclusionPhase.SETTLED, refusal)
    assert done.cause.type == "conclusion.prompt_refused"


def test_a_task_that_was_not_judged_can_not_be_told():
    assert told(received(), None, NOW) is None


def test_strict_checking_judges_by_the_start_that_the_runner_noted():
    start = StartRecord(NOW - 50, {"/w/a.txt": StatAnswer(RefState.PRESENT, 12, 7), "/other": PRESENT})
    state = received(start=start)
    assert state.start is not None
    assert list(state.start.files) == ["/w/a.txt"]

    done = judged(state, {"/w/a.txt": StatAnswer(RefState.PRESENT, 12, 7), "/w/b.txt": PRESENT}, options=STRICT)

    assert done.gate is not None
    assert done.gate.unproven_artifacts == ("a.txt",)
    assert done.start is None


def test_without_a_start_record_the_task_s_own_start_counts():
    state = received(task(started_at_ms=NOW))

    old = StatAnswer(RefState.PRESENT, 1, NOW - CLOCK_GRAIN_MS - 1)
    new = StatAnswer(RefState.PRESENT, 1, NOW - CLOCK_GRAIN_MS)
    done = judged(state, {"/w/a.txt": old, "/w/b.txt": new}, options=STRICT)

    assert done.gate is not None
    assert (done.gate.unproven_artifacts, done.gate.verified_artifacts) == (("a.txt",), ("b.txt",))


def test_without_strict_checking_the_start_does_not_count():
    done = judged(received(task(started_at_ms=NOW)), {"/w/a.txt": StatAnswer(RefState.PRESENT, 1, 7)})
    assert done.gate is not None
    assert done.gate.unproven_artifacts == ()


def test_a_success_without_a_tool_call_carries_a_warning():
    done = judged(received(task(tool_calls=0)), {"/w/a.txt": PRESENT, "/w/b.txt": PRESENT})
    assert done.conclusion is not None
    assert "no tool call" in done.conclusion.warnings[-1]


def test_keys_and_prompt_ids_of_different_tasks_differ():
    names = [("a", "b"), ("a-b", "c"), ("a", "b-c"), ("ab", "")]
    assert len({key_of(*name) for name in names}) == len({prompt_id(*name) for name in names}) == len(names)


def test_the_digest_tells_texts_apart_that_only_moved():
    assert content_digest(task(output="ab", error="c")) != content_digest(task(output="a", error="bc"))


@pytest.mark.parametrize("phase", ConclusionPhase)
def test_a_state_survives_its_way_through_json(phase: ConclusionPhase):
    state = received(task(started_at_ms=NOW))
    if phase is not ConclusionPhase.RECEIVED:
        state = judged(state, {"/w/a.txt": MISSING})
    if phase is ConclusionPhase.SETTLED:
        state = told(state, PromptRefusal("invalid", "no"), NOW) or state

    assert msgspec.json.decode(msgspec.json.encode(state), type=TaskConclusion) == state
