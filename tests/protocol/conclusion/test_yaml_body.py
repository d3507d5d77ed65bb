"""The six fields of a body, and the bodies that are refused before they cost anything."""

import itertools
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from yaml.events import AliasEvent, ScalarEvent, SequenceStartEvent

from turngate_protocol.conclusion import yaml_body
from turngate_protocol.conclusion.yaml_body import MAX_ALIASES, MAX_DEPTH, MAX_NODES, Body, load
from turngate_protocol.conclusion.yaml_scalar import NotStructured

from .blocks import BODIES, TYPICAL

both_parsers = pytest.mark.parametrize("pure", [False, True], ids=["libyaml", "pure"])


def outcome(body: str, pure: bool) -> str:
    try:
        return repr(load(body, pure=pure))
    except NotStructured:
        return "not structured"


@both_parsers
def test_a_typical_body_is_read_in_full(pure: bool):
    assert load(TYPICAL, pure=pure) == Body(
        status="success",
        summary="The retry policy and its tests are in place",
        artifacts=("src/retry.py", "tests/test_retry.py", "docs/retry.md"),
        memory_refs=("kb/retry-policy", "kb/decisions/12"),
        follow_up="Run the soak test before the release",
        confidence=0.85,
    )


@both_parsers
@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param("", Body(), id="empty"),
        pytest.param("# only a comment", Body(), id="comment"),
        pytest.param("~", Body(), id="null document"),
        pytest.param("summary: a\n---\nsummary: b", Body(summary="a"), id="only the first document"),
        pytest.param("summary: a\n...\n[", Body(summary="a"), id="what follows is not read"),
        pytest.param("summary: yes\nfollow_up: 007", Body(summary="yes", follow_up="007"), id="texts stay as written"),
        pytest.param("artifacts: [a, ~, 0x1F]", Body(artifacts=("a", "0x1F")), id="nulls are no entries"),
        pytest.param("artifacts: ~\nconfidence:", Body(), id="null fields"),
        pytest.param("summary: &a x\nfollow_up: *a", Body(summary="x", follow_up="x"), id="alias"),
        pytest.param("b: &b {summary: x}\n<<: *b", Body(summary="x"), id="merge"),
        pytest.param("b: &b {summary: x}\n<<: *b\nsummary: y", Body(summary="y"), id="an own key wins"),
        pytest.param("b: &b {summary: x}\n<<: *b\nsummary: ~", Body(), id="an own null wins"),
        pytest.param("<<: [{summary: x}, {summary: y, status: z}]", Body("z", "x"), id="the first of a list wins"),
        pytest.param("<<: {<<: {summary: x}}", Body(summary="x"), id="merge in a merge"),
        pytest.param('"<<": x\nsummary: y', Body(summary="y"), id="a quoted << is a key"),
        pytest.param("1: a\n~: b\nsummary: c", Body(summary="c"), id="keys that are no texts"),
        pytest.param("a: &a [*a]\nsummary: x", Body(summary="x"), id="a list in itself, not asked for"),
        pytest.param("\n\ufeffsummary: x\nstatus: y", Body(status="y"), id="a BOM later on is part of the key"),
        pytest.param("\ufeffsummary: a\ufeffb", Body(summary="a\ufeffb"), id="a BOM in front is none of the text"),
    ],
)
def test_a_body_is_read_like_the_vectors_decoder_does(body: str, expected: Body, pure: bool):
    assert load(body, pure=pure) == expected


@both_parsers
@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("words", "it is not a mapping"),
        ("- a", "it is not a mapping"),
        ("summary: [a]", "a list or mapping stands where a text is expected"),
        ("artifacts: a", "a text or mapping stands where a list is expected"),
        ("artifacts: {a: b}", "a text or mapping stands where a list is expected"),
        ("artifacts: [[a]]", "a list or mapping stands where a text is expected"),
        ("confidence: high", "confidence is not a number"),
        ("confidence: [1]", "a list or mapping stands where a number is expected"),
        ("a: 1\na: 2", "it has a key twice"),
        ("? [a]\n: b", "it has a key that is not a text"),
        ("summary: *a", "it has an alias without an anchor"),
        ("<<: x", "it merges what is not a mapping"),
        ("<<: [[a]]", "it merges what is not a mapping"),
        ("a: &a {<<: *a}\n<<: *a", "it merges a mapping into itself"),
        ("summary: \x00", "it holds characters that YAML does not allow"),
        ("summary: \ud800", "it holds characters that YAML does not allow"),
        ("summary: \ufeff\U0010fffd", "it holds characters that this reader keeps for itself"),
    ],
)
def test_a_body_of_another_shape_is_not_structured(body: str, reason: str, pure: bool):
    with pytest.raises(NotStructured) as refused:
        load(body, pure=pure)

    assert refused.value.reason == reason


