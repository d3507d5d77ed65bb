"""The desk: what a key does to what a person has in front of them."""

import pytest

from tests.services.cli.samples import asking, encoded
from turngate.cli.watching import desk as d
from turngate.cli.watching.desk import Asked, Card, Desk, Driven
from turngate.cli.watching.drawn import rows
from turngate.cli.watching.keyboard import Key
from turngate_protocol.esm.activity import Activity, ActivityKind, activity_of
from turngate_protocol.esm.objective import Objective, Status
from turngate_protocol.esm.state import EsmState
from turngate_protocol.inbox import InboxEntry
from turngate_protocol.question import Answer, Option, Question, Spec, new_freeform_request, new_request
from turngate_protocol.report import Report, choices, decode

NOW = 1_700_000_000_000
ENTRIES = tuple(InboxEntry("card", f"s{at}", "default", NOW - 60_000 * at, f"title {at}", turn=1) for at in range(3))
OPTIONS = (Option("Disk", "It survives"), Option("Memory", "It is fast"))
REQUEST = new_request(
    "q-1", "c-1", Spec((Question("Store", "Where?", OPTIONS), Question("Parts", "Which?", OPTIONS, True)))
)


def typed(desk: Desk, *pressed: str) -> list[d.Action]:
    """Press keys: one character each, or a name in angle brackets; returns what they decided."""
    keys = [Key(p[1:-1]) if p.startswith("<") else Key("text", p) for p in pressed]
    return [action for key in keys if (action := desk.press(key)) is not None]


def card() -> Card:
    report = decode(encoded(asking()))
    assert isinstance(report, Report)
    return Card(ENTRIES[0], 4, report, tuple(choices(report)))


def on(opened: d.Opened) -> Desk:
    desk = Desk(ENTRIES)
    desk.show(opened)
    return desk


def drawn(desk: Desk, columns: int = 79, height: int = 23) -> str:
    return "\n".join(rows(desk, NOW, columns, height, colour=False))


def test_the_selection_moves_and_enter_opens():
    desk = Desk(ENTRIES, at=d.place(ENTRIES[0]))

    assert typed(desk, "j", "<down>", "k", "<enter>") == [d.Open(ENTRIES[1])]


def test_the_selection_stays_with_its_entry_when_others_come_and_go():
    desk = Desk(ENTRIES, at=d.place(ENTRIES[1]))

    desk.refresh(ENTRIES[1:], more=False)
    assert desk.at == d.place(ENTRIES[1])
    desk.refresh((ENTRIES[0], ENTRIES[2]), more=False)
    assert desk.at == d.place(ENTRIES[0])
    desk.refresh((), more=False)
    assert typed(desk, "<enter>", "j") == []


def test_a_digit_answers_the_card_as_it_was_opened():
    assert typed(on(card()), "2") == [d.PickOption("s0", 4, 2, "")]


def test_a_text_goes_beside_the_answer():
    assert typed(on(card()), "t", *"ok 1", "<enter>", "1") == [d.PickOption("s0", 4, 1, "ok 1")]


def test_an_option_that_a_card_has_not_is_no_answer():
    desk = on(card())

    assert typed(desk, "9") == []
    assert "no option 9" in drawn(desk)


def test_a_pasted_digit_answers_nothing():
    desk = on(card())

    assert desk.press(Key("paste", "1")) is None


def test_a_card_is_dismissed_by_escape_twice_and_not_with_a_key_between():
    desk = on(card())

    assert typed(desk, "<escape>", "0", "<escape>") == []
    assert typed(desk, "<escape>") == [d.DismissCard("s0", 4)]


def test_details_unfold_and_fold():
    desk = on(card())

    assert "63 tests" not in drawn(desk)
    typed(desk, "0")
    assert "63 tests" in drawn(desk, height=60)


def test_what_is_over_takes_no_more_keys_but_back():
    opened = card()
    opened.over = "bob answered this card: Stop here"
    desk = on(opened)

    assert typed(desk, "1", "<escape>", "<escape>") == []
    assert "bob answered" in drawn(desk)
    typed(desk, "q")
    assert desk.opened is None


def test_each_part_of_a_question_is_answered_in_turn():
    decided = typed(on(Asked(ENTRIES[0], REQUEST)), "2", "<enter>", "1", "2", "<enter>")

    assert decided == [d.Reply("s0", REQUEST, (Answer(("Memory",)), Answer(("Disk", "Memory"))), "")]


def test_j_and_k_go_to_the_next_part_and_the_part_before_and_send_nothing():
    decided = typed(on(Asked(ENTRIES[0], REQUEST)), "k", "2", "j", "j", "k", "1", "j", "1", "j", "<enter>")

    assert decided == [d.Reply("s0", REQUEST, (Answer(("Disk",)), Answer(("Disk",))), "")]


def test_several_need_at_least_one_and_a_second_press_takes_the_mark_away():
    desk = on(Asked(ENTRIES[0], REQUEST))

    assert typed(desk, "1", "<enter>", "2", "2", "<enter>") == []
    assert "choose with a digit first" in drawn(desk)


