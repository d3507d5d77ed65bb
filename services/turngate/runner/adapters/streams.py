"""What a command line agent prints, read: its final answer, the tools it used, the tokens it took.

Each reader takes lines and says what they mean; it starts nothing. `plain` takes the whole output as the answer. The
others read newline-delimited JSON events: `events` our own minimal form, and the documented streams of Claude Code
(`--output-format stream-json`), Codex (`exec --json`) and opencode (`run --format json`). A line that is no event is
passed over, because agents mix log lines in; fields that are missing are empty; nothing that is printed can raise.
"""

from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec
from msgspec import Struct

from turngate_protocol.esm.classify import FailureKind
from turngate_protocol.esm.evidence import ToolEvent

Said = ToolEvent | str
"""What a line says: a tool event, or a line of progress for people."""

PROGRESS_MAX: Final = 200
"""Longest line of progress, in characters."""

_decode = msgspec.json.Decoder().decode


class Ended(Struct, frozen=True):
    """What the output amounts to; `failure` is None where the agent says that it finished."""

    response: str
    tokens: int = 0
    failure: FailureKind | None = None
    message: str = ""


class Reader:
    """Reads the output of one agent run. The base is `plain`: the text as it is."""

    def __init__(self) -> None:
        self._lines: list[str] = []

    def feed(self, line: bytes) -> Iterator[Said]:
        """Take in one line without its line break, and yield what it says."""
        self._lines.append(line.decode("utf-8", "replace"))
        yield from ()

    def end(self) -> Ended:
        """Return what the output amounts to."""
        return Ended("\n".join(self._lines).strip())


class _EventReader(Reader):
    """Reads JSON events; what is no JSON object is passed over."""

    def __init__(self) -> None:
        super().__init__()
        self.text = ""
        self.tokens = 0
        self.finished = False
        self.failure: FailureKind | None = None
        self.message = ""

    def feed(self, line: bytes) -> Iterator[Said]:
        try:
            event = _decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return
        if isinstance(event, dict):
            yield from self.on_event(event)

    def on_event(self, event: dict[str, Any]) -> Iterator[Said]:
        """Take in one event."""
        raise NotImplementedError

    def end(self) -> Ended:
        if self.failure is None and not self.finished:
            return Ended(self.text, self.tokens, FailureKind.INCOMPLETE, "its event stream broke off before its end")
        return Ended(self.text, self.tokens, self.failure, self.message)

    def fail(self, message: str, kind: FailureKind = FailureKind.ERROR) -> None:
        """Note that the agent says it failed; the first failure counts."""
        if self.failure is None:
            self.failure, self.message = kind, message or "the agent gave no reason"


class EventsReader(_EventReader):
    """Our own form, for agents of your own.

    `{"type": "tool_call", "id", "name"}`, `{"type": "tool_result", "id", "error"}`, `{"type": "progress", "text"}`, and
    at last `{"type": "result", "text", "tokens"}` or `{"type": "error", "message"}`.
    """

    def on_event(self, event: dict[str, Any]) -> Iterator[Said]:
        """Take in one event."""
        kind = _text(event, "type")
        if kind in ("tool_call", "tool_result"):
            yield ToolEvent(kind, _text(event, "id"), _text(event, "name"), event.get("error") is True)
        elif kind == "progress":
            yield _progress(_text(event, "text"))
        elif kind == "result":
            self.text, self.finished = _text(event, "text"), True
            self.tokens = _number(event, "tokens")
        elif kind == "error":
            self.fail(_text(event, "message"))


class ClaudeReader(_EventReader):
    """Claude Code: `claude -p --verbose --output-format stream-json`."""

    _USED: Final = ("input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")

    def __init__(self) -> None:
        super().__init__()
        self._used: dict[str, int] = {}

    def on_event(self, event: dict[str, Any]) -> Iterator[Said]:
        """Take in one event."""
        kind = _text(event, "type")
        if kind == "result":
            self._on_result(event)
            return
        if kind not in ("assistant", "user"):
            return
        message = _dict(event, "message")
        self._count(message)
        for part in _list(message, "content"):
            what = _text(part, "type")
            if what == "tool_use":
                yield ToolEvent("tool_call", _text(part, "id"), _text(part, "name"))
            elif what == "tool_result":
                yield ToolEvent("tool_result", _text(part, "tool_use_id"), error=part.get("is_error") is True)
            elif what == "text" and kind == "assistant":
                self.text = _text(part, "text")
                yield _progress(self.text)

    def _count(self, message: dict[str, Any]) -> None:
        """Count what a message took, once for all its parts: a run that is stopped tells no total."""
        usage, name = _dict(message, "usage"), _text(message, "id")
        used = sum(_number(usage, each) for each in self._USED)
        before = self._used.get(name, 0)
        if used > before:
            self._used[name] = used
            self.tokens += used - before

    def _on_result(self, event: dict[str, Any]) -> None:
        usage = _dict(event, "usage")
        self.tokens = sum(_number(usage, name) for name in self._USED) or self.tokens
        self.finished = True
        subtype = _text(event, "subtype")
        if event.get("is_error") is True or subtype.startswith("error"):
            # Running out of turns is stopping before it had finished, not a mistake.
            kind = FailureKind.INCOMPLETE if "max_turns" in subtype else FailureKind.ERROR
            self.fail(_text(event, "result") or subtype, kind)
        else:
            self.text = _text(event, "result") or self.text


