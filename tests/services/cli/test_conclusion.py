"""`turngate conclusion` and `turngate task`: closing blocks checked offline, tasks finished against a real system."""

import json
import os
import subprocess
import sys

import pytest

from tests.services.cli.samples import ESCAPES
from tests.services.cli.shell import Background, inside, turngate
from tests.services.conclusion.tasks import block, success
from turngate_protocol.conclusion import Conclusion


@pytest.fixture(scope="module")
def concluding(system, tmp_path_factory):
    """The system of these tests, with the conclusion service."""
    with Background(tmp_path_factory.mktemp("conclusion"), "serve", "conclusion", env=system) as service:
        service.wait_ready()
        yield system
        assert service.end() == 0, service.err


@pytest.fixture
def project(tmp_path):
    (tmp_path / "made.txt").write_text("made")
    return tmp_path


def output(project, text):
    (project / "output.txt").write_text(text)
    return str(project / "output.txt")


class TestParse:
    def test_a_block_is_shown_with_its_warnings(self, project):
        file = output(
            project, "prose" + block("status: done\nsummary: |\n  it\n  works\nartifacts: [a]\nconfidence: 7")
        )

        outcome = inside("conclusion", "parse", file)

        assert outcome.code == 0
        assert "  it\n  works\n" in outcome.out
        assert "  artifact  a\n" in outcome.out
        assert '  warning  status "done" is none of' in outcome.out

    def test_json_is_one_line_an_output(self, project):
        file = output(project, block("summary: it works"))

        outcome = inside("conclusion", "parse", file, file, "--json")

        first, second = outcome.json_lines()
        assert first == second
        assert (first["found"], first["conclusion"]["summary"]) == (True, "it works")

    def test_an_output_without_a_block_is_exit_code_1(self, project):
        assert inside("conclusion", "parse", output(project, "nothing"), "--json").json()["found"] is False
        outcome = inside("conclusion", "parse", output(project, "nothing"))
        assert (outcome.code, "no closing block" in outcome.out) == (1, True)

    def test_standard_input_is_read_whatever_bytes_it_holds(self):
        outcome = turngate("conclusion", "parse", "--json", stdin=b"\xff\x00" + block("summary: x").encode())
        assert (outcome.code, outcome.json()["conclusion"]["summary"]) == (0, "x")

    def test_no_escape_sequence_reaches_a_terminal(self, project):
        file = output(project, block(f"summary: |\n  {ESCAPES}\nartifacts:\n  - |\n    {ESCAPES}") + ESCAPES)
        for command in (["parse"], ["verify", "--dir", str(project)]):
            outcome = inside("conclusion", *command, file)
            assert "\x1b" not in outcome.out
            assert "\x07" not in outcome.out

    def test_a_file_that_is_missing_is_exit_code_2(self):
        outcome = inside("conclusion", "parse", "/no/such/file")
        assert outcome.code == 2
        assert "can't be read" in outcome.err


class TestVerify:
    def test_evidence_that_exists_is_exit_code_0(self, project):
        outcome = inside("conclusion", "verify", output(project, success("made.txt")), "--dir", str(project))
        assert outcome.code == 0
        assert "  verified  made.txt\n" in outcome.out

    def test_evidence_that_is_missing_is_exit_code_1(self, project):
        file = output(project, success("made.txt", "invented.txt", "/etc/passwd"))

        outcome = inside("conclusion", "verify", file, "--dir", str(project))

        assert outcome.code == 1
        assert outcome.out.startswith("partial  ")
        assert "  missing  invented.txt\n" in outcome.out
        assert "  unchecked  /etc/passwd\n" in outcome.out

    def test_json_holds_the_conclusion_the_gate_and_the_message(self, project):
        file = output(project, success("invented.txt"))

        told = inside("conclusion", "verify", file, "--dir", str(project), "--json").json()

        assert told["conclusion"]["status"] == "partial"
        assert told["gate"]["missing_artifacts"] == ["invented.txt"]
        assert told["message"].startswith("[delegated-result ")

    def test_further_roots_are_looked_into(self, project):
        file = output(project, success("/etc/passwd"))
        outcome = inside("conclusion", "verify", file, "--dir", str(project), "--root", "/etc")
        assert "  verified  /etc/passwd\n" in outcome.out

    @pytest.mark.parametrize(("since", "code"), [("2020-01-01T00:00:00Z", 0), ("4102444800000", 1)])
    def test_files_may_have_to_have_changed(self, project, since, code):
        os.utime(project / "made.txt", (1_700_000_000, 1_700_000_000))
        file = output(project, success("made.txt"))
        outcome = inside("conclusion", "verify", file, "--dir", str(project), "--changed-since", since)
        assert outcome.code == code
        assert ("unproven  made.txt" in outcome.out) == (code == 1)

    def test_an_output_without_a_block_is_judged_by_how_it_ended(self, project):
        file = output(project, "no block")
        assert inside("conclusion", "verify", file, "--dir", str(project)).code == 0
        assert inside("conclusion", "verify", file, "--dir", str(project), "--exit-code", "2").code == 1

    def test_a_success_without_tool_calls_is_warned_of(self, project):
        file = output(project, success("made.txt"))
        outcome = inside("conclusion", "verify", file, "--dir", str(project), "--tool-calls", "0")
        assert "no tool call" in outcome.out

    @pytest.mark.parametrize(
        "wrong",
        [
            ["--dir", "/no/such/dir"],
            ["--changed-since", "yesterday"],
            ["--changed-since", "2026-07-31T09:00:00"],
            ["--exit-code", "x"],
        ],
    )
    def test_what_can_not_be_used_is_exit_code_2(self, project, wrong):
        assert inside("conclusion", "verify", output(project, "x"), *wrong).code == 2

    def test_neither_nats_nor_the_services_are_imported(self, project):
        told = "import sys; from turngate.cli.main import main; main(sys.argv[1:]); print([m for m in sys.modules if"
        told += " m.split('.')[0] in ('nats', 'asyncio', 'aiohttp')])"
        file = output(project, success("made.txt"))

        done = subprocess.run(
            [sys.executable, "-c", told, "conclusion", "verify", file, "--dir", str(project)],
            capture_output=True,
            text=True,
            check=True,
        )

        assert done.stdout.splitlines()[-1] == "[]"


