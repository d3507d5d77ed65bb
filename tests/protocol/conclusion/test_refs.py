"""Which artifacts are local paths, and where they point."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turngate_protocol.conclusion.refs import Target, clean, last_element, target


@pytest.mark.parametrize(
    "ref",
    [
        "",
        "  ",
        "https://e.x/y",
        "file:///a",
        "git@h:o/r",
        "*.py",
        "a?b",
        "a[0]",
        "two words",
        "tab\tbed",
        "see a.txt:12",
    ],
)
def test_what_is_no_local_path_can_not_be_checked(ref: str):
    assert target(ref, "/base") is None


@pytest.mark.parametrize(
    ("ref", "path"),
    [
        ("a.txt", "/base/a.txt"),
        (" a.txt\n", "/base/a.txt"),
        ("./a//b/../c/", "/base/a/c"),
        ("../x", "/x"),
        ("/abs/../as/it/is/", "/abs/../as/it/is/"),
        ("gita@h", "/base/gita@h"),
        ("a\u3000b", "/base/a\u3000b"),
        ("a\x00b", "/base/a\x00b"),
    ],
)
def test_a_relative_path_is_cleaned_under_the_base_and_an_absolute_one_stays(ref: str, path: str):
    assert target(ref, "/base") == Target(path)


@pytest.mark.parametrize("base_dir", ["", " "])
def test_without_a_base_only_absolute_paths_can_be_checked(base_dir: str):
    assert target("a.txt", base_dir) is None
    assert target("/a.txt", base_dir) == Target("/a.txt")


@pytest.mark.parametrize("suffix", [":12", ":12:5", ":12-20", "#L10", "#L10-L20", "#L10-20", "#L10C3-L20C7", "#L1C2"])
def test_a_line_number_names_the_file_as_well(suffix: str):
    assert target(f"src/a.py{suffix}", "/base") == Target(f"/base/src/a.py{suffix}", "/base/src/a.py")
    assert target(f"/abs/a.py{suffix}") == Target(f"/abs/a.py{suffix}", "/abs/a.py")


@pytest.mark.parametrize("ref", ["a.py:", "a.py:x", "a.py#10", "a.py:12:", ":12", "#L3", "a.py:١", "a.py:1234567890"])
def test_what_is_no_line_number_belongs_to_the_name(ref: str):
    found = target(ref, "/base")

    assert found is not None
    assert found.file == ""


def test_line_numbers_count_only_when_asked_for():
    assert target("a.py:12", "/base", locations=False) == Target("/base/a.py:12")


@pytest.mark.parametrize(
    ("path", "cleaned"),
    [("", "."), ("/", "/"), ("//x//", "/x"), ("a/..", "."), ("a/../..", ".."), ("../../a", "../../a"), ("/../a", "/a")],
)
def test_a_path_is_cleaned_by_text_alone(path: str, cleaned: str):
    assert clean(path) == cleaned


@given(path=st.text(alphabet="/.ab", max_size=20))
def test_cleaning_twice_changes_nothing(path: str):
    assert clean(clean(path)) == clean(path)


@pytest.mark.parametrize(
    ("path", "last"),
    [("", "."), ("/", "/"), ("///", "/"), ("/a/b", "b"), ("/a/b/", "b"), ("x", "x"), ("..", ".."), (" ", " ")],
)
def test_the_last_element_of_a_path(path: str, last: str):
    assert last_element(path) == last
