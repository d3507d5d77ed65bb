"""`turngate turn` against a real system, as scripts use it."""

import pytest

from tests.services.cli.samples import ESCAPES, asking, done, encoded
from tests.services.cli.shell import inside, turngate


@pytest.fixture
def turn(system):
    """Runs `turngate turn …` in the system."""

    def run(*arguments, stdin=b"", **env):
        return inside("turn", *arguments, env=system | env, stdin=stdin)

    return run


def test_a_script_submits_a_report_through_a_pipe(system, session):
    outcome = turngate("turn", "submit", session, "1", "--json", env=system, stdin=encoded(asking()))

    assert outcome.code == 0
    assert outcome.err == ""
    assert outcome.json()["outcome"] == "accepted"


def test_an_accepted_report_is_drawn_as_a_card(turn, session):
    outcome = turn("submit", session, "1", stdin=encoded(asking()))

    assert outcome.code == 0
    assert outcome.out.startswith(f"accepted  session {session}, turn 1, attempt 1\n")
    assert "★ 1. Run 31 first (recommended) [dispatch]" in outcome.out
    assert f"turngate turn answer {session} 1 NUMBER" in outcome.out


def test_a_report_comes_from_a_file_too(turn, session, tmp_path):
    (tmp_path / "report.json").write_bytes(encoded(done()))

    assert turn("submit", session, "1", str(tmp_path / "report.json"), "--mutated").code == 0


def test_a_rejected_report_is_exit_code_1_and_is_repaired_as_the_next_attempt(turn, session):
    rejected = turn("submit", session, "1", stdin=b'{"task_status": "done"}')
    repaired = turn("submit", session, "1", "--attempt", "2", "--json", stdin=encoded(done()))

    assert rejected.code == 1
    assert "REPORT_REJECTED: 2 problems" in rejected.out
    assert "may be repaired 3 more times" in rejected.out
    assert repaired.code == 0
    assert repaired.json()["outcome"] == "accepted"


def test_a_repeated_attempt_gets_the_same_verdict(turn, session):
    first = turn("submit", session, "1", "--json", stdin=b"{}")
    again = turn("submit", session, "1", "--json", stdin=b"{}")

    assert first.code == again.code == 1
    assert first.json() == again.json()


def test_other_content_under_the_same_attempt_is_refused(turn, session):
    turn("submit", session, "1", stdin=b"{}")

    outcome = turn("submit", session, "1", "--json", stdin=encoded(done()))

    assert outcome.code == 1
    assert outcome.json()["error"]["code"] == "attempt_conflict"
    assert "send a new report as attempt 2" in outcome.err


def test_bytes_that_are_not_utf_8_are_rejected_like_any_other(turn, session):
    outcome = turn("submit", session, "1", stdin=b"\xff\xfe")

    assert outcome.code == 1
    assert "not UTF-8" in outcome.out


@pytest.mark.parametrize("wrong", ["a.b", "a b", "*", ">", "", "a\nb", "x" * 129])
def test_what_is_no_id_is_exit_code_2(turn, wrong):
    outcome = turn("submit", wrong, "1", stdin=encoded(done()))

    assert outcome.code == 2
    assert "is not an id" in outcome.err


def test_a_report_that_is_too_large_to_send_is_refused_at_once(turn, session):
    outcome = turn("submit", session, "1", stdin=b'"' + b"x" * 5_000_000 + b'"')

    assert outcome.code == 1
    assert "at most" in outcome.err


def test_a_hostile_report_can_not_harm_the_terminal(turn, session):
    report = asking(ESCAPES)
    report["blocks"][0]["options"][0]["label"] = ESCAPES

    shown = [
        turn("submit", session, "1", stdin=encoded(report)),
        turn("show", session, "--expand-all"),
        turn("show", session, "--json"),
        turn("answer", session, "1", "1", "--text", "mind\n\x1b[2J"),
        turn("show", session),
    ]

    for outcome in shown:
        assert outcome.code == 0, outcome.err
        assert all(line.isprintable() for line in outcome.out.splitlines())


