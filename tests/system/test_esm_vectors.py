"""The vectors of whole continuations on the running service: a real server, a supervisor, hosts with scripted agents.

What a vector does to the objective from outside (`setup`, `pre`, `during`) is put into the bucket as the vectors mean
it: as transitions of the objective, which fence nothing and start nothing. Everything else is the service's: it starts
the run under the vector's name, offers its roles, takes claims and results, and judges them.
"""

import asyncio
import json
from pathlib import Path
from typing import Any, Final

import pytest
from msgspec.structs import replace

from tests.supervised import Supervised, supervising
from tests.vectors.esm import FAILURES, Host, same
from turngate.jetstream.embedded import EmbeddedServer
from turngate.jetstream.store import Conflict, Event
from turngate.runner.adapters.base import RoleContext, RoleResult
from turngate.runner.objectives import Objectives
from turngate_contracts import codec
from turngate_contracts.errors import Refusal
from turngate_contracts.ids import is_id
from turngate_protocol.esm.evidence import ToolEvent
from turngate_protocol.esm.roles import RoleRequest
from turngate_protocol.esm.state import EsmState, HaltReason, causes

VECTORS: Final = [
    vector
    for line in (Path(__file__).parents[1] / "vectors" / "esm.jsonl").read_text(encoding="utf-8").splitlines()
    if (vector := json.loads(line))["op"] == "supervisor_run"
]
EVENTS: Final = ("role_started", "role_finished", "role_failed")
AT_ONCE: Final = 8
HOUR_MS: Final = 3_600_000
# What would begin by itself begins when the vector says so: delays are of hours.
PATIENT: Final = {
    "first_delay_ms": HOUR_MS,
    "longest_delay_ms": HOUR_MS,
    "watchdog_ms": HOUR_MS,
    "presence_ms": HOUR_MS,
}


class Play:
    """One vector, played on the service in a session and a pool of its own; it is also the adapter of its agents."""

    def __init__(self, supervised: Supervised, person: Objectives, vector: dict[str, Any]) -> None:
        self.session = vector["id"]
        self.calls: list[dict[str, Any]] = []
        self._supervised = supervised
        self._person = person
        self._vector = vector
        self._run_id = ""
        self._names: dict[str, str] = {}
        self._scripts: dict[str, Any] = {}

    async def wrong(self) -> list[str]:
        """Play it and return what came out differently."""
        given, expected = self._vector["input"], self._vector["expect"]["runs"]
        host = await self._supervised.host(self, f"runner-{self.session}", pools=(self.session,), slots=8)
        await self._steps(given["setup"])
        found = []
        for run, expect in zip(given["runs"], expected, strict=True):
            actual = await self._play(run)
            if not same("supervisor_run", expect, actual):
                found.append(f"{self.session} {run['run_id']}: {json.dumps(expect)} came out as {json.dumps(actual)}")
        await self._steps([])
        await host.stop()
        return found

    async def run(self, request: RoleRequest, context: RoleContext) -> RoleResult:
        """Be the agent of one role."""
        if request.base_run_id != self._run_id:
            await context.cancelled.wait()  # the service went on by itself; the vector does not
            return RoleResult()
        objective = request.objective
        call = {"role": request.role.value, "run_id": request.run_id, "guidance": request.guidance}
        call |= {"status": objective.status.value, "phase": objective.phase.value}
        self.calls.append(call | {"read_only": request.tools is not None})
        script = self._scripts[request.role.value]
        await self._steps(script.get("during", []), fence=False)
        for number in range(max(script["tool_calls"], script["tool_errors"])):
            if number < script["tool_calls"]:
                context.tool_event(ToolEvent("tool_call", f"c{number}"))
            context.tool_event(ToolEvent("tool_result", f"c{number}", error=number < script["tool_errors"]))
        if script["error"] == "none":
            return RoleResult(script["response"], script["tokens"], duration_ms=script["duration_ms"])
        kind, message = FAILURES[script["error"]]
        return RoleResult("", script["tokens"], kind, message, script["duration_ms"])

    async def _play(self, run: dict[str, Any]) -> dict[str, Any]:
        # Names that are no ids are refused at the edge: such a run is played under another name.
        name = run["run_id"]
        self._run_id = name if is_id(name) else f"another-{len(self._names)}"
        self._names[self._run_id] = name
        self._scripts, self.calls = run["roles"], []
        await self._steps(run["pre"])
        before = await self._supervised.state(self.session)
        kind = None
        try:
            await self._person.run(self.session, run_id=self._run_id)
        except Refusal as error:
            kind = error.code.value
        state = await self._supervised.until(
            self.session, lambda s: s.continuation is None or s.continuation.run_id != self._run_id, "the run ends"
        )
        if self.calls and state.halt is not None and state.halt.reason is HaltReason.FAILED:
            kind = "role_error"
        told = Host()
        told.state = state
        shown = told.seen()
        actual = {
            **shown,
            "error_kind": kind,
            "calls": self.calls,
            "events": _events(state, before.revision, self._run_id),
        }
        return self._named(actual)

    def _named(self, actual: dict[str, Any]) -> dict[str, Any]:
        text = json.dumps(actual)
        for played, name in self._names.items():
            text = text.replace(f'"{played}', f'"{name}')
        found: dict[str, Any] = json.loads(text)
        return found

    async def _steps(self, steps: list[dict[str, Any]], *, fence: bool = True) -> None:
        """Apply a vector's steps to the objective in the bucket; between runs nothing is left of the run before."""
        store = self._supervised.supervisor.lane.lanes.store
        while True:
            entry = await store.load(self.session)
            state = EsmState(self.session)
            if entry.value is not None:
                state = codec.decode(entry.value, EsmState, "a state")
            host = Host()
            host.state = state
            host.steps(steps)
            after = replace(host.state, pool=self.session, revision=state.revision + 1)
            if fence:
                after = replace(after, continuation=None, next_at=None, generation=state.generation + 1)
            try:
                await store.save(self.session, codec.encode(after), entry.revision, Event("objective.edited", 1))
            except Conflict:
                continue
            return


def _events(state: EsmState, since: int, run_id: str) -> list[dict[str, Any]]:
    # After progress the service goes on by itself at once: what it starts then is no event of the vector's run.
    return [
        {"type": c.type.value, "role": c.role, "status": c.status, "run_id": c.role_run_id}
        for c in causes(state)
        if c.revision > since and c.type in EVENTS and c.run_id == run_id
    ]


@pytest.mark.slow
async def test_the_running_service_does_what_every_vector_says(nats_server: EmbeddedServer, namespace: str):
    async with supervising(nats_server.url, namespace, **PATIENT) as supervised:
        person = await supervised.person()
        slots = asyncio.Semaphore(AT_ONCE)

        async def play(vector: dict[str, Any]) -> list[str]:
            async with slots:
                return await Play(supervised, person, vector).wrong()

        found = await asyncio.gather(*map(play, VECTORS))

    assert [each for wrong in found for each in wrong] == []
    assert len(found) > 50