def test_bad_yaml_names_the_line():
    with pytest.raises(NotStructured, match="at line 2"):
        load("status: success\nsummary: 'a' b")


def laughs(levels: int) -> str:
    rows = ["a0: &a0 [lol, lol, lol]"]
    rows += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 3)}]" for i in range(1, levels)]
    return "\n".join(rows)


@both_parsers
@pytest.mark.parametrize(
    ("bomb", "reason"),
    [
        pytest.param("[\n" * 10_000, f"it is nested deeper than {MAX_DEPTH} levels", id="flow depth"),
        pytest.param("- " * 10_000 + "a", f"it is nested deeper than {MAX_DEPTH} levels", id="block depth"),
        pytest.param("? " * 10_000 + "a", f"it is nested deeper than {MAX_DEPTH} levels", id="key depth"),
        pytest.param("- a\n" * 30_000, f"it has more than {MAX_NODES} values", id="values"),
        pytest.param(laughs(60), f"it has more than {MAX_ALIASES} aliases", id="aliases of aliases"),
        pytest.param("x" * 300_000, "it is longer than 262144 characters", id="size"),
        pytest.param("%TAG !a! x\n" * 20, "it has more than 16 tag directives", id="directives"),
        pytest.param(
            "a: &a " + "x" * 1000 + "\nartifacts: [" + "*a, " * 90 + "]",
            "its aliases repeat more text than it holds",
            id="text by alias",
        ),
        pytest.param(
            "m: &m {" + ", ".join(f"k{i}: v" for i in range(500)) + "}\n<<: [" + "*m, " * 90 + "]",
            "its merge keys repeat too much",
            id="merged keys",
        ),
    ],
)
def test_a_bomb_is_refused(bomb: str, reason: str, pure: bool):
    with pytest.raises(NotStructured) as refused:
        load(bomb, pure=pure)

    assert refused.value.reason == reason


@both_parsers
def test_depth_on_one_line_is_refused_by_us_or_by_the_parser_that_looks_ahead(pure: bool):
    with pytest.raises(NotStructured, match="nest"):
        load("[" * 100_000, pure=pure)


def test_merges_that_double_at_each_level_are_refused():
    rows = ["a0: &a0 {x: y}"] + [f"a{i}: &a{i} {{<<: [*a{i - 1}, *a{i - 1}]}}" for i in range(1, 45)]

    with pytest.raises(NotStructured, match="merge keys repeat too much"):
        load("\n".join(rows) + "\n<<: *a44")


def test_harmless_aliases_are_no_bomb():
    assert load(laughs(4) + "\nsummary: x") == Body(summary="x")


def counted(events: Iterator[Any]) -> tuple[str, int]:
    """Read from endless `events` until that is refused; return the reason and how many were read."""
    read = 0

    def next_event() -> Any:
        nonlocal read
        read += 1
        return next(events)

    with pytest.raises(NotStructured) as refused:
        yaml_body._compose(next_event)
    return refused.value.reason, read


SCALAR = ScalarEvent(None, None, (True, False), "x")


@pytest.mark.parametrize(
    ("events", "most"),
    [
        pytest.param(itertools.repeat(SequenceStartEvent(None, None, True)), MAX_DEPTH, id="depth"),
        pytest.param(itertools.repeat(SCALAR), MAX_NODES + 1, id="values"),
        pytest.param(
            itertools.chain([ScalarEvent("a", None, (True, False), "x")], itertools.repeat(AliasEvent("a"))),
            MAX_ALIASES + 2,
            id="aliases",
        ),
    ],
)
def test_reading_stops_at_the_first_limit(events: Iterator[Any], most: int):
    _, read = counted(events)

    assert read == most


@given(body=BODIES)
@settings(max_examples=400, deadline=None)
def test_no_body_raises_anything_else(body: str):
    outcome(body, pure=False)
    outcome(body, pure=True)


@given(body=BODIES.filter(lambda body: "\t" not in body and "%" not in body))
@settings(max_examples=400, deadline=None)
def test_both_parsers_agree_but_on_tabs_and_directives(body: str):
    assert outcome(body, pure=False) == outcome(body, pure=True)


@pytest.mark.skipif(not yaml.__with_libyaml__, reason="no libyaml to compare with")
def test_the_pure_parser_refuses_a_tab_that_separates():
    assert load("summary:\tx") == Body(summary="x")
    assert outcome("summary:\tx", pure=True) == "not structured"