def test_a_turn_that_owes_a_report_is_reminded_and_then_unreported(turn, session):
    endings = [turn("end", session, "1", "--mutated", "--ending", str(number)) for number in (1, 2, 3)]
    settled = turn("end", session, "2", "--json")

    assert [outcome.out.split()[0] for outcome in endings] == ["reminder", "reminder", "unreported"]
    assert [outcome.code for outcome in endings] == [1, 1, 1]
    assert "owes a report" in endings[0].out
    assert (settled.code, settled.json()["outcome"]) == (0, "settled")


def test_showing_a_session_tells_its_turns(turn, session):
    turn("submit", session, "1", stdin=b"{}")
    turn("submit", session, "1", "--attempt", "2", stdin=encoded(asking(headline="")))
    turn("submit", session, "2", "--mutated", stdin=encoded(asking()))

    everything, first, state = turn("show", session), turn("show", session, "1"), turn("show", session, "--json")

    assert "turn 2: accepted" in everything.out
    assert "changed something" in everything.out
    assert "earlier turns" in everything.out
    assert "attempt 1 rejected with 2 problems" in first.out
    assert "attempt 2 rejected with 1 problem\n" in first.out
    assert "turn 2" not in first.out
    assert state.json()["state"]["current"]["turn"] == 2


def test_showing_an_attempt_tells_its_verdict(turn, session):
    turn("submit", session, "1", stdin=b"{}")

    known, unknown = turn("show", session, "1", "--attempt", "1"), turn("show", session, "--attempt", "2")

    assert known.code == 0
    assert "REPORT_REJECTED" in known.out
    assert unknown.code == 1


def test_a_session_or_turn_that_is_unknown_is_exit_code_1(turn, session):
    nowhere = turn("show", session)
    turn("submit", session, "1", stdin=encoded(done()))
    later = turn("show", session, "9")

    assert nowhere.code == later.code == 1
    assert nowhere.err == f"turngate: session {session} is not known\n"
    assert "turn 9 is not known" in later.out


def test_the_first_answer_wins_and_a_later_one_is_told_who_was_first(turn, session):
    turn("submit", session, "1", stdin=encoded(asking()))

    first = turn("answer", session, "1", "1", "--text", "before noon", TURNGATE_IDENTITY="alice")
    second = turn("answer", session, "1", "order/stop", "--json", TURNGATE_IDENTITY="bob")

    assert first.code == 0
    assert "answer: 1. Run 31 first (order/first, dispatch) by alice" in first.out
    assert "before noon" in first.out
    assert second.code == 1
    assert second.json()["error"]["details"]["actor"] == "alice"


def test_an_answer_by_names_fills_the_editor(turn, session):
    turn("submit", session, "1", stdin=encoded(asking()))

    outcome = turn("answer", session, "1", "order/edit")

    assert outcome.code == 0
    assert "to edit: Let me write" in outcome.out


def test_repeating_an_answer_with_its_operation_is_no_second_one(turn, session):
    turn("submit", session, "1", stdin=encoded(asking()))

    first, again = (turn("answer", session, "1", "3", "--op", "op-1", "--json") for _ in range(2))

    assert (first.code, again.code) == (0, 0)
    assert again.json()["repeated"]


@pytest.mark.parametrize("choice", ["0", "10", "x", "/", "a/", "٣"])
def test_what_is_no_choice_is_exit_code_2(turn, choice):
    outcome = turn("answer", "s", "1", choice)

    assert outcome.code == 2
    assert "use a number from 1 to 9, or BLOCK/OPTION" in outcome.err


def test_a_card_can_be_closed_without_an_answer(turn, session):
    turn("submit", session, "1", stdin=encoded(asking()))

    closed, again = turn("dismiss", session, "1"), turn("answer", session, "1", "1", "--json")

    assert closed.code == 0
    assert closed.out == f"turn 1 of {session} is closed\n"
    assert again.json()["error"]["code"] == "already_dismissed"
    assert "dismissed by tester" in turn("show", session).out


@pytest.mark.parametrize(
    "arguments",
    [["answer", "s", "1", "1", "--text", "\udcff"], ["show", "\udcff"], ["dismiss", "s", "1", "--op", "a b"]],
)
def test_arguments_that_can_not_be_sent_are_exit_code_2(turn, arguments):
    outcome = turn(*arguments)

    assert outcome.code == 2
    assert outcome.err.splitlines()[-1].isprintable()
