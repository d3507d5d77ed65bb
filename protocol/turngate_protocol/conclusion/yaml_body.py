"""The body of a conclusion block, read as YAML: six fields, scalars as they were written, hostile input refused.

The rules come from the specification's conclusion page and follow the Go YAML decoder that the vectors were made with:
only the first document counts, keys may not repeat, `yes`, `007` and dates stay texts, null is no value, a list where a
text is expected is an error. No object is ever built from a tag. The body is read as a stream of parser events, so that
depth, nodes and aliases are counted while it is read, and reading stops at the first limit; aliases are followed, never
copied.

libyaml does the parsing where PyYAML has it. The pure parser takes over elsewhere, an order of magnitude slower, and
differs in two corners: a tab that separates (`status:<tab>success`) makes the body unusable, and an unknown `%`
directive does not.
"""

from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeAlias

import yaml
from yaml.events import (
    AliasEvent,
    DocumentEndEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
)

from turngate_protocol.conclusion.yaml_scalar import TAG_PREFIX, NotStructured, scalar_number, scalar_text

try:
    from yaml._yaml import CParser
except ImportError:  # pragma: no cover  PyYAML was built without libyaml
    CParser = None  # type: ignore[assignment,misc]

MAX_BODY_CHARS: Final = 256 * 1024
MAX_DEPTH: Final = 100
MAX_NODES: Final = 20_000
MAX_ALIASES: Final = 100
# libyaml compares each %TAG directive with all before it.
MAX_TAG_DIRECTIVES: Final = 16

_MERGE: Final = "<<"
# libyaml drops a byte order mark at the start of any line, and then counts columns from behind it; the decoder that the
# rules come from keeps it. A stand-in that nobody writes gets it past libyaml.
_BOM: Final = "\ufeff"
_BOM_STAND_IN: Final = "\U0010fffd"


class Body(NamedTuple):
    """The six fields as they were written; a field that is absent or null has its zero value."""

    status: str = ""
    summary: str = ""
    artifacts: tuple[str, ...] = ()
    memory_refs: tuple[str, ...] = ()
    follow_up: str = ""
    confidence: float = 0.0


class _Sequence(list[Any]):
    """The nodes of a YAML sequence."""


class _Mapping(list[Any]):
    """The nodes of a YAML mapping: key, value, key, value."""


# An alias is its target: a scalar, sequence or mapping that has already been read, or is being read.
_Node: TypeAlias = ScalarEvent | _Sequence | _Mapping


def load(body: str, *, pure: bool = False) -> Body:
    """Return the fields of the first YAML document of `body`.

    Args:
        body: What stands between the tags.
        pure: Use the pure Python parser although libyaml is there.

    Raises:
        NotStructured: The body is not YAML, not a mapping, has a field of another type, or is over a limit.
    """
    parser: Any
    if len(body) > MAX_BODY_CHARS:
        raise NotStructured(f"it is longer than {MAX_BODY_CHARS} characters")
    if body.count("%TAG") > MAX_TAG_DIRECTIVES:
        raise NotStructured(f"it has more than {MAX_TAG_DIRECTIVES} tag directives")
    if body.find(_BOM, 1) > 0:
        if _BOM_STAND_IN in body:
            raise NotStructured("it holds characters that this reader keeps for itself")
        body = body[0] + body[1:].replace(_BOM, _BOM_STAND_IN)
    try:
        parser = yaml.SafeLoader(body) if pure or CParser is None else CParser(body)
        root = _compose(parser.get_event)
        return Body() if root is None else _Reader(len(body)).read(root)
    except yaml.MarkedYAMLError as error:
        line = f" at line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise NotStructured(f"{error.problem or 'it is not YAML'}{line}") from None
    except (yaml.YAMLError, ValueError, OverflowError):
        raise NotStructured("it holds characters that YAML does not allow") from None


