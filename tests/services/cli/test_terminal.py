"""Drawing for people: colours, widths and hostile text."""

import io
import os
import subprocess

import pytest

from tests.services.cli.samples import ESCAPES, asking, encoded
from tests.services.cli.shell import COMMAND, environment, turngate
from turngate.terminal import Terminal, cell_width
from turngate_protocol.report import Report, decode, normalise


def report_of(value) -> Report:
    decoded = decode(encoded(value))
    assert isinstance(decoded, Report)
    return normalise(decoded)


def drawn(value, **how) -> str:
    stream = io.StringIO()
    Terminal(stream, **how).card(report_of(value))
    return stream.getvalue()


def without_colours(text: str) -> str:
    import re

    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def test_a_card_says_the_same_with_and_without_colours():
    assert without_colours(drawn(asking(), colour=True)) == drawn(asking(), colour=False)


def test_a_card_has_its_colours_on_a_terminal():
    text = drawn(asking(), colour=True)

    assert "\x1b[43;30;1m[needs action]\x1b[0m" in text
    assert "\x1b[32m  ★ \x1b[0m" in text


def test_hostile_text_brings_no_escape_of_its_own():
    report = asking(ESCAPES)
    report["blocks"][0]["options"][1]["label"] = ESCAPES

    text = drawn(report, colour=True)

    assert all(line.isprintable() for line in without_colours(text).splitlines())


def test_a_label_that_claims_to_be_recommended_gets_no_star():
    report = asking()
    report["blocks"][0]["options"][2]["label"] = "★ Stop here (recommended)"

    lines = drawn(report).splitlines()

    assert [line for line in lines if line.startswith("│   ★ ")] == ["│   ★ 1. Run 31 first (recommended) [dispatch]"]


@pytest.mark.parametrize("width", [30, 47, 80])
def test_no_line_is_wider_than_the_terminal(width):
    report = asking("語" * 40 + " and a long sentence in which words are many and the room is little")
    report["blocks"][0]["options"][0]["instruction"] = "x" * 300

    lines = drawn(report, width=width).splitlines()

    assert max(map(cell_width, lines)) <= width


def test_wrapping_loses_no_word():
    headline = "every word of this sentence is still there after it was wrapped to a narrow terminal"

    text = drawn(asking(headline), width=30)

    assert headline in " ".join(line.removeprefix("│").strip() for line in text.splitlines())


def test_a_table_aligns_and_makes_cells_visible():
    stream = io.StringIO()
    terminal = Terminal(stream)

    terminal.table(["name", "n"], [["a\x1b[2J", "1"], [terminal.paint("語", "red"), "20"]], right={1})

    assert stream.getvalue().splitlines() == [r"name       n", r"a\x1b[2J   1", "語        20"]


def test_a_table_row_that_is_too_long_is_cut():
    stream = io.StringIO()

    Terminal(stream, width=30).table(["id", "title"], [["1", "word " * 20]])

    assert cell_width(stream.getvalue().splitlines()[1]) == 30
    assert stream.getvalue().endswith("…\n")


def test_lines_take_plain_and_painted_text():
    stream = io.StringIO()
    terminal = Terminal(stream, colour=True)

    terminal.line("a\x1b", terminal.paint("b\x1b", "bold"))

    assert stream.getvalue() == "a\\x1b\x1b[1mb\\x1b\x1b[0m\n"


@pytest.mark.parametrize(
    ("env", "coloured"),
    [({}, False), ({"FORCE_COLOR": "1"}, True), ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False)],
    ids=["piped", "forced", "refused"],
)
def test_colours_follow_the_environment(env, coloured):
    outcome = turngate("report", "render", env=env, stdin=encoded(asking()))

    assert ("\x1b[" in outcome.out) is coloured


@pytest.mark.parametrize(
    ("env", "coloured"),
    [({"TERM": "xterm"}, True), ({"TERM": "xterm", "NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)],
    ids=["terminal", "refused", "dumb"],
)
def test_a_terminal_gets_colours_unless_it_refuses_them(env, coloured, tmp_path):
    file = tmp_path / "r.json"
    file.write_bytes(encoded(asking()))
    ours, theirs = os.openpty()
    command = [*COMMAND, "report", "render", str(file)]
    with subprocess.Popen(command, env=environment(env), stdout=theirs, stdin=subprocess.DEVNULL, cwd="/") as process:
        os.close(theirs)
        shown = b""
        # Linux ends the other side of a terminal with EIO.
        try:
            while piece := os.read(ours, 65536):
                shown += piece
        except OSError:
            pass
    os.close(ours)

    assert process.returncode == 0
    assert (b"\x1b[" in shown) is coloured
