"""`turngate question` against a real system, as scripts and people use it."""

import json
import os
import pty
import subprocess
from functools import partial

import pytest

from tests.services.cli.samples import ESCAPES
from tests.services.cli.shell import COMMAND, Background, environment, inside, turngate
from tests.waiting import wait_until_sync

OPTIONS = [
    {"label": "Disk", "description": "It survives", "preview": "# tree\n\tdata/"},
    {"label": "Memory", "description": "It is fast"},
    {"label": "Both", "description": "It is both"},
]
STORE = {"header": "Store", "question": "Where shall the data go?", "options": OPTIONS}
PARTS = {"header": "Parts", "question": "Which ones?", "options": OPTIONS, "multiple": True}
ARGUMENTS = json.dumps({"questions": [STORE, PARTS]}).encode()
SINGLE = json.dumps({"questions": [STORE]}).encode()


@pytest.fixture
def question(system):
    """Runs `turngate question …` in the system."""

    def run(*arguments, stdin=b"", **env):
        return inside("question", *arguments, env=system | env, stdin=stdin)

    return run


class TestAsking:
    def test_a_script_asks_through_a_pipe(self, system, session):
        outcome = turngate("question", "ask", session, "--json", env=system, stdin=SINGLE)

        assert (outcome.code, outcome.err) == (0, "")
        assert outcome.json()["pending"]["request"]["questions"][0]["header"] == "Store"

    def test_the_arguments_come_from_a_file_too(self, question, session, tmp_path):
        (tmp_path / "arguments.json").write_bytes(SINGLE)

        outcome = question("ask", session, str(tmp_path / "arguments.json"), "--turn", "3")

        assert outcome.code == 0
        assert outcome.out.startswith(f"waits  for an answer: turngate question answer {session}\n")
        assert "runner tester, turn 3" in outcome.out

    def test_the_identical_call_still_waits_and_then_tells_what_became_of_it(self, question, session):
        first, again = (question("ask", session, "--text", "Go on?", "--call", "c1", "--json") for _ in range(2))
        question("answer", session, "--chat", "Yes.")
        decided = question("ask", session, "--text", "Go on?", "--call", "c1", "--json")

        assert first.json() == again.json()
        assert decided.json()["outcome"]["resolution"]["chat"] == "Yes."

    def test_a_call_that_can_not_be_read_is_denied_with_exit_code_1(self, question, session):
        outcome = question("ask", session, stdin=b"{}")

        assert outcome.code == 1
        assert outcome.out.startswith("denied")
        assert "ask_user_text" in outcome.out

    def test_bytes_that_are_not_utf_8_are_denied_like_any_other(self, question, session):
        assert question("ask", session, stdin=b'{"questions": "\xff"}').code == 1

    def test_a_second_question_is_denied_while_one_waits(self, question, session):
        question("ask", session, "--text", "First?")

        outcome = question("ask", session, "--text", "Second?", "--json")

        assert outcome.code == 1
        assert outcome.json()["denied"]["waiting_for"]["tool"] == "ask_user_text"

    @pytest.mark.parametrize(
        ("more", "kind", "code"),
        [
            ([], "expired", 1),
            (["--else-chat", "Go on."], "chat", 0),
            (["--else-answers", '[{"selections": ["Memory"]}]'], "answered", 0),
        ],
        ids=["expires", "chat", "answers"],
    )
    def test_waiting_ends_with_the_policy_s_decision(self, question, session, more, kind, code):
        outcome = question("ask", session, "--expires", "0.2", *more, "--wait", "--json", stdin=SINGLE)

        assert outcome.code == code
        assert (outcome.json()["kind"], outcome.json()["decided_by"]) == (kind, "policy")

    def test_waiting_prints_the_answer_when_it_comes(self, question, session, system, tmp_path):
        with Background(tmp_path, "question", "ask", session, "--text", "Go on?", "--wait", env=system) as asking:
            asking.wait_for("waits")
            question("answer", session, "--chat", "Yes, go on.", TURNGATE_IDENTITY="ann")
            assert asking.process.wait(30) == 0
            assert "by ann at" in asking.out
            assert "  Yes, go on.\n" in asking.out

    @pytest.mark.parametrize(
        "arguments",
        [
            ["--else-chat", "x"],
            ["--else-answers", "[]"],
            ["--task", "t1"],
            ["--text", "x", "file.json"],
            ["--expires", "0"],
            ["--expires", "nan"],
            ["--expires", "1", "--else-answers", "{"],
            ["missing.json"],
        ],
        ids=" ".join,
    )
    def test_arguments_that_do_not_fit_are_exit_code_2(self, question, session, arguments):
        assert question("ask", session, *arguments).code == 2

    @pytest.mark.parametrize("wrong", ["a.b", "*", "", "a\nb", "x" * 129])
    def test_what_is_no_id_is_exit_code_2(self, question, wrong):
        outcomes = [
            question("ask", wrong, "--text", "x"),
            question("show", wrong),
            question("answer", wrong, "1"),
            question("cancel", wrong),
        ]
        assert [outcome.code for outcome in outcomes] == [2, 2, 2, 2]
        assert all("is not an id" in outcome.err for outcome in outcomes)


