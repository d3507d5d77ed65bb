"""JSON for scripts: valid, on one line, harmless on a terminal; and readers that go away."""

import json
import os
import subprocess

import pytest
from msgspec import Raw

from tests.services.cli.samples import ESCAPES
from tests.services.cli.shell import COMMAND, environment
from turngate.cli.output import to_json


@pytest.mark.parametrize("text", [ESCAPES, "\x7f\x85\u2028", "\U0001f600 ü", '"\\', "\ufeff"])
def test_any_text_comes_back_from_json_that_a_terminal_survives(text):
    made = to_json({"text": text})

    assert made.isascii()
    assert made.isprintable()
    assert json.loads(made) == {"text": text}


def test_raw_json_of_a_model_is_kept_on_one_line_and_not_decoded():
    made = to_json({"report": Raw(b'{\n "big": 1e999,\n "text": "\x1b\xc2\x9b" }'.replace(b"\x1b", b"\\u001b"))})

    assert made == '{"report":{"big":1e999,"text":"\\u001b\\u009b"}}'


def test_indented_json_is_for_people():
    assert to_json({"a": [1]}, indent=True) == '{\n  "a": [\n    1\n  ]\n}'


@pytest.mark.parametrize("unbuffered", ["", "1"], ids=["buffered", "unbuffered"])
@pytest.mark.parametrize("arguments", [["--help"], ["report", "schema"], ["report", "check", "--json"]], ids=" ".join)
def test_a_reader_that_goes_away_is_no_error(arguments, unbuffered):
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            [*COMMAND, *arguments],
            env=environment({"PYTHONUNBUFFERED": unbuffered}),
            stdin=subprocess.DEVNULL,
            stdout=writer,
            stderr=subprocess.PIPE,
            cwd="/",
            timeout=60,
        )
    finally:
        os.close(writer)

    # argparse itself passes over the failing write of an unbuffered help.
    assert done.returncode == (0 if unbuffered and arguments == ["--help"] else 141)
    assert done.stderr == b""
