"""The runner host: what it takes, how it stops, what it tells, and that it never loses a role run."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests import esm_answers as answers
from tests.supervised import POOL, Supervised, supervising
from tests.waiting import wait_until
from turngate.jetstream.connect import NoServer
from turngate.jetstream.embedded import EmbeddedServer
from turngate.runner.adapters.base import RoleContext, RoleResult, failed
from turngate.runner.host import RunnerHost
from turngate.runner.role_run import find_work_dir
from turngate_contracts.errors import InvalidId, InvalidMessage
from turngate_protocol.esm.classify import FailureKind
from turngate_protocol.esm.evidence import ToolEvent
from turngate_protocol.esm.objective import Role
from turngate_protocol.esm.role_reports import RESPONSE_BYTES
from turngate_protocol.esm.roles import RoleRequest
from turngate_protocol.esm.state import CauseType, EsmState

SESSION = "session-1"
HOUR_MS = 3_600_000


@pytest_asyncio.fixture
async def supervised(nats_server: EmbeddedServer, namespace: str) -> AsyncIterator[Supervised]:
    async with supervising(nats_server.url, namespace) as made:
        yield made


class Agents:
    """An adapter whose agents wait until the test lets them end."""

    def __init__(self, answer: str = answers.CONTINUE, *, stubborn: bool = False) -> None:
        self.requests: list[RoleRequest] = []
        self.contexts: list[RoleContext] = []
        self.stopped: list[str] = []
        self.go = asyncio.Event()
        self.most = 0
        self._answer = answer
        self._now = 0
        self._stubborn = stubborn

    async def run(self, request: RoleRequest, context: RoleContext) -> RoleResult:
        self.requests.append(request)
        self.contexts.append(context)
        self._now += 1
        self.most = max(self.most, self._now)
        context.tool_event(ToolEvent("tool_call", "1", "bash"))
        context.progress("at it")
        try:
            await self._until(context)
        finally:
            self._now -= 1
        if context.cancelled.is_set():
            self.stopped.append(request.run_id)
            return failed("stopped", FailureKind.CANCELLED, tokens=4)
        return RoleResult(self._answer, tokens=4)

    async def _until(self, context: RoleContext) -> None:
        waits = [asyncio.create_task(self.go.wait())]
        if not self._stubborn:
            waits.append(asyncio.create_task(context.cancelled.wait()))
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()


def of(state: EsmState, kind: CauseType) -> list[Any]:
    """What happened of one kind, as far as a state remembers."""
    return [c for c in (*state.recent, *state.ignored, state.cause) if c is not None and c.type is kind]


async def test_it_runs_no_more_agents_at_once_than_it_has_slots(supervised: Supervised):
    agents = Agents(answers.CANDIDATE)
    person = await supervised.person()
    host = await supervised.host(agents, slots=2)
    sessions = [f"s-{number}" for number in range(6)]
    await asyncio.gather(*(person.create(session, "Do all of it") for session in sessions))

    await wait_until(lambda: len(host.held) == 2, why="both slots are taken")
    agents.go.set()
    for session in sessions:
        await supervised.until(session, lambda s: of(s, CauseType.ROLE_FINISHED))

    assert agents.most <= 2


async def test_what_it_has_no_slot_for_another_runner_takes(supervised: Supervised):
    busy, idle = Agents(), Agents()
    person = await supervised.person()
    await supervised.host(busy, slots=1)
    await person.create("s-1", "Do all of it")
    await wait_until(lambda: busy.requests, why="the first runner is busy")
    await supervised.host(idle, "runner-2", slots=1)

    await person.create("s-2", "Do all of it")

    await wait_until(lambda: idle.requests, why="the other runner has it")
    assert len(busy.requests) == 1


async def test_it_waits_for_its_first_connection_no_longer_than_it_is_told():
    host = RunnerHost("runner-1", Agents(), url="nats://127.0.0.1:1", connect_timeout_ms=100)

    async with asyncio.timeout(3):
        with pytest.raises(NoServer):
            await host.start()

    assert not host.running


async def test_it_takes_only_its_own_roles_and_pools(supervised: Supervised):
    reviews, elsewhere = Agents(answers.PASS), Agents()
    person = await supervised.person()
    await supervised.host(reviews, "critic-1", roles=(Role.CRITIC, Role.AUDIT))
    await supervised.host(elsewhere, "far-1", pools=("pool-2",))
    await supervised.host({"default": [answers.COMPLETES]}, "worker-1", roles=(Role.WORKER,))
    reviews.go.set()

    await person.create(SESSION, "Do all of it")
    state = await supervised.until_status(SESSION, "complete")

    assert [request.role for request in reviews.requests] == [Role.CRITIC, Role.AUDIT]
    assert elsewhere.requests == []
    assert {c.runner for c in of(state, CauseType.ROLE_FINISHED)} == {"critic-1", "worker-1"}


async def test_a_pause_stops_the_running_agent_and_its_usage_counts(supervised: Supervised):
    agents = Agents(answers.CANDIDATE)
    person = await supervised.person()
    await supervised.host(agents)
    await person.create(SESSION, "Do all of it")
    await wait_until(lambda: agents.requests, why="the agent runs")

    await person.pause(SESSION)

    await wait_until(lambda: agents.stopped, why="the agent was stopped")
    state = await supervised.until(SESSION, lambda s: s.objective and s.objective.tokens_used == 4)
    assert state.objective is not None
    assert state.objective.status == "paused"


async def test_a_lost_nudge_is_made_up_for_by_the_next_beat(supervised: Supervised):
    agents = Agents()
    person = await supervised.person()
    host = await supervised.host(agents)
    host._on_cancel = lambda *_: None  # type: ignore[method-assign]
    await person.create(SESSION, "Do all of it")
    await wait_until(lambda: agents.requests, why="the agent runs")

    await person.clear(SESSION)

    await wait_until(lambda: agents.stopped, why="the beat told it")


async def test_a_deadline_ends_the_agent_and_is_told_as_one(nats_server: EmbeddedServer, namespace: str):
    async with supervising(nats_server.url, namespace, observer_ms=300) as supervised:
        agents = Agents()
        person, hand = await supervised.person(), await supervised.runner()
        await person.create(SESSION, "Do all of it")
        await hand.report(await hand.claim(SESSION), "", failure="deadline", message="its time was up")

        await supervised.host(agents, roles=(Role.RECOVERY,))
        state = await supervised.until(SESSION, lambda s: of(s, CauseType.RECOVERY_FAILED))

        (failure,) = of(state, CauseType.RECOVERY_FAILED)
        assert (failure.reason, failure.runner) == ("deadline", "runner-1")
        assert agents.stopped == [agents.requests[0].run_id]


async def test_an_edit_steers_nobody_who_was_stopped_and_an_update_does(supervised: Supervised):
    agents = Agents()
    person = await supervised.person()
    await supervised.host(agents)
    await person.create(SESSION, "Do all of it")
    await wait_until(lambda: agents.requests, why="the agent runs")
    request = agents.requests[0]

    runner = await supervised.system.client("runner-1")
    await runner.objectives.update(SESSION, "blocked", "no key", run=request.run_id, generation=request.generation)

    message = await asyncio.wait_for(agents.contexts[0].steering.get(), 10)
    assert "no key" in message
    assert agents.contexts[0].steering.empty()


async def test_tool_calls_are_counted_by_the_host_and_not_by_the_model(supervised: Supervised):
    claims = answers.worker("complete_candidate", "all of it", tool_calls=99)
    person = await supervised.person()
    await supervised.host({"default": [{"worker": {"response": claims, "tools": [{"name": "bash", "error": True}]}}]})

    await person.create(SESSION, "Do all of it")
    state = await supervised.until(SESSION, lambda s: of(s, CauseType.ROLE_FINISHED))

    finished = of(state, CauseType.ROLE_FINISHED)[0]
    assert finished.tool_calls == 1
    assert state.objective is not None
    assert state.objective.rejection_count >= 1  # every tool call failed: the claim is not believed


async def test_told_to_end_it_lets_its_agents_finish(supervised: Supervised):
    agents = Agents(answers.CANDIDATE)
    person = await supervised.person()
    host = await supervised.host(agents, drain_ms=10_000)
    await person.create(SESSION, "Do all of it")
    await wait_until(lambda: agents.requests, why="the agent runs")

    stopping = asyncio.create_task(host.stop())
    await wait_until(lambda: host.draining, why="it ends")
    agents.go.set()

    assert await stopping is True
    state = await supervised.until(SESSION, lambda s: of(s, CauseType.ROLE_FINISHED))
    assert agents.stopped == []
    assert of(state, CauseType.ROLE_RELEASED) == []


async def test_told_to_end_it_hands_back_what_its_agents_can_not_finish(supervised: Supervised):
    agents = Agents()
    person = await supervised.person()
    host = await supervised.host(agents, drain_ms=50)
    await person.create(SESSION, "Do all of it")
    await wait_until(lambda: agents.requests, why="the agent runs")

    await host.stop()
    await supervised.host({"default": [answers.COMPLETES]}, "runner-2")

    state = await supervised.until_status(SESSION, "complete")
    assert agents.stopped or len(agents.requests) == 1
    assert [c.runner for c in of(state, CauseType.ROLE_RELEASED)] == ["runner-1"]
    assert state.runs == 1  # the same run, by another runner


async def test_a_runner_that_is_gone_is_missed_and_the_objective_goes_on(supervised: Supervised):
    agents = Agents(stubborn=True)
    person = await supervised.person()
    host = await supervised.host(agents)
    await person.create(SESSION, "Do all of it")
    await wait_until(lambda: agents.requests, why="the agent runs")

    await host.client.connection.close()  # as if it had been killed
    await supervised.host({"default": [answers.COMPLETES, answers.COMPLETES]}, "runner-2")

    state = await supervised.until_status(SESSION, "complete")
    agents.go.set()
    lost = [cause async for cause in person.history(SESSION) if cause.reason == "lost"]
    assert [(cause.role, cause.runner) for cause in lost] == [("worker", "runner-1")]
    assert state.runs == 2


async def test_a_ticket_that_comes_again_starts_no_second_agent(supervised: Supervised):
    agents = Agents()
    person = await supervised.person()
    host = await supervised.host(agents)
    await person.create(SESSION, "Do all of it")
    await wait_until(lambda: agents.requests, why="the agent runs")
    run = host.held[0]

    run.delivery.nak(0)
    consumer = f"CONSUMER.INFO.{supervised.subjects.stream('work')}.{supervised.subjects.role_consumer(POOL, 'worker')}"

    async def came_again() -> bool:
        info = await supervised.requester.api(consumer)
        return int(info["delivered"]["consumer_seq"]) >= 2 and info["num_ack_pending"] == 0

    await wait_until(came_again, why="the ticket was delivered again and dropped")
    assert len(agents.requests) == 1
    agents.go.set()
    await supervised.until(SESSION, lambda s: of(s, CauseType.ROLE_FINISHED))


async def test_sessions_whose_runs_were_given_the_same_id_run_beside_each_other(
    nats_server: EmbeddedServer, namespace: str
):
    sessions = ("session-1", "session-2", "session-3")
    async with supervising(nats_server.url, namespace, first_delay_ms=HOUR_MS, longest_delay_ms=HOUR_MS) as supervised:
        person, agents = await supervised.person(), Agents()
        await supervised.host(agents)
        agents.go.set()
        for session in sessions:
            await person.create(session, "Do all of it")
            await supervised.until(session, lambda state: state.next_at is not None, "it rests")
        agents.go.clear()
        for session in sessions:
            await person.run(session, run_id="nightly")

        def nightly() -> set[str]:
            return {request.session_id for request in agents.requests if request.base_run_id == "nightly"}

        await wait_until(lambda: nightly() == set(sessions), why="each has its agent")
        await person.pause("session-2")
        await wait_until(lambda: agents.stopped == ["nightly-worker"], why="one of them is stopped")
        agents.go.set()

        for session in ("session-1", "session-3"):
            await supervised.until(session, lambda state: state.next_at is not None, "its run was applied")


async def test_an_adapter_that_raises_fails_its_role_and_says_so(supervised: Supervised):
    class Broken:
        async def run(self, request: RoleRequest, context: RoleContext) -> RoleResult:
            raise KeyError("mode")

    person = await supervised.person()
    await supervised.host(Broken())

    await person.create(SESSION, "Do all of it")
    state = await supervised.until_status(SESSION, "paused")

    assert state.halt is not None
    assert "KeyError: 'mode'" in state.halt.message


@pytest.mark.parametrize(
    "answer", ["\ud800 {}", "x" * (RESPONSE_BYTES + 5), "\x01" * RESPONSE_BYTES], ids=["lone", "long", "fat"]
)
async def test_an_answer_that_can_not_be_sent_whole_is_sent_all_the_same(supervised: Supervised, answer: str):
    agents = Agents(answer)
    agents.go.set()
    person = await supervised.person()
    await supervised.host(agents)

    await person.create(SESSION, "Do all of it")
    state = await supervised.until(SESSION, lambda s: of(s, CauseType.ROLE_FINISHED))

    assert state.objective is not None
    assert state.objective.rejection_count >= 1


async def test_a_work_directory_that_does_not_exist_pauses_the_objective(supervised: Supervised, tmp_path: Path):
    person = await supervised.person()
    await supervised.host({"default": [answers.COMPLETES]})

    await person.create(SESSION, "Do all of it", work_dir=str(tmp_path / "nowhere"))
    state = await supervised.until_status(SESSION, "paused")

    assert state.halt is not None
    assert "does not exist" in state.halt.message


async def test_it_is_listed_with_what_it_does_while_it_lives(supervised: Supervised):
    agents = Agents()
    person = await supervised.person()
    await supervised.host(agents, slots=3)
    await person.create(SESSION, "Do all of it")

    async def at_it() -> Any:
        return [r for r in await person.runners() if r.held and r.held[0].progress == "at it"]

    (runner,) = await wait_until(at_it, why="a beat told of it")
    assert (runner.runner, runner.slots, runner.pools) == ("runner-1", 3, (POOL,))
    assert (runner.held[0].session, runner.held[0].tool_calls) == (SESSION, 1)


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"identity": "a.b"}, InvalidId),
        ({"pools": ("*",)}, InvalidId),
        ({"pools": ()}, InvalidMessage),
        ({"roles": ()}, InvalidMessage),
        ({"slots": 0}, InvalidMessage),
    ],
    ids=str,
)
def test_a_host_that_could_take_nothing_is_not_made(given: dict[str, Any], error: type[Exception]):
    identity = given.pop("identity", "runner-1")

    with pytest.raises(error):
        RunnerHost(identity, Agents(), **given)


def test_a_work_directory_is_below_the_roots(tmp_path: Path):
    inside, outside = tmp_path / "in" / "deep", tmp_path / "out"
    inside.mkdir(parents=True)
    outside.mkdir()
    (tmp_path / "in" / "link").symlink_to(outside)
    roots = (tmp_path / "in",)

    assert find_work_dir(str(inside), roots) == inside.resolve()
    assert find_work_dir("", roots) == (tmp_path / "in").resolve()
    for wanted in (str(outside), str(tmp_path / "in" / "link"), str(tmp_path / "in" / ".." / "out"), "/nowhere\0"):
        with pytest.raises(ValueError, match="work directory"):
            find_work_dir(wanted, roots)