def _compose(next_event: Callable[[], Any]) -> _Node | None:
    """Read one document; the nodes share what is aliased, so that they never outgrow the body."""
    anchors: dict[str, _Node] = {}
    root = _Sequence()
    stack: list[list[Any]] = [root]
    aliases = nodes = 0
    node: Any
    while True:
        event = next_event()
        kind = type(event)
        if kind is ScalarEvent:
            node = event
            stack[-1].append(node)
        elif kind is AliasEvent:
            aliases += 1
            if event.anchor not in anchors:
                raise NotStructured("it has an alias without an anchor")
            if aliases > MAX_ALIASES:
                raise NotStructured(f"it has more than {MAX_ALIASES} aliases")
            stack[-1].append(anchors[event.anchor])
            continue
        elif kind is MappingStartEvent or kind is SequenceStartEvent:
            node = _Mapping() if kind is MappingStartEvent else _Sequence()
            stack[-1].append(node)
            stack.append(node)
            if len(stack) > MAX_DEPTH:
                raise NotStructured(f"it is nested deeper than {MAX_DEPTH} levels")
        elif kind is MappingEndEvent or kind is SequenceEndEvent:
            stack.pop()
            continue
        elif kind is DocumentEndEvent or kind is StreamEndEvent:
            return root[0] if root else None
        else:
            continue
        nodes += 1
        if nodes > MAX_NODES:
            raise NotStructured(f"it has more than {MAX_NODES} values")
        if event.anchor is not None:
            anchors[event.anchor] = node


class _Reader:
    """Turns the nodes of one body into its fields, and counts what following aliases costs."""

    __slots__ = ("_chars_left", "_merging", "_steps_left", "_values")

    def __init__(self, size: int) -> None:
        # Without aliases no text is longer than what it was written in: more text than the body is an expansion.
        self._chars_left = size
        self._steps_left = MAX_NODES
        self._merging: list[_Mapping] = []
        self._values: dict[str, Any] = {}

    def read(self, root: _Node) -> Body:
        if isinstance(root, _Mapping):
            self._mapping(root, taken=set())
        elif not isinstance(root, ScalarEvent) or self._text(root) is not None:
            raise NotStructured("it is not a mapping")
        return Body(**self._values)

    def _mapping(self, mapping: _Mapping, taken: set[str]) -> None:
        """Take the fields of `mapping` that are not in `taken`, then those that it merges in."""
        merged: _Node | None = None
        seen: set[str] = set()
        self._steps_left -= len(mapping)
        if self._steps_left < 0:
            raise NotStructured("its merge keys repeat too much")
        for i in range(0, len(mapping), 2):
            key, value = mapping[i], mapping[i + 1]
            if not isinstance(key, ScalarEvent):
                raise NotStructured("it has a key that is not a text")
            if key.value in seen:
                raise NotStructured("it has a key twice")
            seen.add(key.value)
            if key.value == _MERGE and _is_merge(key):
                merged = value
                continue
            name = scalar_text(key)
            if name is None or name in taken:
                continue
            taken.add(name)
            read = _FIELDS.get(name)
            if read is not None:
                found = read(self, value)
                if found is not None:
                    self._values[name] = found
        if merged is not None:
            self._merge(mapping, merged, taken)

    def _merge(self, into: _Mapping, merged: _Node, taken: set[str]) -> None:
        if any(into is outer for outer in self._merging):
            raise NotStructured("it merges a mapping into itself")
        self._merging.append(into)
        for each in merged if isinstance(merged, _Sequence) else [merged]:
            if not isinstance(each, _Mapping):
                raise NotStructured("it merges what is not a mapping")
            self._mapping(each, taken)
        self._merging.pop()

    def _text(self, node: _Node) -> str | None:
        """Return the text of a scalar as it was written; None for null."""
        if not isinstance(node, ScalarEvent):
            raise NotStructured("a list or mapping stands where a text is expected")
        text = scalar_text(node)
        if text is None:
            return None
        if not text.isascii():
            text = text.replace(_BOM_STAND_IN, _BOM)
        self._chars_left -= len(text)
        if self._chars_left < 0:
            raise NotStructured("its aliases repeat more text than it holds")
        return text

    def _texts(self, node: _Node) -> tuple[str, ...] | None:
        """Return the texts of a sequence, without its nulls; None for null."""
        if isinstance(node, _Sequence):
            return tuple(text for text in map(self._text, node) if text is not None)
        if not isinstance(node, ScalarEvent) or self._text(node) is not None:
            raise NotStructured("a text or mapping stands where a list is expected")
        return None

    def _number(self, node: _Node) -> float | None:
        """Return the number that a scalar stands for; None for null."""
        if not isinstance(node, ScalarEvent):
            raise NotStructured("a list or mapping stands where a number is expected")
        return scalar_number(node)


_FIELDS: Final[dict[str, Callable[[_Reader, Any], Any]]] = {
    "status": _Reader._text,
    "summary": _Reader._text,
    "artifacts": _Reader._texts,
    "memory_refs": _Reader._texts,
    "follow_up": _Reader._text,
    "confidence": _Reader._number,
}


def _is_merge(key: ScalarEvent) -> bool:
    return not key.style if key.tag in {None, "!"} else key.tag == f"{TAG_PREFIX}merge"
