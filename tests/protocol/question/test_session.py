"""What a session remembers: the newest outcomes, within what one message carries."""

import msgspec
import pytest

from tests.protocol.question.samples import NOW, called, chat, command, stepped
from turngate_protocol.cause import Cause
from turngate_protocol.question import (
    Option,
    Question,
    Request,
    SessionQuestions,
    Spec,
    ask,
    find_outcome,
    new_request,
    resolve,
)
from turngate_protocol.question.session import OUTCOMES_BYTES, OUTCOMES_KEPT

MAX_MESSAGE = 4 * 1024 * 1024 - 16 * 1024


def _largest(name: str, mark: str) -> Request:
    """A request of the most bytes that the rules allow; `mark` is the character it is made of."""
    questions = tuple(
        Question(
            f"{number}{mark * 63}",
            mark * 4096,
            tuple(Option(f"{place}{mark * 127}", mark * 1024, mark * 16384) for place in range(4)),
        )
        for number in range(4)
    )
    return new_request(name, name, Spec(questions))


def _decide(state: SessionQuestions | None, request: Request, text: str = "x") -> SessionQuestions:
    state = stepped(ask(state, command(request), NOW)).state
    return stepped(resolve(state, chat(request, text), actor="ann", op="", now=NOW)).state


def test_the_last_sixteen_outcomes_are_remembered_in_order():
    state = _decide(None, called("call-0"))
    for number in range(1, 20):
        state = _decide(state, called(f"call-{number}"))

    assert [outcome.tool_call_id for outcome in state.outcomes] == [f"call-{n}" for n in range(4, 20)]
    assert len(state.outcomes) == OUTCOMES_KEPT
    assert all(outcome.request is not None for outcome in state.outcomes)


def test_an_outcome_is_found_by_request_id():
    state = _decide(_decide(None, called("call-1"), "one"), called("call-2"), "two")

    found = find_outcome(state, called("call-1").id)

    assert found is not None
    assert found.resolution == chat(called("call-1"), "one")
    assert find_outcome(state, "q-unknown") is None
    assert find_outcome(None, "q-unknown") is None


def test_older_outcomes_let_go_of_their_request_when_there_is_no_room():
    state = _decide(None, _largest("q-0", "x"))
    for number in range(1, 8):
        state = _decide(state, _largest(f"q-{number}", "x"))

    held = [outcome.request is not None for outcome in state.outcomes]
    assert held == [False] * 3 + [True] * 5
    assert state.outcomes[0].resolution is not None


def test_the_oldest_outcomes_are_forgotten_when_the_answers_alone_leave_no_room():
    state = _decide(None, called("call-0"), "\x01" * 16384)
    for number in range(1, OUTCOMES_KEPT):
        state = _decide(state, called(f"call-{number}"), "\x01" * 16384)

    assert [outcome.tool_call_id for outcome in state.outcomes] == [f"call-{n}" for n in range(1, OUTCOMES_KEPT)]
    assert all(outcome.request is not None for outcome in state.outcomes)


@pytest.mark.parametrize("mark", ["x", "\x01", '"'])
def test_a_session_full_of_the_largest_questions_and_answers_fits_into_one_message(mark):
    state = _decide(None, _largest("q-0", mark), mark * 16384)
    for number in range(1, OUTCOMES_KEPT + 1):
        state = _decide(state, _largest(f"q-{number}", mark), mark * 16384)

    state = stepped(ask(state, command(_largest("q-last", mark)), NOW)).state

    assert len(msgspec.json.encode(state.outcomes)) <= OUTCOMES_BYTES + 100
    assert len(msgspec.json.encode(state)) <= MAX_MESSAGE
    assert state.outcomes[-1].request_id == f"q-{OUTCOMES_KEPT}"


def test_a_session_is_the_same_after_a_round_trip():
    state = stepped(ask(_decide(None, called("call-1")), command(called("call-2"), turn=3), NOW)).state

    assert msgspec.json.decode(msgspec.json.encode(state), type=SessionQuestions) == state


def test_a_later_reader_knows_an_earlier_session():
    earlier = b'{"session":"s1","pool":"p","cause":{"type":"question.asked","actor":"r1","at":7}}'

    cause = Cause("question.asked", "r1", 7)
    assert msgspec.json.decode(earlier, type=SessionQuestions) == SessionQuestions("s1", "p", cause)