class TestAnswering:
    def test_numbers_labels_and_texts_answer_the_parts_in_order(self, question, session):
        question("ask", session, stdin=ARGUMENTS)

        outcome = question("answer", session, "2", "3,1", "--json", TURNGATE_IDENTITY="ann")

        resolution = outcome.json()["outcome"]["resolution"]
        assert resolution["answers"] == [{"selections": ["Memory"]}, {"selections": ["Disk", "Both"]}]
        assert outcome.json()["outcome"]["by"] == "ann"

    def test_an_answer_is_shown_beside_what_it_answers(self, question, session):
        question("ask", session, stdin=ARGUMENTS)

        outcome = question("answer", session, "Both", "=neither,\nuse the cache")

        assert outcome.code == 0
        assert outcome.out.startswith(f"answered  session {session}  question q-")
        assert "  Store: Both\n  Parts: neither,\n  use the cache\n" in outcome.out

    @pytest.mark.parametrize(
        ("given", "reason"),
        [
            (["1"], "the question has 2 parts"),
            (["1", "2", "3"], "the question has 2 parts"),
            (["4", "1"], "answer 1: there is no option 4; give 1 to 3"),
            (["0", "1"], "answer 1: there is no option 0"),
            (["1,2", "1"], "answer 1: '1,2' names several options; this question takes one"),
            (["1", "1,1"], "answer 2: '1,1' names an option twice"),
            (["1", "disk"], "answer 2: 'disk' is no option"),
            (["1", "="], "answer 2: a blank text is no answer"),
            (["= \t ", "1"], "answer 1: a blank text is no answer"),
            (["=" + "x" * 4097, "1"], "answer 1: the text is 4097 bytes long"),
        ],
        ids=lambda value: str(value)[:40],
    )
    def test_an_answer_that_does_not_fit_is_refused_with_the_reason(self, question, session, given, reason):
        question("ask", session, stdin=ARGUMENTS)

        outcome = question("answer", session, *given)

        assert outcome.code == 1
        assert reason in outcome.err
        assert question("show", session, "--json").json().get("outcome") is None

    @pytest.mark.parametrize("more", [["--json"], []], ids=["json", "text"])
    def test_a_reply_may_be_json(self, question, session, tmp_path, more):
        question("ask", session, stdin=SINGLE)
        reply = tmp_path / "reply.json"
        reply.write_text('{"answers": [{"custom": "In the cloud"}]}')

        outcome = question("answer", session, "--from", str(reply), *more)

        assert outcome.code == 0
        assert "In the cloud" in outcome.out

    @pytest.mark.parametrize("reply", [b"", b"{", b'{"answer": []}', b"[]", b'{"chat": 1}', b"\xff", b"[" * 5000])
    def test_a_reply_that_is_none_is_exit_code_2(self, question, session, reply):
        question("ask", session, stdin=SINGLE)
        outcome = question("answer", session, "--from", "-", stdin=reply)
        assert outcome.code == 2
        assert all(line.isprintable() for line in outcome.err.splitlines())

    def test_a_reply_that_the_service_refuses_is_exit_code_1(self, question, session):
        question("ask", session, stdin=SINGLE)

        outcome = question("answer", session, "--from", "-", "--json", stdin=b'{"answers": [{"selections": ["No"]}]}')

        assert outcome.code == 1
        assert outcome.json()["error"]["code"] == "invalid"
        assert "answers[0]" in outcome.err

    def test_a_question_in_free_text_takes_a_chat_reply_only(self, question, session):
        question("ask", session, "--text", "Go on?")

        refused, taken = question("answer", session, "1"), question("answer", session, "--chat", "Yes.")

        assert refused.code == 1
        assert "--chat TEXT" in refused.err
        assert taken.code == 0

    def test_a_blank_chat_is_refused(self, question, session):
        question("ask", session, "--text", "Go on?")

        outcome = question("answer", session, "--chat", " ", "--json")

        assert outcome.json()["error"]["code"] == "blank_answer"

    def test_ways_to_answer_exclude_each_other(self, question):
        assert question("answer", "s", "1", "--chat", "x").code == 2
        assert question("answer", "s", "--from", "-", "--chat", "x").code == 2

    def test_without_a_terminal_an_answer_must_be_given(self, question, session):
        question("ask", session, stdin=SINGLE)

        outcome = question("answer", session)

        assert outcome.code == 2
        assert "no terminal" in outcome.err

    def test_the_second_answer_is_told_who_was_first(self, question, session):
        question("ask", session, "--call", "c1", stdin=SINGLE)
        request = question("show", session, "--json").json()["pending"]["request"]["id"]
        question("answer", session, "1", TURNGATE_IDENTITY="ann")

        late = question("answer", session, "2", "--request", request, "--json", TURNGATE_IDENTITY="bob")
        nothing = question("answer", session, "2", TURNGATE_IDENTITY="bob")

        assert (late.code, nothing.code) == (1, 1)
        assert late.json()["error"]["code"] == "already_resolved"
        assert late.json()["error"]["details"]["by"] == "ann"
        assert "its last one was decided by ann (answered)" in nothing.err

    def test_another_question_than_the_one_meant_is_not_answered(self, question, session):
        question("ask", session, stdin=SINGLE)

        outcome = question("answer", session, "1", "--request", "q-another", "--json")

        assert outcome.code == 1
        assert outcome.json()["error"]["code"] == "no_pending"

    @pytest.mark.parametrize("command", [["answer", "--chat", "x"], ["cancel"]], ids=["answer", "cancel"])
    def test_repeating_a_decision_with_its_operation_is_no_second_one(self, question, session, command):
        question("ask", session, stdin=SINGLE)

        first, again = (question(command[0], session, *command[1:], "--op", "op-1", "--json") for _ in range(2))

        assert (first.code, again.code) == (0, 0)
        assert again.json()["repeated"]

    def test_a_question_can_be_given_up(self, question, session):
        question("ask", session, stdin=SINGLE)

        outcome = question("cancel", session)

        assert outcome.code == 0
        assert outcome.out.startswith("cancelled")
        assert question("cancel", session).code == 1


