"""The files of sessions: broken, held or forgotten, they cost what losing them costs, and they do not pile up."""

import os
import stat
from pathlib import Path

import pytest

from tests.services.bridges.agent import GOOD, SESSION, agent, text_of
from turngate.bridges import aging, toollog
from turngate.bridges.counting import Asked, Ledger
from turngate.bridges.files import LEDGER, SessionFiles
from turngate.bridges.places import Places
from turngate.bridges.toollog import ToolUse

NOW = 2_000_000_000.0


def written(directory: Path, ledger: Ledger) -> None:
    """Write a ledger down."""
    SessionFiles(directory).change(lambda _before, _seen: (ledger, None))


def test_a_shorter_ledger_leaves_nothing_of_a_longer_one(tmp_path):
    written(tmp_path, Ledger(turn=12, asked={"d" * 32: Asked(12, 1, "somebody")}))

    written(tmp_path, Ledger(turn=13))

    assert SessionFiles(tmp_path).load() == Ledger(turn=13)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b'{"turn": 3',
        b"\xff\x00",
        b"[" * 10_000,
        b'{"turn": "3"}',
        b'{"turn": -1}',
        b'{"turn": 99999999999}',
        b'{"turn": 3, "mark": -5}',
        b'{"turn": 3, "phase": "odd"}',
        b'{"turn": 3, "more": "' + b"x" * 300_000 + b'"}',
    ],
    ids=["empty", "torn", "bytes", "deep", "text", "negative", "too high", "mark", "phase", "too long"],
)
def test_a_ledger_that_can_not_be_begins_anew(tmp_path, data):
    (tmp_path / LEDGER).write_bytes(data)

    assert SessionFiles(tmp_path).load() == Ledger()


def test_a_lock_that_is_never_let_go_is_an_error_that_names_it(tmp_path, monkeypatch):
    monkeypatch.setattr(toollog, "LOCK_S", 0.02)

    with (
        toollog.locked(tmp_path),
        pytest.raises(OSError, match="does not let go") as held,
    ):
        SessionFiles(tmp_path).load()

    assert held.value.filename == tmp_path / toollog.LOCK


async def test_a_model_is_told_of_files_that_can_not_be_used_and_its_next_call_is_done(options, monkeypatch):
    monkeypatch.setattr(toollog, "LOCK_S", 0.02)
    directory = Places(options.agents).of_session(SESSION)

    async with agent(options) as one:
        with toollog.locked(directory):
            held = await one.call("Report", GOOD)
        (directory / LEDGER).mkdir()
        odd = await one.call("Report", GOOD)
        (directory / LEDGER).rmdir()
        verdict = await one.report(GOOD)

    assert (held.is_error, odd.is_error) == (True, True)
    assert f"{directory / toollog.LOCK}): another process holds this lock" in text_of(held)
    assert f"{directory / LEDGER}): Is a directory" in text_of(odd)
    assert (verdict["outcome"], verdict["attempt"]) == ("accepted", 1)


def test_nobody_else_sees_which_sessions_there_are(tmp_path):
    places = Places(tmp_path / "agents")
    places.of_session(SESSION)
    places.link(tmp_path, SESSION)

    made = [path for path in (tmp_path / "agents").rglob("*") if path.is_dir()]
    assert {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "agents", *made)} == {0o700}


def aged(places: Places, session: str, days: float) -> Path:
    """Make a session that was used last so many days before NOW."""
    directory = places.of_session(session)
    toollog.append(directory, ToolUse("Edit", mutated=True))
    for path in (*directory.iterdir(), directory):
        os.utime(path, (NOW, NOW - days * aging.DAY_S))
    return directory


@pytest.fixture
def places(tmp_path: Path) -> Places:
    """Where files were cleared up just now, so that nothing is before a test does it."""
    (tmp_path / aging.SWEPT).touch()
    return Places(tmp_path)


def swept(root: Path, now: float = NOW) -> None:
    """Clear up at a time."""
    os.utime(root / aging.SWEPT, (0, now - 2 * aging.DAY_S))
    aging.sweep(root, root / "sessions", root / "links", now)


def test_a_session_that_nobody_used_for_a_month_is_forgotten_and_its_links_with_it(places, tmp_path):
    old, young = aged(places, "old", 31), aged(places, "young", 29)
    places.link(tmp_path / "old", "old")
    places.link(tmp_path / "young", "young")

    swept(tmp_path)

    assert (old.exists(), young.exists()) == (False, True)
    assert (places.linked(tmp_path / "old"), places.linked(tmp_path / "young")) == ("", "young")


def test_one_file_that_was_just_written_keeps_a_session(places, tmp_path):
    directory = aged(places, "s", 100)
    os.utime(directory / toollog.LOG, (NOW, NOW))

    swept(tmp_path)

    assert directory.exists()


def test_of_very_many_sessions_the_oldest_are_forgotten_but_none_of_the_last_day(places, tmp_path, monkeypatch):
    monkeypatch.setattr(aging, "KEPT", 1)
    kept = [aged(places, "newest", 0.1), aged(places, "today", 0.5)]
    old = aged(places, "older", 2)

    swept(tmp_path)

    assert [path.exists() for path in kept] == [True, True]
    assert not old.exists()


def test_clearing_up_happens_once_a_day_when_a_session_is_new(tmp_path):
    places = Places(tmp_path)
    first = aged(places, "first", 20_000)
    places.of_session("second")
    not_yet = first.exists()

    os.utime(tmp_path / aging.SWEPT, (0, 0))
    places.of_session("second")
    known = first.exists()
    places.of_session("third")

    assert (not_yet, known, first.exists()) == (True, True, False)


def test_what_is_no_session_s_and_what_can_not_be_removed_stays(places, tmp_path):
    aged(places, "old", 31)
    (tmp_path / "sessions" / "note").write_text("mine")
    (tmp_path / "sessions" / "elsewhere").symlink_to(tmp_path)

    swept(tmp_path)

    assert sorted(path.name for path in (tmp_path / "sessions").iterdir()) == ["elsewhere", "note"]
