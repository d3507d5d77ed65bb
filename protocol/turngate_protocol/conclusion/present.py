"""What the parent of a delegated task reads, and what the delegated agent is asked to write.

The rules come from the present section of the specification's conclusion page: one header line that holds
software-owned values alone, then pointers, not dumps. No text of a model can become a header or change one. Resolvers
are functions over answers that were asked for before; nothing is looked up here.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeAlias

from msgspec import Struct

from turngate_protocol.conclusion.model import Conclusion, RefState, StatAnswer, Task
from turngate_protocol.conclusion.parse import CLOSING_TAG, OPENING_TAG
from turngate_protocol.conclusion.refs import last_element, locate, target
from turngate_protocol.text import is_blank, trim

Resolver: TypeAlias = Callable[[str], str]
"""Turns a ref into what the parent is shown; returns what it does not know unchanged."""

_HEADER: Final = "[delegated-result"
_UNKNOWN: Final = "unknown"
_NOT_IN_A_HEADER: Final = frozenset("[]=")
_BREAKS: Final = r"\n\r\v\f\x1c-\x1e\x85\u2028\u2029"
_FORGED_HEADER = re.compile(rf"([{_BREAKS}][^\S{_BREAKS}]*)\[delegated-result")
_KB: Final = 1024


class Resolvers(Struct, frozen=True):
    """How refs are shown; without a resolver a list is joined by commas on its line."""

    artifacts: Resolver | None = None
    memory: Resolver | None = None


def format_for_parent(task: Task | None, conclusion: Conclusion | None, resolvers: Resolvers | None = None) -> str:
    """Return the message that tells the parent how `task` ended.

    Args:
        task: The task that ended, with its project filled in.
        conclusion: What it ended with; None when nothing was captured.
        resolvers: How artifacts and memory refs are shown.
    """
    if task is None:
        return f"{_HEADER}] (no task)"
    header = f"{_HEADER} task={_fit(task.id)} engine={_fit(task.engine)} project={_project_label(task)}"
    if conclusion is None:
        return f"{header} status={_fit(task.status)}] (no conclusion captured)"
    confidence = f" confidence={conclusion.confidence:.2f}" if conclusion.confidence > 0 else ""
    resolvers = resolvers or Resolvers()
    body = [
        *_line("summary", conclusion.summary),
        *_line("follow_up", conclusion.follow_up),
        *_list("artifacts", conclusion.artifacts, resolvers.artifacts),
        *_list("memory_refs", conclusion.memory_refs, resolvers.memory),
        *_list("warnings", conclusion.warnings),
    ]
    text = "\n".join(["", *body])
    if _HEADER in text:
        text = _FORGED_HEADER.sub(r"\1\\[delegated-result", text)
    return f"{header} status={_fit(conclusion.status)}{confidence}]{text}"


def artifact_resolver(answers: Mapping[str, StatAnswer], base_dir: str = "", *, locations: bool = True) -> Resolver:
    """Return a resolver that appends the size of a file, or `(missing)`, to an artifact.

    A ref that no answer is about, whose answer has no size, or that is relative without `base_dir`, stays as it is.

    Args:
        answers: What the runner's host says, by path, as `refs_to_check` gave it.
        base_dir: Where relative artifacts start.
        locations: Whether `path:12` is shown with what is known about the file.
    """

    def resolve(ref: str) -> str:
        if is_blank(ref):
            return ref
        path = locate(ref, base_dir)
        answer = answers.get(path) if path is not None else None
        if answer is not None and answer.state == RefState.MISSING:
            where = target(ref, base_dir, locations=locations)
            answer = answers.get(where.file) if where is not None and where.file else answer
        if answer is None or answer.state == RefState.UNCHECKABLE:
            return ref
        if answer.state == RefState.MISSING:
            return f"{ref} (missing)"
        return ref if answer.size is None else f"{ref} ({_size(answer.size)})"

    return resolve


def memory_resolver(answers: Mapping[str, RefState]) -> Resolver:
    """Return a resolver that appends `(missing)` to a memory ref that its validator does not know."""
    return lambda ref: f"{ref} (missing)" if answers.get(ref) == RefState.MISSING else ref


def brief_instruction() -> str:
    """Return the text that the prompt of a delegated agent ends with: it asks for one block, last, and shows it."""
    return _BRIEF


def _line(label: str, text: str) -> Iterable[str]:
    text = trim(text)
    return [f"{label}: {text}"] if text else []


def _list(label: str, entries: Iterable[str], resolve: Resolver | None = None) -> Iterable[str]:
    entries = [entry for entry in map(trim, entries) if entry]
    if not entries:
        return []
    if resolve is None:
        return [f"{label}: {', '.join(entries)}"]
    return [f"{label}:", *(f"  - {resolve(entry)}" for entry in entries)]


def _fit(value: str) -> str:
    """Return `value` without what could end the header, start a line or pass for another of its fields."""
    if value.isalnum():
        return value
    return "".join(c for c in trim(value) if c not in _NOT_IN_A_HEADER and c.isprintable())


def _project_label(task: Task) -> str:
    for name in (task.project_name, *(map(_name_of, (task.project_path, task.work_dir)))):
        fitting = _fit(name)
        if fitting:
            return fitting
    return _UNKNOWN


def _name_of(path: str) -> str:
    return "" if is_blank(path) else last_element(trim(path))


def _size(size: int) -> str:
    if size < _KB:
        return f"{size} B"
    return f"{size / _KB:.1f} KB" if size < _KB * _KB else f"{size / (_KB * _KB):.1f} MB"


_BRIEF: Final = f"""\
When everything is done, write this block once, as the very last thing of your answer and outside of any code fence:

{OPENING_TAG}
status: success | partial | failed | blocked
summary: |
  two to five sentences: what you did and what came of it
artifacts:
  - path/of/a/file/that/you/made/or/changed
memory_refs:
  - key/of/a/memory/entry/that/you/wrote
follow_up: what is left to do, or nothing
confidence: 0.0
{CLOSING_TAG}

The inside is YAML. Choose one status; success means that all of it is done. Cite only files and memory entries that
exist: they are looked up, and a success that cites something missing counts as partial. Put text with colons, quotes or
several lines behind `|`. Confidence runs from 0 to 1. Leave out a field that has nothing to say, and add no others: the
software knows the rest.
"""
