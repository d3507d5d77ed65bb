"""What an agent did with its tools, counted from its events and never from what it says.

A call is counted once per id, by whichever of its events comes first; an event without an id counts every time, because
nothing tells two of them apart. An id that failed once has failed for good, whatever a later event of it says. Two
adapters that feed the same events get the same evidence. Nothing here judges it.
"""

from typing import Final

from msgspec import Struct

_CALLS: Final = frozenset({"tool_call", "tool_execution_start"})
_RESULTS: Final = frozenset({"tool_result", "tool_execution_end"})


class ToolEvent(Struct, frozen=True):
    """One event of a running agent.

    Attributes:
        type: `tool_call`, `tool_execution_start`, `tool_result`, `tool_execution_end`; anything else is no tool event.
        id: the id of the tool call, empty when the agent gives none.
        name: the tool, empty when the event does not say.
        error: whether the event reports a failure.
    """

    type: str
    id: str = ""
    name: str = ""
    error: bool = False


class Evidence(Struct, frozen=True, omit_defaults=True):
    """The tool calls of one role run.

    Attributes:
        tool_calls: how many there were.
        tool_names: how often each tool was called, as far as events named one.
        tool_errors: how many distinct calls failed.
    """

    tool_calls: int = 0
    tool_names: dict[str, int] = {}
    tool_errors: int = 0


class EvidenceTracker:
    """Counts the tool events of one role run; not shared between runs."""

    def __init__(self) -> None:
        self._calls = 0
        self._names: dict[str, int] = {}
        self._seen: set[str] = set()
        self._failed: set[str] = set()

    def observe(self, event: ToolEvent) -> None:
        """Take in one event, in whatever order they come."""
        if event.type in _CALLS:
            self._count(event)
        elif event.type in _RESULTS and event.error and event.id:
            self._failed.add(event.id)

    def summary(self) -> Evidence:
        """Return what was counted so far."""
        return Evidence(self._calls, dict(self._names), len(self._failed))

    def _count(self, event: ToolEvent) -> None:
        if event.id:
            if event.id in self._seen:
                return
            self._seen.add(event.id)
        self._calls += 1
        if event.name:
            self._names[event.name] = self._names.get(event.name, 0) + 1
