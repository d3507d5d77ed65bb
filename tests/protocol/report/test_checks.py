"""The rules for one block: each type's fields, its options, and the exact limits."""

from typing import Any

import pytest
from msgspec.structs import replace

from tests.protocol.report.samples import TYPES, block, dispatch, option, places
from turngate_protocol.report import Block, Problem
from turngate_protocol.report.checks import check_block

INTERACTIVE = ["decision", "question", "blocked", "next_step"]


def found(given: Block, seen: set[str] | None = None) -> list[Problem]:
    problems: list[Problem] = []
    check_block(given, 0, set() if seen is None else seen, problems)
    return problems


def at(field: str, code: str) -> tuple[str, str]:
    return f"/blocks/0/{field}", code


@pytest.mark.parametrize("kind", TYPES)
def test_a_complete_block_of_each_type_has_no_problem(kind: str):
    assert found(block(kind)) == []


@pytest.mark.parametrize("kind", ["", "Change", " change", "check", "next", "mystery"])
def test_of_a_block_of_unknown_type_nothing_more_is_said(kind: str):
    assert places(found(Block(type=kind))) == [at("type", "block_type_unknown")]


def test_the_id_of_a_block_of_unknown_type_is_not_taken():
    seen: set[str] = set()

    found(block("mystery", id="a"), seen)

    assert found(block("change", id="a"), seen) == []


@pytest.mark.parametrize("identity", ["a", "0", "a-b", "a--", "0-0", "a" * 64])
def test_ids_of_lower_case_letters_digits_and_hyphens_are_valid(identity: str):
    assert found(block("change", id=identity)) == []


@pytest.mark.parametrize(
    "identity", ["", "A", "-a", "a_b", "a b", "a.b", "é", "a\n", "\na", "a" * 65, "a\0", "٣", "ß", "ı"]
)
def test_any_other_id_is_invalid(identity: str):
    assert places(found(block("change", id=identity))) == [at("id", "block_id_invalid")]
    options = [option(id=identity), dispatch()]
    assert places(found(block("decision", options=options))) == [at("options/0/id", "option_id_invalid")]


def test_an_id_that_an_earlier_block_has_is_a_duplicate():
    assert places(found(block("change", id="a"), {"a"})) == [at("id", "block_id_duplicate")]


@pytest.mark.parametrize("char", ["a", "é", "漢", "😀"])
@pytest.mark.parametrize(
    ("kind", "path", "limit", "code"),
    [
        ("change", "summary", 240, "summary_too_long"),
        ("decision", "options/0/label", 60, "option_label_too_long"),
        ("decision", "options/0/description", 200, "option_text_too_long"),
        ("decision", "options/0/consequence", 200, "option_text_too_long"),
    ],
)
def test_these_lengths_count_characters(kind: str, path: str, limit: int, code: str, char: str):
    assert found(with_text(kind, path, char * limit)) == []
    assert places(found(with_text(kind, path, char * (limit + 1)))) == [at(path, code)]


