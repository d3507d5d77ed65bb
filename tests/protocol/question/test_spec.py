"""What an agent may ask: counts, sizes in bytes, uniqueness, and texts that are texts."""

import pytest
from msgspec.structs import replace

from tests.protocol.question.samples import MULTIPLE, SINGLE, SPEC
from turngate_protocol.question import InvalidQuestionError, Option, Spec, validate_spec
from turngate_protocol.question.spec import check_identity, check_text


def _with(**changes):
    return Spec((replace(SINGLE, **changes),))


def _with_option(**changes):
    return _with(options=(replace(SINGLE.options[0], **changes), SINGLE.options[1]))


def _many(count):
    return Spec(tuple(replace(SINGLE, header=f"h{number}") for number in range(count)))


def _options(count):
    return _with(options=tuple(Option(f"l{number}", "d") for number in range(count)))


REFUSED = {
    "no questions": (Spec(()), "questions"),
    "five questions": (_many(5), "questions"),
    "no options": (_options(0), "questions[0].options"),
    "one option": (_options(1), "questions[0].options"),
    "five options": (_options(5), "questions[0].options"),
    "an empty header": (_with(header=""), "questions[0].header"),
    "a long header": (_with(header="h" * 65), "questions[0].header"),
    "a header long in bytes": (_with(header="é" * 32 + "x"), "questions[0].header"),
    "an empty question": (_with(question=""), "questions[0].question"),
    "a long question": (_with(question="q" * 4097), "questions[0].question"),
    "an empty label": (_with_option(label=""), "questions[0].options[0].label"),
    "a long label": (_with_option(label="l" * 129), "questions[0].options[0].label"),
    "an empty description": (_with_option(description=""), "questions[0].options[0].description"),
    "a long description": (_with_option(description="d" * 1025), "questions[0].options[0].description"),
    "a long preview": (_with_option(preview="p" * 16385), "questions[0].options[0].preview"),
    "NUL in a preview": (_with_option(preview="a\0"), "questions[0].options[0].preview"),
    "a surrogate in a label": (_with_option(label="\udc80"), "questions[0].options[0].label"),
    "a repeated header": (Spec((SINGLE, replace(MULTIPLE, header=SINGLE.header))), "questions[1].header"),
    "a repeated label": (_with(options=(Option("l", "d"), Option("l", "e"))), "questions[0].options[1].label"),
}

ACCEPTED = {
    "two questions": SPEC,
    "four questions": _many(4),
    "four options": _options(4),
    "a header of 64 bytes": _with(header="é" * 32),
    "a question of 4096 bytes": _with(question="q" * 4096),
    "a label of 128 bytes": _with_option(label="l" * 128),
    "a description of 1024 bytes": _with_option(description="d" * 1024),
    "a preview of 16 KiB": _with_option(preview="p" * 16384),
    "white space alone": _with(header=" ", question="\t"),
    "control characters": _with(question="\x1b[2J\u202e"),
    "labels that differ in case": _with(options=(Option("yes", "d"), Option("YES", "d"))),
}


@pytest.mark.parametrize(("spec", "path"), REFUSED.values(), ids=REFUSED)
def test_a_spec_that_breaks_a_rule_is_refused_where_it_does(spec, path):
    with pytest.raises(InvalidQuestionError) as caught:
        validate_spec(spec)

    assert caught.value.path == path


@pytest.mark.parametrize("spec", ACCEPTED.values(), ids=ACCEPTED)
def test_a_spec_within_the_limits_is_accepted(spec):
    validate_spec(spec)


@pytest.mark.parametrize("identity", ["", "a\nb", "a\r", "a\0", "\ud800", "x" * 513, "é" * 257])
def test_an_identity_is_a_short_text_on_one_line(identity):
    with pytest.raises(InvalidQuestionError) as caught:
        check_identity("op", identity)

    assert caught.value.path == "op"


@pytest.mark.parametrize("identity", ["q-1", " ", "c<&>", "é" * 256])
def test_an_identity_may_hold_anything_else(identity):
    check_identity("op", identity)


def test_a_text_of_a_mebibyte_is_measured_in_bytes():
    with pytest.raises(InvalidQuestionError, match=r"header is 1048576 bytes long: shorten it to at most 64 bytes"):
        check_text("header", "é" * (1 << 19), 64)
