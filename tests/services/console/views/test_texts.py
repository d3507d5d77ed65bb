"""Words, numbers and times of pages."""

import pytest

from turngate.console.views.texts import count, many_lines, one_line, short, size
from turngate.console.views.times import due, time
from turngate_protocol.spans import span

HOUR = 3_600_000


@pytest.mark.parametrize(
    ("number", "said"),
    [(0, "0"), (999, "999"), (1_000, "1.0k"), (48_211, "48.2k"), (129_360, "129k"), (3_100_000, "3.1M")],
)
def test_a_number_is_short(number: int, said: str):
    assert short(number) == said


def test_a_noun_follows_its_number():
    assert [count(each, "problem") for each in (0, 1, 1_200)] == ["0 problems", "1 problem", "1,200 problems"]
    assert count(2, "delivery", "deliveries") == "2 deliveries"


def test_a_size_is_exact_while_it_is_small():
    assert (size(0), size(9_999), size(32_768)) == ("0 bytes", "9,999 bytes", "33 kB")


def test_line_breaks_stay_where_there_is_room_for_them_and_nothing_else_does():
    assert many_lines("a\r\n\tb\x1b[2J\u202e") == "a\n    b\\x1b[2J\\u202e"
    assert one_line("a\nb\x00") == "a b\\x00"


def test_a_time_is_told_in_utc_and_by_how_long_ago_it_is():
    told = time(1_785_488_400_000, 1_785_488_400_000 + 2 * HOUR + 5 * 60_000)

    assert (told.iso, told.text) == ("2026-07-31T09:00:00.000Z", "2026-07-31 09:00:00 UTC")
    assert (told.ago, told.future) == ("2 h 5 min", False)


def test_what_is_due_is_ahead_until_it_is_not():
    told, over = due(10 * HOUR, 8 * HOUR), due(8 * HOUR, 10 * HOUR)

    assert told is not None
    assert over is not None
    assert (told.ago, told.future) == ("2 h", True)
    assert (over.ago, over.future) == ("2 h", False)
    assert due(None, 8 * HOUR) is None


def test_what_happened_by_a_clock_that_is_ahead_happened_just_now():
    told = time(10 * HOUR, 8 * HOUR)

    assert (told.ago, told.future) == ("0 s", False)


@pytest.mark.parametrize("ms", [-5, 2**53, 2**62])
def test_no_time_is_too_far_away_to_be_told(ms: int):
    assert time(ms, 0).iso.endswith("Z")


def test_a_span_has_two_units():
    assert [span(each) for each in (-1, 59_000, 26 * HOUR, 49 * HOUR + 60_000)] == ["0 s", "59 s", "1 d 2 h", "2 d 1 h"]
