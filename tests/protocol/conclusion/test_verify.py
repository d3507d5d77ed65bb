"""The gate: what it asks for, what it disproves, and what it leaves alone."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turngate_protocol.conclusion import (
    MAX_CHECKED_REFS,
    Conclusion,
    GateOptions,
    GateResult,
    RefState,
    RefsToCheck,
    StartRecord,
    StatAnswer,
    refs_to_check,
    verify,
)
from turngate_protocol.conclusion.verify import changed
from turngate_protocol.text import is_blank

AT_BASE = GateOptions(base_dir="/w")
STRICT = GateOptions(base_dir="/w", strict=True)
PRESENT = StatAnswer(RefState.PRESENT)
MISSING = StatAnswer(RefState.MISSING)
UNCHECKABLE = StatAnswer(RefState.UNCHECKABLE)


def success(*artifacts: str, memory_refs: tuple[str, ...] = ()) -> Conclusion:
    return Conclusion("success", "s", artifacts, memory_refs)


def test_each_path_and_memory_ref_is_asked_for_once_and_trimmed():
    conclusion = success("a", " a ", "/b", "https://e.x", "two words", memory_refs=("k", " k", ""))

    assert refs_to_check(conclusion, AT_BASE) == RefsToCheck(("/w/a", "/b"), ("k",))


def test_a_line_number_asks_for_the_literal_path_and_the_file():
    assert refs_to_check(success("a.py:12"), AT_BASE).paths == ("/w/a.py:12", "/w/a.py")


@pytest.mark.parametrize("options", [GateOptions(disabled=True), AT_BASE])
def test_nothing_is_asked_when_there_is_nothing_to_inspect(options: GateOptions):
    status = "success" if options.disabled else "partial"

    assert refs_to_check(Conclusion(status, artifacts=("/a",)), options) == RefsToCheck()


def test_the_number_of_questions_is_bounded_and_the_rest_is_said_to_be_unchecked():
    conclusion = success(*(f"f{i}" for i in range(MAX_CHECKED_REFS + 7)))
    asked = refs_to_check(conclusion, AT_BASE)

    judged, result = verify(conclusion, dict.fromkeys(asked.paths, PRESENT), options=AT_BASE)

    assert len(asked.paths) == MAX_CHECKED_REFS
    assert (len(result.verified_artifacts), result.unanswered) == (MAX_CHECKED_REFS, 7)
    assert judged.warnings == ("no answer about 7 of the cited refs: they were not checked",)


def test_evidence_that_exists_leaves_a_success_as_it_is():
    conclusion = success("a", memory_refs=("k",))

    judged, result = verify(conclusion, {"/w/a": PRESENT}, {"k": RefState.PRESENT}, options=AT_BASE)

    assert judged == conclusion
    assert result == GateResult(inspected=True, verified_artifacts=("a",), verified_memory_refs=("k",))


def test_one_missing_ref_makes_a_success_partial_and_discards_nothing():
    conclusion = msgspec.structs.replace(success("a", "ghost", memory_refs=("k", "lost")), warnings=("before",))
    answers = {"/w/a": PRESENT, "/w/ghost": MISSING}

    judged, result = verify(conclusion, answers, {"k": RefState.PRESENT, "lost": RefState.MISSING}, options=AT_BASE)

    warning = (
        "success was claimed with evidence that does not exist; artifacts not found: ghost; memory refs not found: lost"
    )
    assert judged == msgspec.structs.replace(conclusion, status="partial", warnings=("before", warning))
    assert (result.downgraded, result.missing_artifacts, result.missing_memory_refs) == (True, ("ghost",), ("lost",))


@pytest.mark.parametrize("status", ["partial", "failed", "blocked", "", "Success"])
def test_only_a_claim_of_success_is_inspected(status: str):
    conclusion = Conclusion(status, artifacts=("ghost",))

    assert verify(conclusion, {"/w/ghost": MISSING}, options=AT_BASE) == (conclusion, GateResult())


def test_a_disabled_gate_does_nothing():
    conclusion = success("/ghost")

    assert verify(conclusion, {"/ghost": MISSING}, options=GateOptions(disabled=True)) == (conclusion, GateResult())


def test_what_can_not_be_checked_counts_as_present_and_is_recorded():
    conclusion = success("https://e.x", "dev", memory_refs=("k",))

    judged, result = verify(conclusion, {"/w/dev": UNCHECKABLE}, options=AT_BASE)

    assert judged == conclusion
    assert result == GateResult(
        inspected=True, uncheckable_artifacts=("https://e.x", "dev"), uncheckable_memory_refs=("k",)
    )


def test_a_host_that_does_not_answer_leaves_the_success_and_the_result_says_so():
    judged, result = verify(success("a", "b", memory_refs=("k",)), {}, {}, options=AT_BASE)

    assert (judged.status, result.downgraded) == ("success", False)
    assert (result.uncheckable_artifacts, result.uncheckable_memory_refs, result.unanswered) == (("a", "b"), ("k",), 3)
    assert judged.warnings == ("no answer about 3 of the cited refs: they were not checked",)


@pytest.mark.parametrize(
    ("literal", "file", "found"),
    [
        (PRESENT, MISSING, "verified"),
        (MISSING, PRESENT, "verified"),
        (MISSING, MISSING, "missing"),
        (MISSING, UNCHECKABLE, "uncheckable"),
        (UNCHECKABLE, MISSING, "uncheckable"),
    ],
)
def test_a_ref_with_a_line_number_is_the_file_where_the_literal_path_does_not_exist(
    literal: StatAnswer, file: StatAnswer, found: str
):
    _, result = verify(success("a.py#L1-L9"), {"/w/a.py#L1-L9": literal, "/w/a.py": file}, options=AT_BASE)

    assert getattr(result, f"{found}_artifacts") == ("a.py#L1-L9",)


def test_at_most_ten_refs_of_a_kind_are_named_and_the_rest_is_counted():
    names = [f"g{i}" for i in range(12)]

    judged, result = verify(success(*names), {f"/w/{name}": MISSING for name in names}, options=AT_BASE)

    assert result.missing_artifacts == tuple(names)
    assert judged.warnings[0].endswith("g8, g9 and 2 more")


def test_a_warning_shows_a_hostile_ref_short_and_on_one_line():
    ref = "/g\nwarnings:\x1b" + "x" * 1000

    judged, _ = verify(success(ref), {ref: MISSING})

    assert "/g\\nwarnings:\\x1bxxx" in judged.warnings[0]
    assert len(judged.warnings[0]) < 320


@pytest.mark.parametrize(("tool_calls", "warned"), [(0, True), (1, False), (None, False)])
def test_a_success_without_a_tool_call_carries_a_warning(tool_calls: int | None, warned: bool):
    judged, result = verify(success(), {}, tool_calls=tool_calls)

    assert (judged.status, result.tool_calls) == ("success", tool_calls)
    assert bool(judged.warnings) == warned


def test_strict_checking_finds_an_artifact_that_did_not_change_unproven():
    start = StartRecord(started_at_ms=1000)
    answers = {
        "/w/new": StatAnswer(RefState.PRESENT, mtime_ms=1000),
        "/w/old": StatAnswer(RefState.PRESENT, mtime_ms=999),
    }

    judged, result = verify(success("new", "old"), answers, options=STRICT, start=start)

    assert (result.verified_artifacts, result.unproven_artifacts) == (("new",), ("old",))
    assert (judged.status, result.downgraded, result.strict) == ("partial", True, True)
    assert judged.warnings == ("unproven, did not change during the task: old",)


def test_without_strict_checking_age_does_not_count():
    answers = {"/w/old": StatAnswer(RefState.PRESENT, mtime_ms=1)}

    judged, _ = verify(success("old"), answers, options=AT_BASE, start=StartRecord(started_at_ms=1000))

    assert judged.status == "success"


def test_strict_checking_without_a_start_record_says_that_it_judged_nothing():
    judged, result = verify(success("a"), {"/w/a": StatAnswer(RefState.PRESENT, mtime_ms=1)}, options=STRICT)

    assert (judged.status, result.verified_artifacts) == ("success", ("a",))
    assert judged.warnings == ("strict checking had no record of the start: whether artifacts changed was not judged",)


def test_strict_checking_judges_the_file_that_a_line_number_is_in():
    answers = {"/w/a.py:3": MISSING, "/w/a.py": StatAnswer(RefState.PRESENT, hash="h1")}
    start = StartRecord(1000, {"/w/a.py": StatAnswer(RefState.PRESENT, hash="h1")})

    _, result = verify(success("a.py:3"), answers, options=STRICT, start=start)

    assert result.unproven_artifacts == ("a.py:3",)


def seen(size: int | None = None, mtime_ms: int | None = None, digest: str | None = None) -> StatAnswer:
    return StatAnswer(RefState.PRESENT, size, mtime_ms, digest)


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [
        pytest.param(MISSING, seen(mtime_ms=1), True, id="was not there"),
        pytest.param(seen(digest="a"), seen(digest="b"), True, id="other content"),
        pytest.param(seen(digest="a", mtime_ms=1), seen(digest="a", mtime_ms=2000), False, id="touched, same content"),
        pytest.param(seen(size=1, mtime_ms=5), seen(size=2, mtime_ms=5), True, id="other size"),
        pytest.param(seen(size=1, mtime_ms=5), seen(size=1, mtime_ms=6), True, id="other time"),
        pytest.param(seen(size=1, mtime_ms=5), seen(size=1, mtime_ms=5), False, id="same size and time"),
        pytest.param(seen(size=1), seen(size=1, mtime_ms=1000), True, id="written at the start"),
        pytest.param(UNCHECKABLE, seen(mtime_ms=999), False, id="older than the task"),
        pytest.param(None, seen(mtime_ms=1000), True, id="no record of the file"),
        pytest.param(None, seen(), None, id="nothing tells"),
    ],
)
def test_the_best_evidence_says_whether_a_file_changed(
    before: StatAnswer | None, now: StatAnswer, expected: bool | None
):
    start = StartRecord(1000, {} if before is None else {"/f": before})

    assert changed("/f", now, start) is expected


REFS = st.lists(
    st.one_of(st.sampled_from(["a", "a:1", "/b#L2", " a ", "", "x y", "s://h"]), st.text(max_size=6)), max_size=8
)
STATES = st.sampled_from(list(RefState))


@given(data=st.data(), artifacts=REFS, memory_refs=REFS)
@settings(max_examples=200, deadline=None)
def test_every_ref_is_recorded_once_and_only_what_is_missing_downgrades(data, artifacts, memory_refs):
    conclusion = success(*artifacts, memory_refs=tuple(memory_refs))
    asked = refs_to_check(conclusion, AT_BASE)
    answers = {path: StatAnswer(data.draw(STATES)) for path in asked.paths if data.draw(st.booleans())}
    memory = {ref: data.draw(STATES) for ref in asked.memory_refs}

    judged, result = verify(conclusion, answers, memory, options=AT_BASE)

    recorded = [*result.verified_artifacts, *result.missing_artifacts, *result.uncheckable_artifacts]
    assert len(recorded) == sum(not is_blank(ref) for ref in artifacts)
    assert result.downgraded == bool(result.missing_artifacts or result.missing_memory_refs)
    assert judged.status == ("partial" if result.downgraded else "success")
    assert (judged.artifacts, judged.memory_refs) == (conclusion.artifacts, conclusion.memory_refs)
