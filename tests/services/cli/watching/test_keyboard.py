"""Keys: what a terminal's bytes mean, however they are cut."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from turngate.cli.watching.keyboard import PASTE_BYTES, Key, keys

TYPED = b"1\x1b[Aj\r\x7f\x03\x15\xc3\xa4\x1b[6~\x1b[200~4\n5\x1b[201~q"
MEANT = [
    Key("text", "1"),
    Key("up"),
    Key("text", "j"),
    Key("enter"),
    Key("backspace"),
    Key("interrupt"),
    Key("clear"),
    Key("text", "ä"),
    Key("page down"),
    Key("paste", "4\n5"),
    Key("text", "q"),
]


def test_bytes_become_named_keys():
    assert keys(TYPED) == (MEANT, b"")


@given(st.lists(st.integers(0, len(TYPED)), max_size=6))
def test_however_the_bytes_are_cut_the_keys_are_the_same(cuts):
    edges = [0, *sorted(cuts), len(TYPED)]
    found, rest = [], b""
    for start, end in itertools.pairwise(edges):
        pressed, rest = keys(rest + TYPED[start:end])
        found += pressed

    assert (found, rest) == (MEANT, b"")


def test_a_lone_escape_is_the_escape_key_once_nothing_follows():
    assert keys(b"\x1b") == ([], b"\x1b")
    assert keys(b"\x1b", complete=True) == ([Key("escape")], b"")
    assert keys(b"\x1b\x1b") == ([Key("escape")], b"\x1b")


def test_a_byte_that_begins_no_character_costs_no_other_key():
    assert keys(b"\xff\x03q")[0] == [Key("interrupt"), Key("text", "q")]
    assert keys(b"\xf0\r12")[0] == [Key("enter"), Key("text", "1"), Key("text", "2")]
    assert keys(b"\xc3") == ([], b"\xc3")


def test_pasted_digits_are_no_keys():
    assert keys(b"\x1b[200~123\x1b[201~") == ([Key("paste", "123")], b"")


def test_of_a_long_paste_the_rest_is_dropped():
    found, rest = keys(b"\x1b[200~" + b"x" * (PASTE_BYTES + 1000) + b"\x1b[201~q")

    assert [len(key.text) for key in found] == [PASTE_BYTES, 1]
    assert rest == b""


@given(st.binary(max_size=200))
def test_any_bytes_end(data):
    _, rest = keys(data, complete=True)

    assert rest == b""
