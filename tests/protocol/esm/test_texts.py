import pytest

from turngate_protocol.esm import InvalidArgumentError, InvalidObjectiveError
from turngate_protocol.esm.texts import kept_items, objective_text, required, sendable


def test_the_text_of_an_objective_is_trimmed():
    assert objective_text("\u3000build\n") == "build"


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("", "say what"),
        (" \u2028 ", "say what"),
        ("\udfff", "take it out"),
        ("x" * 65_537, "shorten it"),
        ("é" * 32_769, "shorten it"),
    ],
)
def test_what_is_no_text_of_an_objective(text, remedy):
    with pytest.raises(InvalidObjectiveError) as refused:
        objective_text(text)
    assert refused.value.message.partition(": ")[2].startswith(remedy)


@pytest.mark.parametrize("text", ["x" * 65_536, "é" * 32_768, "\x1c", "<b>&</b>"])
def test_the_longest_and_the_oddest_text_of_an_objective(text):
    assert objective_text(text) == text


@pytest.mark.parametrize("text", [" ", "\ud800", "four!"])
def test_what_is_no_argument(text):
    with pytest.raises(InvalidArgumentError) as refused:
        required("reason", text, "say why", 4)
    assert refused.value.field == "reason"


def test_half_characters_are_replaced_where_a_text_is_kept_whatever_it_holds():
    assert sendable("a\ud800b") == "a?b"


def test_blank_items_are_dropped():
    assert kept_items([" a ", "", "\u2003", "b"]) == ("a", "b")