class CodexReader(_EventReader):
    """Codex: `codex exec --json`.

    It tells of a broken stream with an error too, connects again and goes on: only where no turn is completed after an
    error has the run failed of it.
    """

    _TOOLS: Final = ("command_execution", "file_change", "mcp_tool_call", "web_search", "collab_tool_call")

    def __init__(self) -> None:
        super().__init__()
        self._trouble = ""

    def end(self) -> Ended:
        """Return what the output amounts to."""
        if self._trouble:
            self.fail(self._trouble)
        return super().end()

    def on_event(self, event: dict[str, Any]) -> Iterator[Said]:
        """Take in one event."""
        kind, item = _text(event, "type"), _dict(event, "item")
        what = _text(item, "type")
        if kind == "turn.completed":
            usage = _dict(event, "usage")
            self.tokens += _number(usage, "input_tokens") + _number(usage, "output_tokens")
            self.finished, self._trouble = True, ""
        elif kind == "turn.failed":
            self.fail(_text(_dict(event, "error"), "message"))
        elif kind == "error":
            self._trouble = _text(event, "message") or "it told of an error"
            yield _progress(self._trouble)
        elif what in self._TOOLS and kind in ("item.started", "item.completed"):
            name = _text(item, "tool") or what
            # Some items have no start of their own: the completed one counts the call, once per id.
            yield ToolEvent("tool_call", _text(item, "id"), name)
            if kind == "item.completed":
                yield ToolEvent("tool_result", _text(item, "id"), name, _codex_failed(item))
        elif what == "agent_message" and kind == "item.completed":
            self.text = _text(item, "text")
            yield _progress(self.text)


class OpencodeReader(_EventReader):
    """opencode: `opencode run --format json`."""

    def on_event(self, event: dict[str, Any]) -> Iterator[Said]:
        """Take in one event."""
        kind, part = _text(event, "type"), _dict(event, "part")
        if kind == "tool_use":
            status = _text(_dict(part, "state"), "status")
            call, name = _text(part, "callID"), _text(part, "tool")
            yield ToolEvent("tool_call", call, name)
            if status in ("completed", "error"):
                yield ToolEvent("tool_result", call, name, status == "error")
        elif kind == "text":
            self.text = _text(part, "text")
            yield _progress(self.text)
        elif kind == "step_finish":
            tokens = _dict(part, "tokens")
            self.tokens += sum(_number(tokens, name) for name in ("input", "output", "reasoning"))
            self.finished = _text(part, "reason") != "tool-calls"
        elif kind == "error":
            error = _dict(event, "error")
            self.fail(_text(_dict(error, "data"), "message") or _text(error, "message") or _text(error, "name"))


READERS: Final[dict[str, Callable[[], Reader]]] = {
    "plain": Reader,
    "events": EventsReader,
    "claude": ClaudeReader,
    "codex": CodexReader,
    "opencode": OpencodeReader,
}
"""What `--output` of `turngate runner` takes."""


def _codex_failed(item: dict[str, Any]) -> bool:
    code = item.get("exit_code")
    return _text(item, "status") in ("failed", "declined") or (type(code) is int and code != 0)


def _progress(text: str) -> str:
    first = text.strip().partition("\n")[0]
    return first if len(first) <= PROGRESS_MAX else f"{first[: PROGRESS_MAX - 1]}…"


def _text(value: dict[str, Any], name: str) -> str:
    found = value.get(name)
    return found if isinstance(found, str) else ""


def _number(value: dict[str, Any], name: str) -> int:
    found = value.get(name)
    return found if type(found) is int and found > 0 else 0


def _dict(value: dict[str, Any], name: str) -> dict[str, Any]:
    found = value.get(name)
    return found if isinstance(found, dict) else {}


def _list(value: dict[str, Any], name: str) -> list[dict[str, Any]]:
    found = value.get(name)
    return [part for part in found if isinstance(part, dict)] if isinstance(found, list) else []
