"""Requests and resolutions: what fits, what does not and why, and that an accepted answer stays accepted."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.protocol.question.samples import (
    SPEC,
    answers,
    chat,
    freeform,
    picks,
    requests,
    resolution_of,
    structured,
    texts,
)
from turngate_protocol.question import (
    Answer,
    InvalidQuestionError,
    QuestionError,
    QuestionMismatchError,
    RequestKind,
    Resolution,
    blank_part,
    encode_resolution,
    new_freeform_request,
    new_request,
    request_count,
    validate_request,
    validate_resolution,
    validate_resolution_shape,
)

REQUEST = structured()
FREEFORM = freeform()
GOOD = answers(REQUEST, picks("Disk"), picks("A", "C"))


@pytest.mark.parametrize(("request_", "count"), [(REQUEST, 2), (FREEFORM, 1)])
def test_a_request_counts_the_decisions_that_a_person_sees(request_, count):
    assert request_count(request_) == count


@pytest.mark.parametrize("request_", [REQUEST, FREEFORM])
def test_a_request_just_made_is_valid(request_):
    validate_request(request_)


BROKEN_REQUESTS = {
    "without id": (replace(REQUEST, id=""), "id"),
    "with a line break in its call id": (replace(REQUEST, tool_call_id="a\r"), "tool_call_id"),
    "with a prompt beside questions": (replace(REQUEST, prompt="p"), "prompt"),
    "of another kind": (replace(REQUEST, kind=RequestKind.FREEFORM), "questions"),
    "free-form made structured": (replace(FREEFORM, kind=RequestKind.STRUCTURED, prompt=""), "questions"),
    "free-form without prompt": (replace(FREEFORM, prompt=""), "prompt"),
    "free-form with another prompt": (replace(FREEFORM, prompt="Another?"), "schema_digest"),
    "with a digest of nothing": (replace(REQUEST, schema_digest="0" * 64), "schema_digest"),
    "with a digest in upper case": (
        replace(REQUEST, schema_digest=REQUEST.schema_digest.upper()),
        "schema_digest",
    ),
    "with its questions turned round": (replace(REQUEST, questions=REQUEST.questions[::-1]), "schema_digest"),
}


@pytest.mark.parametrize(("request_", "path"), BROKEN_REQUESTS.values(), ids=BROKEN_REQUESTS)
def test_a_broken_request_is_refused_with_every_answer(request_, path):
    with pytest.raises(InvalidQuestionError) as caught:
        validate_resolution(request_, chat(request_))

    assert caught.value.path == path


@pytest.mark.parametrize(("request_id", "call"), [("", "c"), ("q", ""), ("q\n", "c"), ("q", "c\0")])
def test_a_request_is_not_made_without_identities(request_id, call):
    with pytest.raises(InvalidQuestionError):
        new_request(request_id, call, SPEC)
    with pytest.raises(InvalidQuestionError):
        new_freeform_request(request_id, call, "p")


MISFITS = {
    "too few answers": (answers(REQUEST, picks("Disk")), "answers"),
    "too many answers": (answers(REQUEST, picks("Disk"), picks("A"), picks("A")), "answers"),
    "two of a single choice": (answers(REQUEST, picks("Disk", "Memory"), picks("A")), "answers[0].selections"),
    "a label that nobody offered": (answers(REQUEST, picks("disk"), picks("A")), "answers[0].selections[0]"),
    "a label of another question": (answers(REQUEST, picks("A"), picks("A")), "answers[0].selections[0]"),
    "a label with a space": (answers(REQUEST, picks("Disk "), picks("A")), "answers[0].selections[0]"),
    "one label twice": (answers(REQUEST, picks("Disk"), picks("A", "A")), "answers[1].selections[1]"),
    "labels out of order": (answers(REQUEST, picks("Disk"), picks("C", "A")), "answers[1].selections[1]"),
    "answers to a free-form request": (answers(FREEFORM, Answer(custom="x")), "answers"),
}


@pytest.mark.parametrize(("resolution", "path"), MISFITS.values(), ids=MISFITS)
def test_a_response_that_does_not_fit_is_refused_where_it_does_not(resolution, path):
    request = FREEFORM if resolution.request_id == FREEFORM.id else REQUEST
    validate_resolution_shape(resolution)  # all of these look right without their request

    with pytest.raises(InvalidQuestionError) as caught:
        validate_resolution(request, resolution)

    assert caught.value.path == path


MALFORMED = {
    "nothing at all": (answers(REQUEST), "answers"),
    "chat beside answers": (replace(GOOD, chat="x"), "chat"),
    "five answers": (answers(REQUEST, *[picks("A")] * 5), "answers"),
    "five selections": (answers(REQUEST, picks(*"ABCDE")), "answers[0].selections"),
    "an empty answer": (answers(REQUEST, Answer()), "answers[0]"),
    "custom beside selections": (answers(REQUEST, Answer(("A",), "c")), "answers[0]"),
    "an empty selection": (answers(REQUEST, picks("")), "answers[0].selections[0]"),
    "a long selection": (answers(REQUEST, picks("é" * 64 + "x")), "answers[0].selections[0]"),
    "a long custom text": (answers(REQUEST, Answer(custom="c" * 4097)), "answers[0].custom"),
    "NUL in a custom text": (answers(REQUEST, Answer(custom="c\0")), "answers[0].custom"),
    "a surrogate in a custom text": (answers(REQUEST, Answer(custom="\udfff")), "answers[0].custom"),
    "a long chat text": (chat(REQUEST, "k" * 16385), "chat"),
    "NUL in a chat text": (chat(REQUEST, "\0"), "chat"),
    "a chat text of a mebibyte": (chat(REQUEST, "k" * (1 << 20)), "chat"),
    "no request id": (replace(GOOD, request_id=""), "request_id"),
    "a request id of two lines": (replace(GOOD, request_id="q\n1"), "request_id"),
    "a short digest": (replace(GOOD, schema_digest="ab"), "schema_digest"),
    "a digest with another letter": (replace(GOOD, schema_digest="g" * 64), "schema_digest"),
    "a digest with a line break": (replace(GOOD, schema_digest="a" * 64 + "\n"), "schema_digest"),
}


@pytest.mark.parametrize(("resolution", "path"), MALFORMED.values(), ids=MALFORMED)
def test_a_response_without_shape_is_refused_with_and_without_its_request(resolution, path):
    for check in (validate_resolution_shape, lambda resolution: validate_resolution(REQUEST, resolution)):
        with pytest.raises(InvalidQuestionError) as caught:
            check(resolution)

        assert caught.value.path == path


@pytest.mark.parametrize(
    ("resolution", "field"),
    [
        (replace(GOOD, request_id="q-2"), "request_id"),
        (replace(GOOD, schema_digest="0" * 64), "schema_digest"),
        (replace(GOOD, schema_digest=REQUEST.schema_digest.upper()), "schema_digest"),
    ],
)
def test_a_response_to_another_question_is_a_mismatch(resolution, field):
    with pytest.raises(QuestionMismatchError) as caught:
        validate_resolution(REQUEST, resolution)

    assert caught.value.field == field


@pytest.mark.parametrize(
    "resolution",
    [
        GOOD,
        answers(REQUEST, Answer(custom="mine"), picks("B")),
        answers(REQUEST, Answer(custom=" "), picks("A", "B", "C")),
        chat(REQUEST, "k" * 16384),
        chat(REQUEST, " "),
    ],
)
def test_a_response_that_fits_is_accepted(resolution):
    validate_resolution(REQUEST, resolution)


@given(requests.flatmap(lambda request: st.tuples(st.just(request), resolution_of(request))))
def test_an_accepted_resolution_is_accepted_again_after_a_round_trip(pair):
    request, resolution = pair
    validate_resolution(request, resolution)

    request_again = msgspec.json.decode(msgspec.json.encode(request), type=type(request))
    resolution_again = msgspec.json.decode(msgspec.json.encode(resolution), type=Resolution)

    assert (request_again, resolution_again) == (request, resolution)
    validate_resolution(request_again, resolution_again)


@given(requests.flatmap(lambda request: st.tuples(st.just(request), resolution_of(request))))
def test_what_the_model_gets_back_holds_exactly_the_answer(pair):
    _, resolution = pair

    back = msgspec.json.decode(encode_resolution(resolution), type=dict)

    expected = msgspec.json.decode(msgspec.json.encode(resolution), type=dict)
    assert back == {key: value for key, value in expected.items() if key in ("answers", "chat")}


anything = st.one_of(st.text(st.characters(), max_size=200), texts(20))


@given(
    st.builds(
        Resolution,
        st.one_of(st.just(REQUEST.id), anything),
        st.one_of(st.just(REQUEST.schema_digest), anything),
        st.lists(st.builds(Answer, st.lists(anything, max_size=6).map(tuple), anything), max_size=6).map(tuple),
        anything,
    )
)
def test_no_response_raises_anything_but_our_own_errors(resolution):
    for check in (encode_resolution, validate_resolution_shape, lambda given: validate_resolution(REQUEST, given)):
        try:
            check(resolution)
        except QuestionError as error:
            msgspec.json.encode([error.message, error.details])


@pytest.mark.parametrize(
    ("resolution", "path"),
    [
        (chat(REQUEST, "\u2003\t"), "chat"),
        (answers(REQUEST, picks("Disk"), Answer(custom=" \n")), "answers[1].custom"),
        (answers(REQUEST, picks("Disk"), Answer(custom="\x1f")), None),
        (answers(REQUEST, picks(" "), picks("A")), None),
        (chat(REQUEST, " x "), None),
    ],
)
def test_only_a_text_of_white_space_is_blank(resolution, path):
    assert blank_part(resolution) == path
