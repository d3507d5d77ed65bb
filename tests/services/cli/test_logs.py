"""Log lines: for people or for programs, never with a secret, never harmful."""

import json
import logging

import pytest

from tests.services.cli.samples import ESCAPES
from turngate.logs import HumanFormatter, JsonFormatter, without_secrets
from turngate.tracing import Span


def record(message, *arguments, error=None, **extra):
    made = logging.LogRecord("turngate.test", logging.WARNING, "here.py", 1, message, arguments, None)
    if error is not None:
        made.exc_info = (type(error), error, error.__traceback__)
    made.__dict__.update(extra)
    return made


def failed(message):
    try:
        raise ValueError(message)
    except ValueError as error:
        return error


def test_a_program_gets_one_object_a_line():
    line = JsonFormatter().format(record("%d went", 3, facts={"count": 3}, error=failed(ESCAPES)))

    read = json.loads(line)
    assert line.isascii()
    assert line.isprintable()
    assert (read["level"], read["logger"], read["message"], read["count"]) == ("warning", "turngate.test", "3 went", 3)
    assert "ValueError" in read["traceback"]


def test_a_person_gets_lines_without_control_characters():
    lines = HumanFormatter().format(record("from %s", ESCAPES, error=failed(ESCAPES))).split("\n")

    assert "WARNING turngate.test: from \\x1b[31mred" in lines[0]
    assert lines[1] == "Traceback (most recent call last):"
    assert all(line.isprintable() for line in lines)


@pytest.mark.parametrize("formatter", [HumanFormatter(), JsonFormatter()], ids=["human", "json"])
def test_no_line_holds_the_credentials_of_a_url(formatter):
    line = formatter.format(record("at %s", "nats://me:secret@host:4222,tls://token@other", error=failed("ws://t0k@h")))

    assert not any(secret in line for secret in ("secret", "token@", "t0k"))
    assert "nats://***@host:4222,tls://***@other" in line


def test_a_url_without_credentials_stays_as_it_is():
    assert without_secrets("nats://host:4222/a@b is up") == "nats://host:4222/a@b is up"


def test_a_line_tells_what_is_being_handled_and_its_trace():
    trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

    with Span("x", trace, session="s1", turn=3, run=""):
        inside = json.loads(JsonFormatter().format(record("odd", facts={"attempt": 2})))
    after = json.loads(JsonFormatter().format(record("later")))

    assert (inside["session"], inside["turn"], inside["attempt"]) == ("s1", 3, 2)
    assert inside["trace"] == "4bf92f3577b34da6a3ce929d0e0e4736"
    assert "run" not in inside
    assert not {"session", "trace"} & after.keys()
