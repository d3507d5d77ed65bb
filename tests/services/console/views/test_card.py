"""The card of a page is the report's own lines, put together again."""

import json
from typing import Any

from msgspec import Raw

from tests.fundamentals.reports import CARD, DONE
from turngate.console.views.card import Card, CardBlock, card
from turngate_protocol.report import Report, decode, plain_text


def drawn(report: dict[str, Any]) -> Card:
    made = card(Raw(json.dumps(report).encode()))
    assert made is not None
    return made


def with_block(**fields: Any) -> CardBlock:
    block = {"type": "change", "id": "it", "summary": "What", **fields}
    made = drawn({**DONE, "blocks": [block]})
    (only,) = (*made.blocks, *made.not_run)
    return only


def test_what_a_person_must_decide_stands_first():
    made = drawn(CARD)

    assert [block.id for block in made.blocks] == ["when", "dry-run"]
    assert (made.status.text, made.status.tone, made.headline) == ("needs action", "ask", CARD["headline"])


def test_an_option_has_its_digit_its_mark_and_its_instruction_in_full():
    now, word_it, leave = drawn(CARD).blocks[0].options

    assert (now.number, now.value, now.label, now.effect) == (1, "1", "Run it now", "dispatch")
    assert now.instruction is not None
    assert (now.instruction.label, now.instruction.text) == ("Runs", CARD["blocks"][1]["options"][0]["instruction"])
    assert [(field.label, field.text) for field in now.fields] == [
        ("Consequence", "Orders can't be placed for about a minute")
    ]
    assert [each.recommended for each in (now, word_it, leave)] == [False, False, True]
    assert leave.name == "when/leave"


def test_a_label_can_not_pass_for_a_mark_or_an_effect():
    decision = CARD["blocks"][1]
    options = [{**each, "label": "(recommended) [dispatch] 1. x (recommended)"} for each in decision["options"]]

    made = drawn({**CARD, "blocks": [{**decision, "options": options}]})

    for option in made.blocks[0].options:
        assert option.label == "(recommended) [dispatch] 1. x (recommended)"


def test_from_the_tenth_option_on_there_is_no_digit():
    decision = CARD["blocks"][1]
    blocks = [{**decision, "id": f"b{number}"} for number in range(1, 5)]

    made = drawn({**CARD, "blocks": blocks})

    tenth = made.blocks[3].options[0]
    assert (tenth.number, tenth.value) == (0, "b4/now")
    assert made.keys == 9


def test_a_value_of_several_lines_comes_back_as_it_was():
    text = "one\n  two\n\nImpact: not a label\n    Status: neither"

    made = with_block(type="warning", severity="low", impact=text)

    assert {field.label: field.text for field in made.fields} == {"Severity": "low", "Impact": text}


def test_a_value_that_begins_with_an_empty_line_keeps_it():
    made = with_block(type="warning", severity="low", impact="\nbelow")

    assert made.fields[-1].text == "\nbelow"


def test_details_are_folded_and_say_how_much_they_are():
    made = with_block(details="first\n\tsecond")

    assert made.details is not None
    assert made.details.text == "first\n    second"
    assert made.details.size == "13 bytes in 2 lines"


def test_checks_that_ran_nothing_are_put_aside():
    block = {"type": "verification", "id": "v", "summary": "No", "status": "not_run", "limitation": "no time"}

    made = drawn({**DONE, "blocks": [block, {**block, "id": "w"}]})

    assert made.blocks == ()
    assert made.not_run_label == "2 checks were not run"


def test_control_and_direction_characters_are_shown_and_not_obeyed():
    made = with_block(summary="\x1b[2J\u202ex", type="warning", severity="low", impact="a\x07\nb\u2066")

    assert made.summary == "\\x1b[2J\\u202ex"
    assert made.fields[-1].text == "a\\x07\nb\\u2066"


def test_everything_that_the_lines_say_is_on_the_card():
    report = decode(json.dumps(CARD).encode())
    assert isinstance(report, Report)

    shown = json.dumps([_texts(block) for block in drawn(CARD).blocks], ensure_ascii=False)

    for line in plain_text(report).split("\n")[1:]:
        value = line.partition(": ")[2].strip()
        assert value in shown


def test_without_a_report_there_is_no_card():
    assert card(Raw()) is None


def _texts(block: CardBlock) -> list[str]:
    fields = [field.text for field in block.fields]
    for option in block.options:
        fields += [option.label, *(field.text for field in option.fields)]
        fields += [option.instruction.text] if option.instruction else []
    return [block.summary, *fields]
