"""Digests and ids: stable, and different for everything that is different."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.protocol.question.samples import SINGLE, SPEC, specs, texts
from turngate_protocol.question import InvalidQuestionError, Option, Spec, freeform_digest, spec_digest
from turngate_protocol.question.digest import (
    canonical_json,
    freeform_request_id,
    generic_request_id,
    structured_request_id,
)


def test_canonical_json_escapes_what_go_escapes():
    spec = Spec((replace(SINGLE, header="<&>\u2028\u2029", question='"\\/\x7f\b\f\n\r\t\x01é'),))

    assert canonical_json(spec).startswith(
        b'{"questions":[{"header":"\\u003c\\u0026\\u003e\\u2028\\u2029",'
        b'"question":"\\"\\\\/\x7f\\b\\f\\n\\r\\t\\u0001\xc3\xa9","options":['
    )


def test_canonical_json_leaves_out_what_is_empty():
    assert canonical_json(Option("l", "d", "")) == b'{"label":"l","description":"d"}'


def test_a_lone_surrogate_has_no_canonical_json():
    with pytest.raises(InvalidQuestionError):
        canonical_json(Option("\ud800", "d"))


def test_an_invalid_spec_has_no_digest():
    with pytest.raises(InvalidQuestionError):
        spec_digest(Spec(()))


@given(specs)
def test_a_digest_is_stable_under_encoding_again(spec):
    decoded = msgspec.json.decode(msgspec.json.encode(spec), type=Spec)
    again = msgspec.json.decode(canonical_json(decoded), type=Spec)

    assert spec_digest(decoded) == spec_digest(again) == spec_digest(spec)


def _first(spec, **changes):
    return Spec((replace(spec.questions[0], **changes), *spec.questions[1:]))


def _last_option(spec, **changes):
    last = spec.questions[-1]
    options = (*last.options[:-1], replace(last.options[-1], **changes))
    return Spec((*spec.questions[:-1], replace(last, options=options)))


CHANGES = {
    "header": lambda spec, text: _first(spec, header=text),
    "question": lambda spec, text: _first(spec, question=text),
    "multiple": lambda spec, _: _first(spec, multiple=not spec.questions[0].multiple),
    "label": lambda spec, text: _last_option(spec, label=text),
    "description": lambda spec, text: _last_option(spec, description=text),
    "preview": lambda spec, text: _last_option(spec, preview=text),
    "order of options": lambda spec, _: _first(spec, options=spec.questions[0].options[::-1]),
    "order of questions": lambda spec, _: Spec(spec.questions[::-1]),
    "one option less": lambda spec, _: _first(spec, options=spec.questions[0].options[:-1]),
    "one question less": lambda spec, _: Spec(spec.questions[:-1]),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
@given(spec=specs, text=texts(16))
def test_a_digest_changes_with_any_field(change, spec, text):
    changed = change(spec, text)

    try:
        digest = spec_digest(changed)
    except InvalidQuestionError:
        return  # a change may also break a rule; then there is no digest
    assert (digest == spec_digest(spec)) == (changed == spec)


@given(st.lists(texts(20), min_size=2, max_size=2, unique=True))
def test_two_prompts_have_two_digests(prompts):
    assert freeform_digest(prompts[0]) != freeform_digest(prompts[1])


@pytest.mark.parametrize("prompt", ["", "a\0", "\ud800", "x" * 4097])
def test_a_prompt_that_is_no_text_has_no_digest(prompt):
    with pytest.raises(InvalidQuestionError):
        freeform_digest(prompt)


def test_the_same_call_has_the_same_id_and_every_other_another():
    digest = spec_digest(SPEC)
    ids = [
        structured_request_id("c1", digest),
        structured_request_id("c2", digest),
        freeform_request_id("c1", "q"),
        freeform_request_id("c1", "r"),
        freeform_request_id("c2", "q"),
        generic_request_id("c1"),
        generic_request_id("c2"),
    ]

    assert len(set(ids)) == len(ids)
    assert structured_request_id("c1", digest) == ids[0]


@pytest.mark.parametrize("tool_call_id", ["", "a\nb", "\ud800", "a\0b"])
def test_a_call_without_identity_has_no_request_id(tool_call_id):
    for make in (
        generic_request_id,
        lambda call: structured_request_id(call, "d"),
        lambda c: freeform_request_id(c, "q"),
    ):
        with pytest.raises(InvalidQuestionError):
            make(tool_call_id)
