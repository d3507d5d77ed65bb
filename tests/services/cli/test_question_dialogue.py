"""The dialogue: what a person types becomes an answer that fits, or the reason why it does not."""

import io

import pytest

from turngate.cli.commands import UsageError
from turngate.cli.question_answers import Misfit, Reply, converse, parse
from turngate.terminal import Terminal
from turngate_protocol.question import (
    Answer,
    Option,
    Question,
    Request,
    Spec,
    new_freeform_request,
    new_request,
    validate_resolution,
)
from turngate_protocol.question.model import Resolution

OPTIONS = (Option("Disk", "It survives"), Option("Memory", "It is fast"), Option("2", "A number"))
SINGLE = Question("Store", "Where?", OPTIONS)
MULTIPLE = Question("Parts", "Which?", OPTIONS, multiple=True)
REQUEST = new_request("q-1", "call-1", Spec((SINGLE, MULTIPLE)))
FREEFORM = new_freeform_request("q-2", "call-2", "What now?")


def talk(request: Request, *lines: str) -> tuple[Reply, str]:
    """A dialogue in which a person types these lines."""
    stream, typed = io.StringIO(), iter(f"{line}\n" for line in lines)
    return converse(request, Terminal(stream), lambda: next(typed, "")), stream.getvalue()


@pytest.mark.parametrize(
    ("question", "text", "answer"),
    [
        (SINGLE, "1", Answer(("Disk",))),
        (SINGLE, " 2 ", Answer(("Memory",))),
        (SINGLE, "Memory", Answer(("Memory",))),
        (SINGLE, "=1", Answer(custom="1")),
        (SINGLE, "==", Answer(custom="=")),
        (MULTIPLE, "3,1", Answer(("Disk", "2"))),
        (MULTIPLE, "1 2  3", Answer(("Disk", "Memory", "2"))),
        (MULTIPLE, "Disk", Answer(("Disk",))),
    ],
)
@pytest.mark.parametrize("free", [True, False])
def test_numbers_labels_and_own_texts_are_told_apart(question, text, answer, free):
    assert parse(question, text, free=free) == answer


@pytest.mark.parametrize("text", ["0", "4", "1,1", "1,2", "999", "=", "= ", "=\u2003", "=a\x00", "=\ud800", "٣"])
def test_what_fits_nothing_says_why(text):
    with pytest.raises(Misfit) as error:
        parse(SINGLE, text, free=False)
    assert error.value.message.isprintable()


@pytest.mark.parametrize("text", ["disk", "Disk or memory", "1 or 2", "٣"])
def test_only_in_a_dialogue_any_other_text_is_an_answer(text):
    assert parse(SINGLE, text, free=True) == Answer(custom=text)
    with pytest.raises(Misfit):
        parse(SINGLE, text, free=False)


def test_a_dialogue_goes_through_the_parts():
    reply, shown = talk(REQUEST, "2", "1 3")

    assert reply == Reply((Answer(("Memory",)), Answer(("Disk", "2"))))
    assert shown.index("1 of 2  Store") < shown.index("2 of 2  Parts")
    validate_resolution(REQUEST, Resolution(REQUEST.id, REQUEST.schema_digest, reply.answers))


def test_it_asks_again_until_the_answer_fits():
    reply, shown = talk(REQUEST, "9", "1,2", "", "1", "1,1", "all of them")

    assert reply == Reply((Answer(("Disk",)), Answer(custom="all of them")))
    assert shown.count("there is no option 9; give 1 to 3") == 1
    assert "names several options" in shown
    assert "a blank text is no answer" in shown
    assert "names an option twice" in shown


def test_a_person_may_reply_in_chat_at_any_part():
    reply, _ = talk(REQUEST, "1", "/chat", " ", "Let us talk first.")

    assert reply == Reply(chat="Let us talk first.")


def test_a_question_in_free_text_is_a_chat():
    reply, shown = talk(FREEFORM, "", "Go on.")

    assert reply == Reply(chat="Go on.")
    assert "What now?" in shown


@pytest.mark.parametrize("lines", [[], ["1"], ["/chat"]])
@pytest.mark.parametrize("request_", [REQUEST, FREEFORM], ids=["structured", "free"])
def test_an_input_that_ends_sends_nothing(request_, lines):
    if request_ is FREEFORM and lines:
        lines = []
    with pytest.raises(UsageError, match="nothing was sent"):
        talk(request_, *lines)


def test_a_text_that_is_too_long_is_refused_and_asked_again():
    reply, shown = talk(FREEFORM, "x" * (16 * 1024 + 1), "Short.")

    assert reply.chat == "Short."
    assert "16385 bytes long" in shown
