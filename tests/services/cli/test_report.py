"""`turngate report`: offline, from files or standard input."""

import json
import os
import subprocess

import pytest

from tests.services.cli.samples import ESCAPES, asking, done, encoded
from tests.services.cli.shell import COMMAND, environment, turngate
from turngate.cli.main import main


@pytest.fixture(autouse=True)
def plain(monkeypatch, tmp_path):
    for name in ("FORCE_COLOR", "TURNGATE_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def written(tmp_path):
    """Writes a report and returns its file's name."""

    def write(report, name="report.json"):
        path = tmp_path / name
        path.write_bytes(report if isinstance(report, bytes) else encoded(report))
        return str(path)

    return write


def test_an_acceptable_report_is_exit_code_0(written, capsys):
    assert main(["report", "check", written(asking())]) == 0

    assert "accepted" in capsys.readouterr().out


def test_a_report_with_problems_is_exit_code_1_and_names_each(written, capsys):
    file = written({"task_status": "done", "headline": ""})

    assert main(["report", "check", file]) == 1

    out = capsys.readouterr().out
    assert "REPORT_REJECTED: 2 problems" in out
    assert "- /task_status: " in out
    assert "- /headline: " in out


def test_one_rejected_report_among_several_is_exit_code_1(written, capsys):
    files = [written(done(), "a.json"), written({}, "b.json"), written(asking(), "c.json")]

    assert main(["report", "check", *files]) == 1

    out = capsys.readouterr().out
    assert [line.split()[0] for line in out.splitlines() if ".json" in line] == ["accepted", "rejected", "accepted"]


def test_a_turn_that_changed_something_needs_a_verification(written, capsys):
    report = done()
    report["blocks"] = [{"type": "change", "id": "c", "summary": "Changed it"}]
    file = written(report)

    assert main(["report", "check", file]) == 0
    assert main(["report", "check", "--mutated", "--json", file]) == 1

    assert json.loads(capsys.readouterr().out.splitlines()[-1])["problems"][0]["code"] == "status_needs_verification"


def test_the_number_of_blocks_is_a_setting(written, monkeypatch, capsys):
    file = written(asking())

    assert main(["report", "check", "--max-blocks", "2", file]) == 1
    monkeypatch.setenv("TURNGATE_MAX_BLOCKS", "1")
    assert main(["report", "check", file]) == 1
    assert main(["report", "check", "--max-blocks", "3", file]) == 0


def test_json_for_scripts_is_one_line_a_report(written, capsys):
    main(["report", "check", "--json", written(asking()), written({}, "b.json")])

    accepted, rejected = map(json.loads, capsys.readouterr().out.splitlines())
    assert accepted["ok"]
    assert accepted["report"]["headline"] == "Two migrations are ready"
    assert [choice["number"] for choice in accepted["choices"]] == [1, 2, 3]
    assert not rejected["ok"]
    assert rejected["problem_count"] == 2
    assert rejected["file"].endswith("b.json")


@pytest.mark.parametrize(
    "data",
    [b"", b"\xff\xfe\x00", b"{", b"[" * 10_000, b'"text"', b'{"headline": "\xed\xa0\x80"}', b'{"a":1e999}', b"null"],
    ids=["empty", "not UTF-8", "cut", "deep", "scalar", "surrogate", "huge", "null"],
)
def test_bytes_that_are_no_report_are_rejected_and_never_crash(data):
    outcome = turngate("report", "check", stdin=data)

    assert outcome.code == 1
    assert "REPORT_REJECTED" in outcome.out
    assert outcome.err == ""


def test_standard_input_is_read_where_no_file_is_named():
    assert turngate("report", "check", stdin=encoded(done())).code == 0
    assert turngate("report", "check", "-", stdin=encoded(done())).code == 0


def test_a_file_that_can_not_be_read_is_exit_code_2_and_says_what_to_do():
    outcome = turngate("report", "check", "/nowhere/report.json")

    assert outcome.code == 2
    assert outcome.err == (
        "turngate: /nowhere/report.json can't be read: No such file or directory; "
        "name another file, or - for standard input\n"
    )


def test_a_closed_standard_input_is_exit_code_2():
    command = subprocess.list2cmdline([*COMMAND, "report", "check"])

    done = subprocess.run(["sh", "-c", f"{command} <&-"], env=environment(), capture_output=True, cwd="/", timeout=60)

    assert done.returncode == 2
    assert b"Traceback" not in done.stderr


def test_a_card_shows_status_options_and_the_recommended_one(written, capsys):
    assert main(["report", "render", written(asking())]) == 0

    out = capsys.readouterr().out
    assert "│ [needs action] Two migrations are ready\n" in out
    assert "│   ★ 1. Run 31 first (recommended) [dispatch]\n" in out
    assert "│     3. Stop here [resolve]\n" in out
    assert "Runs: Run migration 31." in out
    assert "63 tests" not in out


def test_details_are_shown_where_they_are_asked_for(written, capsys):
    file = written(asking())

    main(["report", "render", "--expand", "tests", file])
    main(["report", "render", "--expand-all", file])
    main(["report", "render", "--plain", file])

    assert capsys.readouterr().out.count("Details: 63 tests") == 3


def test_checks_that_were_not_run_can_be_folded_away(written, capsys):
    main(["report", "render", "--hide-not-run", written(asking())])

    out = capsys.readouterr().out
    assert "Skipped" not in out
    assert "1 check that was not run is not shown" in out


def test_lines_come_as_json_for_scripts(written, capsys):
    main(["report", "render", "--json", written(asking())])

    lines = json.loads(capsys.readouterr().out)["lines"]
    assert lines[0] == {
        "kind": "header",
        "text": "[needs action] Two migrations are ready",
        "block": -1,
        "block_id": "",
        "option": 0,
    }
    assert [line["option"] for line in lines if line["kind"] == "option"] == [1, 2, 3]


def test_what_can_not_be_drawn_is_rejected(written, capsys):
    assert main(["report", "render", written(b"no")]) == 1

    assert "REPORT_REJECTED" in capsys.readouterr().out


@pytest.mark.parametrize(
    "command", [["check"], ["check", "--json"], ["render"], ["render", "--plain"], ["render", "--json"]]
)
def test_hostile_text_never_reaches_the_output_as_it_is(written, capsys, command):
    report = asking(ESCAPES)
    report["blocks"][0]["options"][0]["label"] = ESCAPES
    report["blocks"][1]["details"] = f"{ESCAPES}\nsecond\r\nthird"
    main(["report", *command, written(report)])
    main(["report", *command, written(report | {"task_status": ESCAPES})])

    out = capsys.readouterr().out
    assert all(line.isprintable() for line in out.splitlines())
    assert "\r" not in out


def test_a_terminal_that_knows_no_glyphs_gets_escapes(written):
    outcome = turngate("report", "render", written(asking()), env={"PYTHONIOENCODING": "ascii"})

    assert outcome.code == 0
    assert "\\u2605 1. Run 31 first" in outcome.out


def test_the_schema_is_json(capsys):
    assert main(["report", "schema", "--max-blocks", "7"]) == 0

    schema = json.loads(capsys.readouterr().out)
    assert schema["properties"]["blocks"]["description"].endswith("at most 7 blocks.")


@pytest.mark.parametrize("flags", [[], ["--json"]], ids=["text", "json"])
def test_a_file_name_need_not_be_utf_8(tmp_path, flags):
    file = tmp_path / os.fsdecode(b"\xff\x1b[31m.json")
    file.write_bytes(encoded(done()))

    outcome = turngate("report", "check", *flags, str(file))

    assert outcome.code == 0
    assert outcome.out.strip().isprintable()
