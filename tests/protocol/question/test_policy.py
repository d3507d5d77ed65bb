"""Policies: in range, fitting their question, and never a blank answer."""

import msgspec
import pytest

from tests.protocol.question.samples import NOW, freeform, picks, structured
from turngate_protocol.question import (
    Answer,
    AnswerAfter,
    ExpireAfter,
    InvalidQuestionError,
    Policy,
    Resolution,
    WaitForEver,
)
from turngate_protocol.question.policy import MAX_EXPIRY_MS, check_policy, default_resolution, expires_at

REQUEST = structured()
DEFAULT = (picks("Disk"), picks("A", "B"))

REFUSED = {
    "no time": (ExpireAfter(0), "policy.after_ms"),
    "a time before": (AnswerAfter(-1, DEFAULT), "policy.after_ms"),
    "a time out of range": (ExpireAfter(MAX_EXPIRY_MS + 1), "policy.after_ms"),
    "no answer": (AnswerAfter(1), "policy.answers"),
    "half an answer": (AnswerAfter(1, DEFAULT[:1]), "policy.answers"),
    "an answer that is not offered": (AnswerAfter(1, (picks("Tape"), picks("A"))), "policy.answers[0].selections[0]"),
    "a blank answer": (AnswerAfter(1, (picks("Disk"), Answer(custom=" "))), "policy.answers[1].custom"),
    "a blank chat": (AnswerAfter(1, chat="\t"), "policy.chat"),
    "a chat too long": (AnswerAfter(1, chat="x" * 16385), "policy.chat"),
}


@pytest.mark.parametrize(("policy", "path"), REFUSED.values(), ids=REFUSED)
def test_a_policy_that_could_not_be_kept_is_refused(policy, path):
    with pytest.raises(InvalidQuestionError) as caught:
        check_policy(policy, REQUEST)

    assert caught.value.path == path


@pytest.mark.parametrize(
    "policy",
    [WaitForEver(), ExpireAfter(1), ExpireAfter(MAX_EXPIRY_MS), AnswerAfter(1, DEFAULT), AnswerAfter(1, chat="No.")],
)
def test_a_policy_that_can_be_kept_is_accepted(policy):
    check_policy(policy, REQUEST)


def test_a_free_form_question_takes_a_chat_text_by_default():
    check_policy(AnswerAfter(1, chat="No."), freeform())
    with pytest.raises(InvalidQuestionError):
        check_policy(AnswerAfter(1, DEFAULT), freeform())


@pytest.mark.parametrize(
    ("policy", "time"), [(WaitForEver(), None), (ExpireAfter(5), NOW + 5), (AnswerAfter(7, DEFAULT), NOW + 7)]
)
def test_the_time_of_expiry_counts_from_asking(policy, time):
    assert expires_at(policy, NOW) == time


@pytest.mark.parametrize("policy", [WaitForEver(), ExpireAfter(1)])
def test_only_a_named_answer_is_a_default(policy):
    assert default_resolution(policy, REQUEST) is None


def test_a_default_answer_is_one_to_this_question():
    resolution = default_resolution(AnswerAfter(1, DEFAULT), REQUEST)

    assert resolution == Resolution(REQUEST.id, REQUEST.schema_digest, DEFAULT)


@pytest.mark.parametrize(
    ("policy", "wire"),
    [
        (WaitForEver(), b'{"kind":"wait"}'),
        (ExpireAfter(2000), b'{"kind":"expire","after_ms":2000}'),
        (AnswerAfter(9, chat="No."), b'{"kind":"default","after_ms":9,"chat":"No."}'),
    ],
)
def test_a_policy_says_its_kind_on_the_wire(policy, wire):
    assert msgspec.json.encode(policy) == wire
    assert msgspec.json.decode(wire, type=Policy) == policy
