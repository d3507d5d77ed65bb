"""Help that teaches, and what is imported to show it."""

import subprocess
import sys

import pytest

from tests.services.cli.shell import environment, turngate
from turngate import __version__
from turngate.cli.main import COMMANDS, main

ESM = ("create", "show", "list", "edit", "pause", "resume", "clear", "guide", "run", "history", "watch")
QUESTION = ("ask", "show", "pending", "answer", "cancel")
EVERY_COMMAND = [
    ["up"],
    ["serve"],
    ["serve", "validation"],
    ["report"],
    ["report", "check"],
    ["report", "render"],
    ["report", "schema"],
    ["turn"],
    ["turn", "submit"],
    ["turn", "end"],
    ["turn", "show"],
    ["turn", "answer"],
    ["turn", "dismiss"],
    ["question"],
    *(["question", name] for name in QUESTION),
    ["task"],
    ["task", "finish"],
    ["conclusion"],
    *(["conclusion", name] for name in ("parse", "verify", "show", "list")),
    ["esm"],
    *(["esm", name] for name in ESM),
    ["runner"],
    ["mcp"],
    ["hook"],
    ["console"],
    ["console", "token"],
    *(["console", "token", name] for name in ("add", "list", "remove")),
    ["serve", "console"],
    ["runners"],
    ["inbox"],
    ["events"],
    ["events", "tail"],
    ["dead"],
    *(["dead", name] for name in ("list", "show", "retry", "drop")),
    ["doctor"],
]


def helped(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as ended:
        main([*arguments, "--help"])
    assert ended.value.code == 0
    return capsys.readouterr().out


def test_the_help_lists_every_command_and_the_exit_codes(capsys):
    text = helped([], capsys)

    assert all(f"    {command.name} " in text for command in COMMANDS)
    assert "3  no server" in text
    assert "TURNGATE_CONFIG" in text


@pytest.mark.parametrize("command", EVERY_COMMAND, ids=" ".join)
def test_each_command_teaches_with_examples_and_exit_codes(command, capsys):
    text = helped(command, capsys)

    assert "examples:\n  turngate " in text or "examples:\n  my-agent" in text
    assert "exit codes:" in text


@pytest.mark.parametrize("command", EVERY_COMMAND, ids=" ".join)
def test_help_fits_a_terminal_of_100_columns(command, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")

    text = helped(command, capsys)

    assert max(map(len, text.splitlines())) <= 100


def test_the_version_is_the_package_s(capsys):
    with pytest.raises(SystemExit):
        main(["--version"])

    assert capsys.readouterr().out == f"turngate {__version__}\n"


@pytest.mark.parametrize(
    "arguments",
    [[], ["nope"], ["turn"], ["turn", "submit", "s1", "0"], ["turn", "show", "s1", "-1"], ["inbox", "--limit", "0"]],
    ids=" ".join,
)
def test_a_wrong_command_line_is_exit_code_2(arguments):
    outcome = turngate(*arguments)

    assert outcome.code == 2
    assert outcome.out == ""
    assert "usage: turngate" in outcome.err


def test_a_hostile_argument_does_not_reach_the_terminal_as_it_is():
    outcome = turngate("inbox", "\x1b[31mred")

    assert outcome.code == 2
    assert "\x1b" not in outcome.err
    assert "\\x1b[31mred" in outcome.err


@pytest.mark.parametrize(
    "arguments",
    [["--help"], ["turn", "submit", "--help"], ["esm", "create", "--help"], ["runner", "--help"], ["report", "schema"]],
    ids=["help", "turn", "esm", "runner", "schema"],
)
def test_help_and_offline_commands_import_neither_nats_nor_asyncio(arguments):
    code = f"""if True:
        import sys
        from turngate.cli.main import main
        try:
            main({arguments!r})
        except SystemExit:
            pass
        heavy = {{"nats", "asyncio", "uvloop", "yaml", "turngate.runner"}} & set(sys.modules)
        sys.exit(f"imported {{heavy}}" if heavy else 0)
        """

    done = subprocess.run([sys.executable, "-c", code], env=environment(), capture_output=True, cwd="/", timeout=60)

    assert done.returncode == 0, done.stderr.decode()


def test_an_error_while_a_command_is_set_up_is_a_sentence_too(monkeypatch, capsys):
    # As in an installation that lacks a part.
    monkeypatch.setitem(sys.modules, "turngate.demo.play", None)

    assert main(["demo"]) == 1

    assert "please report it" in capsys.readouterr().err


def test_closed_output_is_no_crash():
    command = subprocess.list2cmdline([sys.executable, "-m", "turngate.cli.main", "report", "schema"])

    done = subprocess.run(["sh", "-c", f"{command} >&-"], env=environment(), capture_output=True, cwd="/", timeout=60)

    assert done.returncode == 0
    assert done.stderr == b""