class TestShowing:
    def test_a_question_is_shown_with_its_previews_and_its_lineage(self, question, session):
        question("ask", session, "--parent", "release", "--task", "t7", "--expires", "3600", stdin=ARGUMENTS)

        outcome = question("show", session)

        assert outcome.code == 0
        assert "for session release task t7, decided by its policy at" in outcome.out
        assert "1 of 2  Store  (choose one)\n  Where shall the data go?\n  1. Disk\n     It survives\n" in outcome.out
        assert "     │ # tree\n     │ \\tdata/\n" in outcome.out
        assert "2 of 2  Parts  (choose any number)" in outcome.out

    def test_an_outcome_is_shown_by_its_question_s_id(self, question, session):
        question("ask", session, stdin=SINGLE)
        request = question("show", session, "--json").json()["pending"]["request"]["id"]
        question("answer", session, "2")

        known, unknown = question("show", session, request), question("show", session, "q-unknown")

        assert "Store: Memory" in known.out
        assert (known.code, unknown.code) == (0, 1)
        assert "q-unknown is not known here" in unknown.out

    def test_a_session_that_asked_nothing_is_exit_code_1(self, question, session):
        outcome = question("show", session)
        assert outcome.code == 1
        assert outcome.err == f"turngate: session {session} has no questions\n"

    def test_hostile_questions_and_answers_can_not_harm_the_terminal(self, question, session):
        option = {"label": ESCAPES, "description": ESCAPES, "preview": f"{ESCAPES}\r\n{ESCAPES}"}
        hostile = {"header": ESCAPES, "question": f"{ESCAPES}\nwaits  for nothing", "options": [option, OPTIONS[0]]}
        asked = question("ask", session, stdin=json.dumps({"questions": [hostile]}).encode())
        assert asked.code == 0, asked.out

        shown = [
            asked,
            question("show", session),
            question("show", session, "--json"),
            question("pending", "--all"),
            question("answer", session, f"={ESCAPES}\nanswered  session x"),
            question("show", session),
        ]

        for outcome in shown:
            assert outcome.code == 0, outcome.err
            assert all(line.isprintable() for line in outcome.out.splitlines())
            assert "\nwaits  for nothing" not in outcome.out
            assert "\nanswered  session x" not in outcome.out


