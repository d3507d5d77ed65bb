"""Targets: what people type and write into files. Keys of a terminal, scenarios, projects, settings."""

import argparse
from typing import Final

from tests.fuzz.target import check_sentence, directory
from turngate.cli.config import ConfigError, load
from turngate.cli.watching.keyboard import PASTE_BYTES, Key, keys
from turngate.conclusion.projects import ProjectFile, ProjectsUnreadable
from turngate.runner.adapters.scripted import ScriptedAdapter, tool_events
from turngate_contracts import codec
from turngate_contracts.errors import InvalidMessage

_TYPED: Final = "text"
_PASTED: Final = "paste"


def keyboard(data: bytes) -> None:
    """Keys are the same wherever reads break; typed text is one character that can be shown, pastes are bounded."""
    whole = _typed(data)
    half = len(data) // 2
    assert _typed(data[:half], data[half:]) == whole
    for key in whole:
        if key.name == _TYPED:
            assert len(key.text) == 1
            assert key.text >= " "
        elif key.name == _PASTED:
            assert len(key.text.encode()) <= PASTE_BYTES
        else:
            assert not key.text


def scenario(data: bytes) -> None:
    """A scenario file can be played from its first run to its last, or says what is wrong."""
    path = directory("scenario") / "scenario.yaml"
    path.write_bytes(data)
    try:
        adapter = ScriptedAdapter.from_file(path)
    except InvalidMessage as error:
        check_sentence(error.message)
        return
    for runs in adapter._scenarios.values():
        for step in (step for run in runs for step in run.values()):
            codec.encode(step)
            assert len(tool_events(step)) <= 2 * len(data) + 20_000


def projects(data: bytes) -> None:
    """Projects of a file can be sent, or the file says what is wrong."""
    path = directory("projects") / "projects.yaml"
    path.write_bytes(data)
    try:
        found = ProjectFile.read(path)
    except ProjectsUnreadable as error:
        check_sentence(error.message)
        return
    for place, project in found._projects.items():
        assert place.startswith("/")
        codec.encode(project)


def config(data: bytes) -> None:
    """A file of settings gives settings, or says which is wrong."""
    path = directory("config") / "turngate.yaml"
    path.write_bytes(data)
    try:
        load(argparse.Namespace(config=str(path)), {}, path.parent)
    except ConfigError as error:
        check_sentence(str(error))


def _typed(*pieces: bytes) -> list[Key]:
    found: list[Key] = []
    rest = b""
    for piece in pieces:
        more, rest = keys(rest + piece)
        found += more
    more, rest = keys(rest, complete=True)
    assert not rest
    return found + more
