"""The scripted adapter: agents that do what a scenario says, for demos, tests and trying things out.

A scenario lists runs, and for each run what every role does. Which run it is comes from the run's own id, so that any
number of hosts, restarted at any time, play the same scenario. The last run repeats for ever. In YAML:

    my-session:                 # by session; a name that ends in * stands for all that begin so; else `default`
      - worker: {response: {status: continue, summary: half done, evidence: [make test]}, tools: [bash, edit]}
      - worker: {response: {status: complete_candidate, summary: done, evidence: [make test]}, tools: 2, delay_ms: 500}
        critic: {response: {verdict: pass, ...}, tools: [read]}
        audit: {failure: incomplete}
"""

import asyncio
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct

from turngate.runner.adapters.base import RoleContext, RoleResult, failed
from turngate_contracts import codec
from turngate_contracts.errors import InvalidMessage
from turngate_protocol.esm.classify import FailureKind
from turngate_protocol.esm.evidence import ToolEvent
from turngate_protocol.esm.objective import Role
from turngate_protocol.esm.roles import RoleRequest
from turngate_protocol.text import visible

DEFAULT: Final = "default"
"""The name of the scenario of sessions that have none of their own."""
MOST_TOOLS: Final = 10_000
"""Most tool calls of one role in one run."""
_PROBLEM_MAX: Final = 200
_NUMBER: Final = re.compile(r"-([0-9]{1,9})\Z", re.ASCII)


class ScriptedTool(Struct, frozen=True, forbid_unknown_fields=True):
    """One tool call of a scripted agent."""

    name: str = "tool"
    id: str = ""
    error: bool = False


class ScriptedFailure(Struct, frozen=True, forbid_unknown_fields=True):
    """How a scripted agent fails."""

    kind: FailureKind = FailureKind.ERROR
    message: str = "the scenario says so"


class ScriptedRole(Struct, frozen=True, forbid_unknown_fields=True):
    """What one role does in one run.

    Attributes:
        response: its final answer: a text as it is, or anything else as JSON.
        tools: its tool calls: how many, or each by name, or each with `name`, `id` and `error`.
        progress: lines that it says, spread over its time; one that hangs says them first.
        tokens: what it used.
        delay_ms: how long it takes.
        duration_ms: how long it says that it took, where that is not so.
        failure: how it fails: a kind, or `kind` and `message`.
        hangs: whether it does not end before it is stopped, whatever its time.
    """

    response: Any = ""
    tools: Annotated[int, Meta(ge=0, le=MOST_TOOLS)] | tuple[str | ScriptedTool, ...] = ()
    progress: tuple[str, ...] = ()
    tokens: int = 0
    delay_ms: int = 0
    duration_ms: int | None = None
    failure: FailureKind | ScriptedFailure | None = None
    hangs: bool = False


Scenario = tuple[dict[Role, ScriptedRole], ...]
"""What every role does, run by run."""


class ScriptedAdapter:
    """Plays scenarios.

    Args:
        scenarios: by session, `NAME*` or `default`; plain values as YAML has them, or Structs.

    Raises:
        InvalidMessage: a scenario is none; the error says where and why.
    """

    def __init__(self, scenarios: Mapping[str, Any]) -> None:
        try:
            self._scenarios: dict[str, Scenario] = msgspec.convert(dict(scenarios), dict[str, Scenario])
            # What can't be sent is told now, and not in the run that says it.
            codec.encode(self._scenarios)
        except (msgspec.MsgspecError, ValueError, TypeError, OverflowError, RecursionError) as error:
            reason = codec.reason_of(error)
            raise InvalidMessage(f"the scenario can't be played: {reason}", reason=reason) from None

    @classmethod
    def from_yaml(cls, text: str) -> "ScriptedAdapter":
        """Read scenarios from YAML.

        Raises:
            InvalidMessage: the text is no YAML, or no scenarios.
        """
        import yaml

        try:
            loaded = yaml.safe_load(text)
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None)
            where = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
            problem = visible(getattr(error, "problem", None) or type(error).__name__)
            raise InvalidMessage(f"the scenario is not YAML{where}: {problem[:_PROBLEM_MAX]}") from None
        except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError) as error:
            # PyYAML lets through whatever converting a value raises: of `!!bool x`, or of 2026-13-45.
            raise InvalidMessage(f"the scenario holds a value that can't be read ({type(error).__name__})") from None
        if not isinstance(loaded, dict):
            raise InvalidMessage("a scenario file maps sessions, or `default`, to lists of runs")
        return cls(loaded)

    @classmethod
    def from_file(cls, path: Path) -> "ScriptedAdapter":
        """Read scenarios from a YAML file; raises as `from_yaml`, and OSError."""
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            raise InvalidMessage(f"the scenario {path} is not UTF-8; save it as UTF-8") from None
        return cls.from_yaml(text)

    async def run(self, request: RoleRequest, context: RoleContext) -> RoleResult:
        """Do what the scenario says of this role in this run."""
        step = self.step_of(request)
        if step is None:
            return failed(f"the scenario of {request.session_id} says nothing of a {request.role.value} in this run")
        for event in tool_events(step):
            context.tool_event(event)
        await _spend(step, context)
        if context.cancelled.is_set():
            return RoleResult(tokens=step.tokens, failure=FailureKind.CANCELLED, message="stopped")
        failure = step.failure
        if isinstance(failure, FailureKind):
            failure = ScriptedFailure(failure)
        text = step.response if isinstance(step.response, str) else codec.encode(step.response).decode()
        if failure is not None:
            return RoleResult(text, step.tokens, failure.kind, failure.message, step.duration_ms)
        return RoleResult(text, step.tokens, duration_ms=step.duration_ms)

    def step_of(self, request: RoleRequest) -> ScriptedRole | None:
        """Return what the scenario says of a role run, None when it says nothing."""
        runs = self._scenario(request.session_id)
        if not runs:
            return None
        number = _NUMBER.search(request.base_run_id)
        index = int(number[1]) if number else 1
        return runs[min(max(index, 1), len(runs)) - 1].get(request.role)

    def _scenario(self, session: str) -> Scenario:
        exact = self._scenarios.get(session)
        if exact is not None:
            return exact
        for name, scenario in self._scenarios.items():
            if name.endswith("*") and session.startswith(name[:-1]):
                return scenario
        return self._scenarios.get(DEFAULT, ())


def tool_events(step: ScriptedRole) -> list[ToolEvent]:
    """Return the tool events of a scripted role."""
    tools = step.tools
    if isinstance(tools, int):
        tools = tuple(ScriptedTool() for _ in range(tools))
    events = []
    for number, given in enumerate(tools, 1):
        tool = ScriptedTool(given) if isinstance(given, str) else given
        call = tool.id or f"call-{number}"
        events.append(ToolEvent("tool_call", call, tool.name))
        events.append(ToolEvent("tool_result", call, tool.name, tool.error))
    return events


async def _spend(step: ScriptedRole, context: RoleContext) -> None:
    """Let the time of a scripted role pass, or stop early when it is told to."""
    lines = step.progress or ("",)
    for line in lines:
        if line:
            context.progress(line)
        if step.delay_ms and await _stopped(context, step.delay_ms / 1000 / len(lines)):
            return
    if step.hangs:
        await context.cancelled.wait()


async def _stopped(context: RoleContext, seconds: float) -> bool:
    """Wait for so long, and say whether it was stopped meanwhile."""
    try:
        async with asyncio.timeout(seconds):
            await context.cancelled.wait()
    except TimeoutError:
        return False
    return True