class TestPending:
    @pytest.fixture
    def alone(self, nats_server, namespace, tmp_path):
        """Runs `turngate question` in a system of its own, so that what waits is what the test asked."""
        env = {"TURNGATE_NATS_URL": nats_server.url, "TURNGATE_NAMESPACE": namespace, "TURNGATE_DURABILITY": "relaxed"}
        with Background(tmp_path, "serve", "validation", env=env) as service:
            service.wait_ready()
            yield lambda *arguments, stdin=b"": inside("question", *arguments, env=env, stdin=stdin)

    def test_what_waits_is_listed_oldest_first_with_age_and_lineage(self, alone):
        assert alone("pending").out == "no question waits for a person\n"

        for number in (1, 2, 3):
            lineage = ["--parent", "release", "--task", f"t{number}"] if number > 1 else []
            alone("ask", f"s{number}", "--text", f"Question {number}?", *lineage)
            wait_until_sync(partial(_are_listed, alone, number), why="it is listed")
        alone("cancel", "s1")
        wait_until_sync(lambda: len(_entries(alone)) == 2, why="the decided one leaves")

        rows = [line.split() for line in alone("pending").out.splitlines()]
        assert [row[2] for row in rows[1:]] == ["s2", "s3"]
        assert all(row[1] == "s" and int(row[0]) < 60 for row in rows[1:])
        assert [row[4:6] for row in rows[1:]] == [["release", "t2"], ["release", "t3"]]
        assert alone("pending").out.splitlines()[1].endswith("Question 2?")

    def test_it_comes_in_pages(self, alone):
        for number in (1, 2, 3):
            alone("ask", f"s{number}", "--text", "Go on?")
        wait_until_sync(lambda: len(_entries(alone)) == 3, why="all are listed")

        page = alone("pending", "--limit", "2", "--json").json()
        rest = alone("pending", "--limit", "2", "--cursor", str(page["cursor"]), "--json").json()
        every = alone("pending", "--limit", "1", "--all", "--json").json_lines()

        assert (len(page["entries"]), page["more"], len(rest["entries"])) == (2, True, 1)
        assert [len(each["entries"]) for each in every] == [1, 1, 1]
        assert f"--cursor {page['cursor']}" in alone("pending", "--limit", "2").out
        assert alone("pending", "--all", "--cursor", "3").code == 2


def _are_listed(run, count: int) -> bool:
    return len(_entries(run)) == count


def _entries(run):
    return run("pending", "--json").json()["entries"]


def test_a_person_answers_in_a_dialogue_on_a_terminal(system, session):
    inside("question", "ask", session, env=system, stdin=ARGUMENTS)
    ours, theirs = pty.openpty()
    command = [*COMMAND, "question", "answer", session]
    process = subprocess.Popen(
        command, env=environment(system | {"NO_COLOR": "1"}), stdin=theirs, stdout=theirs, stderr=theirs, cwd="/"
    )
    os.close(theirs)

    with process:
        shown = _until(ours, "in chat: ")
        os.write(ours, b"7\n")
        shown += _until(ours, "in chat: ")
        os.write(ours, b"Memory\n")
        shown += _until(ours, "in chat: ")
        os.write(ours, b"1, 3\n")
        shown += _until(ours, "Parts: Disk, Both")
    os.close(ours)

    assert process.returncode == 0
    assert "│ # tree" in shown
    assert "there is no option 7; give 1 to 3" in shown
    assert "Store: Memory" in shown


def _until(terminal: int, text: str) -> str:
    """What a terminal shows until `text` is there."""
    seen = b""
    while text.encode() not in seen:
        seen += os.read(terminal, 65536)
    return seen.decode()