@pytest.mark.parametrize(("char", "size"), [("a", 1), ("é", 2), ("漢", 3), ("😀", 4)])
@pytest.mark.parametrize(
    ("kind", "path", "limit", "code"),
    [
        ("change", "details", 32 * 1024, "details_too_large"),
        ("decision", "options/0/preview", 4 * 1024, "option_preview_too_large"),
        ("decision", "options/0/instruction", 1024, "option_instruction_too_large"),
    ],
)
def test_these_lengths_count_bytes(kind: str, path: str, limit: int, code: str, char: str, size: int):
    fits = char * (limit // size) + "a" * (limit % size)

    assert found(with_text(kind, path, fits)) == []
    assert places(found(with_text(kind, path, fits + "a"))) == [at(path, code)]


@pytest.mark.parametrize(
    ("kind", "field"),
    [
        ("finding", "impact"),
        ("finding", "importance"),
        ("verification", "status"),
        ("warning", "severity"),
        ("warning", "impact"),
        ("question", "question"),
        ("blocked", "blocker"),
        ("blocked", "required_action"),
        ("unclassified", "reason_unclassified"),
        *((kind, "recommendation_reason") for kind in INTERACTIVE),
        *((kind, "recommendation") for kind in INTERACTIVE if kind != "question"),
    ],
)
def test_a_field_that_the_type_requires_must_not_be_empty(kind: str, field: str):
    assert places(found(block(kind, **{field: ""}))) == [at(field, "field_required")]


def test_a_finding_says_whether_it_blocks_the_task_and_no_is_an_answer():
    assert places(found(block("finding", blocks_current_task=None))) == [at("blocks_current_task", "field_required")]
    assert found(block("finding", blocks_current_task=False)) == []
    assert found(block("finding", blocks_current_task=True)) == []


def test_missing_fields_are_named_in_the_order_of_the_rules():
    assert places(found(Block(type="finding", id="a", summary="s"))) == [
        at("impact", "field_required"),
        at("importance", "field_required"),
        at("blocks_current_task", "field_required"),
    ]
    assert places(found(Block(type="blocked", id="A"))) == [
        at("id", "block_id_invalid"),
        at("summary", "summary_empty"),
        at("blocker", "field_required"),
        at("required_action", "field_required"),
        at("options", "options_count"),
        at("response_type", "response_type_invalid"),
        at("recommendation_reason", "field_required"),
        at("recommendation", "field_required"),
    ]


@pytest.mark.parametrize(
    ("kind", "field"), [("finding", "importance"), ("warning", "severity"), ("verification", "status")]
)
@pytest.mark.parametrize("value", ["urgent", "High", "ok", " high", "passed "])
def test_a_value_outside_of_its_vocabulary_is_named(kind: str, field: str, value: str):
    problems = found(block(kind, **{field: value}))

    assert places(problems) == [at(field, "field_unknown_value")]
    assert f'"{value}"' in problems[0].message


def test_a_question_needs_no_recommendation():
    assert found(block("question", recommendation="")) == []


@pytest.mark.parametrize("status", ["partial", "not_run"])
def test_what_was_not_verified_has_to_be_said(status: str):
    needs = [at("limitation", "verification_needs_limitation")]

    assert places(found(block("verification", status=status))) == needs
    assert found(block("verification", status=status, limitation="No network")) == []
    assert found(block("verification", status=status, required_to_verify="Run it")) == []


@pytest.mark.parametrize("kind", [kind for kind in TYPES if kind not in INTERACTIVE])
def test_a_block_that_asks_nothing_has_no_options_and_theirs_are_not_looked_at(kind: str):
    assert places(found(block(kind, options=[option(id="BAD", label="")]))) == [at("options", "options_not_allowed")]


@pytest.mark.parametrize("kind", INTERACTIVE)
@pytest.mark.parametrize(("count", "fits"), [(1, False), (2, True), (6, True), (7, False)])
def test_a_block_that_asks_has_two_to_six_options(kind: str, count: int, fits: bool):
    options = [dispatch(), *(option(id=f"o{index}") for index in range(1, count))]
    problems = places(found(block(kind, options=options)))

    assert (at("options", "options_count") not in problems) is fits


@pytest.mark.parametrize("value", ["", "multiple", "Single"])
def test_a_block_that_asks_is_answered_by_a_single_option(value: str):
    assert places(found(block("decision", response_type=value))) == [at("response_type", "response_type_invalid")]


@pytest.mark.parametrize("value", ["nope", "Do it", " ", "GO"])
@pytest.mark.parametrize("kind", INTERACTIVE)
def test_a_recommendation_names_an_option_by_its_id(kind: str, value: str):
    assert places(found(block(kind, recommendation=value))) == [at("recommendation", "recommendation_unknown")]


def test_a_recommendation_is_free_text_where_nothing_is_asked():
    assert found(block("change", recommendation="Read it twice")) == []


def test_an_option_id_counts_once_in_its_block():
    options = [dispatch(id="a"), option(id="a"), option(id="a")]

    assert places(found(block("decision", options=options, recommendation="a"))) == [
        at("options/1/id", "option_id_duplicate"),
        at("options/2/id", "option_id_duplicate"),
    ]


def test_an_option_needs_a_label():
    assert places(found(block("decision", options=[dispatch(), option(label="")]))) == [
        at("options/1/label", "option_label_empty")
    ]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"effect": "dispatch"}, ["option_instruction_required"]),
        ({"effect": "dispatch", "instruction": "x"}, []),
        ({"effect": "collect"}, []),
        ({"effect": "collect", "instruction": "x"}, ["option_instruction_not_allowed"]),
        ({"effect": "resolve", "instruction": "x" * 2000}, ["option_instruction_not_allowed"]),
        ({"effect": "run"}, ["option_effect_unknown"]),
        ({"effect": "", "instruction": "x"}, ["option_effect_unknown", "option_instruction_not_allowed"]),
    ],
)
def test_every_dispatch_option_has_an_instruction_and_no_other(changes: dict[str, str], expected: list[str]):
    problems = found(block("decision", options=[dispatch(), option(**changes)]))

    assert [problem.code for problem in problems] == expected


def test_the_problems_of_an_option_come_in_the_order_of_its_fields():
    bad = option(
        id="A",
        label="",
        description="d" * 201,
        consequence="c" * 201,
        preview="p" * 4097,
        effect="run",
        instruction="x",
    )

    assert places(found(block("question", options=[bad, dispatch()]))) == [
        at("options/0/id", "option_id_invalid"),
        at("options/0/label", "option_label_empty"),
        at("options/0/description", "option_text_too_long"),
        at("options/0/consequence", "option_text_too_long"),
        at("options/0/preview", "option_preview_too_large"),
        at("options/0/effect", "option_effect_unknown"),
        at("options/0/instruction", "option_instruction_not_allowed"),
    ]


@pytest.mark.parametrize(
    ("effects", "codes"),
    [
        (["dispatch", "collect"], []),
        (["resolve", "dispatch"], []),
        (["dispatch", "dispatch"], ["next_step_needs_alternative"]),
        (["collect", "resolve"], ["next_step_needs_dispatch"]),
        (["run", "run"], ["option_effect_unknown"] * 2 + ["next_step_needs_dispatch", "next_step_needs_alternative"]),
        ([], ["options_count", "recommendation_unknown", "next_step_needs_dispatch", "next_step_needs_alternative"]),
    ],
)
def test_a_next_step_can_be_taken_or_not(effects: list[str], codes: list[str]):
    options = [
        option(id="go" if not index else "other", effect=effect, instruction="x" if effect == "dispatch" else "")
        for index, effect in enumerate(effects)
    ]

    assert [problem.code for problem in found(block("next_step", options=options))] == codes


def with_text(kind: str, path: str, text: str) -> Block:
    given = block(kind)
    field = path.rpartition("/")[2]
    if "options" not in path:
        return replace(given, **{field: text})
    changes: dict[str, Any] = {field: text}
    return replace(given, options=[replace(given.options[0], **changes), *given.options[1:]])