class TestTask:
    def test_a_task_is_finished_judged_and_shown(self, concluding, session, project):
        file = output(project, success("made.txt", "invented.txt"))

        outcome = inside("task", "finish", session, "t1", file, "--work-dir", str(project), env=concluding)

        assert outcome.code == 1
        assert "partial  judged at" in outcome.out
        assert "  verified  made.txt\n" in outcome.out
        assert "  missing  invented.txt\n" in outcome.out

    def test_what_was_concluded_can_be_asked_for_later(self, concluding, session, project):
        file = output(project, success("made.txt"))
        first = inside("task", "finish", session, "t1", file, "--work-dir", str(project), "--json", env=concluding)

        shown = inside("conclusion", "show", session, "t1", "--json", "--wait", "20", env=concluding)
        message = inside("conclusion", "show", session, "t1", "--message", env=concluding)

        assert (first.code, shown.code) == (0, 0)
        assert shown.json()["state"]["conclusion"] == first.json()["state"]["conclusion"]
        assert shown.json()["state"]["record"]["project_name"] == project.name
        assert message.out.startswith("[delegated-result task=t1 ")

    def test_a_failed_task_is_exit_code_1(self, concluding, session):
        arguments = ("--status", "failed", "--error", "out of memory", "--exit-code", "137", "--tool-calls", "4")
        outcome = inside("task", "finish", session, "t1", *arguments, env=concluding, stdin=b"no block")
        assert outcome.code == 1
        assert "  out of memory (exit code 137)\n" in outcome.out
        assert "failed at " in outcome.out
        assert "4 tool calls" in outcome.out

    def test_without_waiting_it_ends_when_it_is_stored(self, concluding, session):
        long = b"x" * 600_000
        outcome = inside("task", "finish", session, "t1", "--no-wait", env=concluding, stdin=long)
        assert outcome.code == 0
        assert outcome.out.endswith("bytes of its output were left out\n")
        told = inside("task", "finish", session, "t2", "--no-wait", "--json", env=concluding, stdin=b"done")
        assert told.json() == {"session": session, "task": "t2", "output_cut": 0}

    def test_a_task_told_differently_again_is_shown_as_a_conflict(self, concluding, session, project):
        for text in ("first", "second"):
            inside("task", "finish", session, "t1", output(project, text), env=concluding)
        inside("task", "finish", session, "t2", output(project, "after it"), env=concluding)

        outcome = inside("conclusion", "show", session, "t1", env=concluding)

        assert "conflict  tester finished it again" in outcome.out
        assert "  first\n" in outcome.out

    def test_conclusions_are_listed_a_page_at_a_time(self, concluding, session, project):
        for number in range(3):
            inside("task", "finish", session, f"t{number}", output(project, f"output {number}"), env=concluding)

        everything = inside("conclusion", "list", "--session", session, "--all", "--json", env=concluding)
        page = inside("conclusion", "list", "--session", session, "--limit", "2", env=concluding)
        none = inside("conclusion", "list", "--session", f"{session}x", env=concluding)

        entries = [entry for line in everything.json_lines() for entry in line["entries"]]
        assert sorted(entry["task"] for entry in entries) == ["t0", "t1", "t2"]
        assert f"there is more: turngate conclusion list --session {session} --limit 2 --cursor " in page.out
        assert none.out == "no conclusions\n"

    def test_a_task_that_nobody_told_of_is_exit_code_1(self, concluding, session):
        outcome = inside("conclusion", "show", session, "none", env=concluding)
        assert outcome.code == 1
        assert "is not known" in outcome.err

    @pytest.mark.parametrize(
        "arguments",
        [
            ["task", "finish", "a.b", "t"],
            ["task", "finish", "s", "a.b"],
            ["conclusion", "show", "a.b", "t"],
            ["task", "finish", "s", "t", "--status", "running"],
            ["task", "finish", "s", "t", "--timeout", "x"],
            ["conclusion", "list", "--all", "--cursor", "7"],
            ["conclusion", "list", "--limit", "0"],
        ],
        ids=" ".join,
    )
    def test_what_can_not_be_used_is_exit_code_2(self, concluding, arguments):
        assert inside(*arguments, env=concluding).code == 2

    def test_without_a_server_it_is_exit_code_3(self):
        env = {"TURNGATE_NATS_URL": "nats://127.0.0.1:1", "TURNGATE_CONNECT_TIMEOUT_MS": "300"}
        assert inside("task", "finish", "s", "t", env=env, stdin=b"x").code == 3
        assert inside("conclusion", "list", env=env).code == 3


def test_a_long_list_of_refs_is_shown_in_part(project, capsys):
    from turngate.cli.conclusion_shown import parsed

    parsed("it", Conclusion(artifacts=tuple(f"f{n}" for n in range(60))), as_json=False)

    shown = capsys.readouterr().out
    assert shown.count("  artifact  ") == 51
    assert "and 10 more" in shown


def test_json_of_hostile_text_is_ascii(project):
    outcome = inside("conclusion", "parse", output(project, block(f"summary: |\n  é{ESCAPES}")), "--json")
    assert outcome.out.isascii()
    assert json.loads(outcome.out)["found"]