def test_a_second_digit_takes_the_place_of_the_first_where_one_is_chosen():
    decided = typed(on(Asked(ENTRIES[0], REQUEST)), "1", "2", "<enter>", "1", "<enter>")

    assert decided == [d.Reply("s0", REQUEST, (Answer(("Memory",)), Answer(("Disk",))), "")]


def test_own_words_answer_one_part_and_a_chat_reply_all_of_it():
    own = typed(on(Asked(ENTRIES[0], REQUEST)), "1", "<enter>", "o", *"mine", "<enter>")
    chat = typed(on(Asked(ENTRIES[0], REQUEST)), "c", *"why?", "<enter>")

    assert own == [d.Reply("s0", REQUEST, (Answer(("Disk",)), Answer(custom="mine")), "")]
    assert chat == [d.Reply("s0", REQUEST, (), "why?")]


def test_a_question_in_free_text_is_answered_by_enter():
    request = new_freeform_request("q-2", "c-2", "What now?")
    desk = on(Asked(ENTRIES[0], request))

    assert typed(desk, "1", "o", "<enter>", *"go", "<backspace>", "o", "<enter>") == [d.Reply("s0", request, (), "go")]


def test_a_blank_text_and_an_escape_say_nothing():
    desk = on(Asked(ENTRIES[0], REQUEST))

    assert typed(desk, "c", " ", "<enter>", "<escape>") == []
    assert desk.line is None
    assert desk.opened is not None


def test_a_question_is_cancelled_by_escape_twice_and_not_with_a_key_between():
    desk = on(Asked(ENTRIES[0], REQUEST))

    assert typed(desk, "<escape>", "1", "<escape>") == []
    assert typed(desk, "<escape>") == [d.CancelQuestion("s0", REQUEST)]


STEERED = [
    (Status.ACTIVE, "p", "pause"),
    (Status.PAUSED, "p", "resume"),
    (Status.BLOCKED, "p", "resume"),
    (Status.ACTIVE, "r", "run"),
    (Status.ACTIVE, "e", "edit"),
]


@pytest.mark.parametrize(("status", "key", "what"), STEERED)
def test_an_objective_is_steered_by_the_console_s_keys(status, key, what):
    state = EsmState("s0", objective=Objective("s0", "o-1", "Make it pass", status=status))

    assert typed(on(Driven(ENTRIES[0], state, activity_of(state))), key) == [d.Steer("s0", what)]


def test_guidance_is_typed_or_pasted():
    state = EsmState("s0")
    desk = on(Driven(ENTRIES[0], state, activity_of(state)))

    typed(desk, "g")
    desk.press(Key("paste", "use\nthe cache"))
    assert typed(desk, "<enter>") == [d.Steer("s0", "guide", "use\nthe cache")]


def test_any_key_closes_the_help():
    desk = on(card())

    typed(desk, "?")
    assert "answer with that option" in drawn(desk)
    assert typed(desk, "1") == []
    assert not desk.help


def test_control_c_ends_wherever_one_is():
    desk = on(card())

    assert typed(desk, "t", "<interrupt>") == [d.Quit()]


@pytest.mark.parametrize("height", [1, 6, 10, 24])
@pytest.mark.parametrize("columns", [10, 40, 200])
def test_the_screen_is_never_higher_than_the_terminal(columns, height):
    many = tuple(InboxEntry("card", f"s{at}", "p", NOW, "x" * 300) for at in range(100))
    desk = Desk(many, at=d.place(many[60]))

    assert len(rows(desk, NOW, columns, height, colour=True)) == max(height, 6)
    assert "▸" in "".join(rows(desk, NOW, columns, height, colour=True))
    desk.show(card())
    typed(desk, "<page down>", "<page down>", "<page down>")
    assert len(rows(desk, NOW, columns, height, colour=True)) == max(height, 6)


@pytest.mark.parametrize(
    "opened", [card(), Asked(ENTRIES[0], REQUEST), Driven(ENTRIES[0], EsmState("s0"), Activity(ActivityKind.NONE))]
)
def test_the_keys_fit_on_a_terminal_of_eighty_columns(opened):
    assert rows(on(opened), NOW, 79, 23, colour=False)[-1].endswith("? keys")


def test_hostile_titles_and_typing_stay_harmless():
    desk = Desk((InboxEntry("card", "s", "p", NOW, "\x1b[2Jred\nline"),), at=("card", "s"))
    desk.say("\x1b[2J\nx", bad=True)

    assert "\x1b" not in drawn(desk)
    desk.line = d.Line("chat", "your reply", "\x1b[2J\n")
    assert "\x1b" not in drawn(desk)


def test_the_list_says_which_runner_to_start_where_objectives_wait_for_one():
    desk = Desk(ENTRIES, unattended=("gpu", "cpu"))

    shown = rows(desk, NOW, 100, 12, colour=False)

    assert shown[1] == " objectives wait for a runner: turngate runner --pool gpu -- COMMAND (and 1 more)"
    assert len(shown) == 12
