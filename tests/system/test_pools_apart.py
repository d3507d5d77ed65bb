"""A runner that knows a session of another pool can't act in it, whichever pool it names, and wherever it names it.

The session is of the pool `web`, whose runner is r1; the intruder is r3 of the pool `gpu`. Everybody has an identity.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

import pytest
import pytest_asyncio
from msgspec.structs import replace

from tests.fundamentals.reports import DONE
from tests.secured import OTHER_POOL, POOL, Secured, secured
from tests.services.validation.asking import structured
from tests.waiting import wait_until
from turngate.auth.directory import ADMIN
from turngate.jetstream.connect import NotPermitted
from turngate.runner import TurnClient
from turngate_contracts import codec
from turngate_contracts.errors import ErrorCode, Refusal
from turngate_contracts.esm import ClaimRole, ReleaseRole, RoleClaimed, RoleEnded, RoleReleased
from turngate_contracts.messages import Refusal as RefusalMail
from turngate_contracts.messages import ReportSubmitted, TurnEnded
from turngate_contracts.questions import AskQuestion, QuestionAsked
from turngate_contracts.tasks import TaskFinished
from turngate_protocol.conclusion import Task
from turngate_protocol.esm.roles import RoleRequest

SESSION = "s1"
TASK = Task("t1", "completed", output="done")


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    with secured(tmp_path_factory.mktemp("pools")) as made:
        yield made


@pytest_asyncio.fixture
async def scene(system: Secured, namespace: str) -> AsyncIterator["Scene"]:
    """All services, and a session of `web` with a turn, and with an objective whose role r1 holds."""
    await system.move_to(namespace)
    async with system.services(), await system.client("r1") as owner, await system.client("ann") as person:
        await owner.submit_report(SESSION, 1, DONE, mutated=True)
        await person.objectives.create(SESSION, "Do all of it", pool=POOL)
        yield await Scene.of(system, owner)


class Scene:
    """What there is to intrude on."""

    def __init__(self, system: Secured, owner: TurnClient, request: RoleRequest) -> None:
        self.system = system
        self.owner = owner
        self.request = request

    @classmethod
    async def of(cls, system: Secured, owner: TurnClient) -> "Scene":
        found = await owner.objectives.get(SESSION)
        assert found.state.continuation is not None
        claim = ClaimRole(SESSION, found.state.continuation.role_run.id, found.state.generation, "claim-1")
        claimed = await owner.call("role.claim", claim, RoleClaimed, pool=POOL)
        return cls(system, owner, claimed.request)

    async def known(self) -> tuple[Any, ...]:
        """Everything that is known of the session."""
        turns = await self.owner.get(SESSION)
        objective = await self.owner.objectives.get(SESSION)
        conclusions = await self.owner.conclusions(session=SESSION)
        return turns.state, replace(objective.state, ignored=()), conclusions.entries


async def _claims(client: TurnClient, request: RoleRequest) -> None:
    claim = ClaimRole(SESSION, request.run_id, request.generation, "claim-3")
    await client.call("role.claim", claim, RoleClaimed, pool=client.pool)


Act = Callable[[TurnClient, RoleRequest], Awaitable[object]]
ACTS: dict[str, tuple[Act, ErrorCode]] = {
    "report": (lambda c, _: c.submit_report(SESSION, 2, DONE, mutated=True), ErrorCode.POOL_MISMATCH),
    "end a turn": (lambda c, _: c.end_turn(SESSION, 1), ErrorCode.POOL_MISMATCH),
    "ask": (lambda c, _: c.ask(structured(), SESSION), ErrorCode.POOL_MISMATCH),
    "say what a model says": (lambda c, _: c.objectives.update(SESSION, "complete", "yes"), ErrorCode.POOL_MISMATCH),
    "claim": (_claims, ErrorCode.CLAIM_REFUSED),
}


@pytest.mark.parametrize("what", ACTS)
async def test_in_the_name_of_its_own_pool_it_is_told_that_the_session_is_another_s(scene: Scene, what: str):
    act, code = ACTS[what]
    before = await scene.known()

    async with await scene.system.client("r3", OTHER_POOL) as intruder:
        with pytest.raises(Refusal) as refused:
            await act(intruder, scene.request)

    assert refused.value.code is code
    assert await scene.known() == before


@pytest.mark.parametrize("what", [*ACTS, "finish a task"])
async def test_in_the_name_of_the_session_s_pool_the_server_takes_nothing_of_it(scene: Scene, what: str):
    act = ACTS[what][0] if what in ACTS else lambda c, _: c.finish_task(SESSION, TASK)
    before = await scene.known()

    async with await scene.system.client("r3", POOL) as intruder:
        with pytest.raises(NotPermitted, match=rf"may not publish to .*\.{POOL}\.r3"):
            await act(intruder, scene.request)

    assert await scene.known() == before


async def test_a_body_that_names_another_pool_than_its_subject_is_refused(scene: Scene):
    before, s = await scene.known(), scene.system.subjects
    bodies = {
        s.turn_report(OTHER_POOL, "r3", SESSION): ReportSubmitted(SESSION, 2, 1, "r3", POOL),
        s.turn_ended(OTHER_POOL, "r3", SESSION): TurnEnded(SESSION, 1, 1, "r3", POOL),
        s.task_finished(OTHER_POOL, "r3", SESSION): TaskFinished(SESSION, "r3", POOL, TASK),
    }

    async with await scene.system.client("r3", OTHER_POOL) as intruder:
        mail = await Mail.of(intruder)
        for subject, body in bodies.items():
            await intruder.publish(subject, codec.encode(body), b"")
        asked = AskQuestion(SESSION, POOL, "r3", structured())
        with pytest.raises(Refusal) as refused:
            await intruder.call("question.ask", asked, QuestionAsked, pool=OTHER_POOL)
        await wait_until(lambda: len(mail.refusals) == len(bodies), why="each is refused")

    found = [refused.value.code, *(each.error.code for each in mail.refusals)]
    assert set(found) == {ErrorCode.IDENTITY_MISMATCH}
    assert {each.error.details["field"] for each in mail.refusals} == {"pool"}
    assert await scene.known() == before


async def test_a_task_of_a_session_of_another_pool_is_not_concluded(scene: Scene):
    before = await scene.known()

    async with await scene.system.client("r3", OTHER_POOL) as intruder:
        mail = await Mail.of(intruder)
        await intruder.finish_task(SESSION, TASK)
        await wait_until(lambda: mail.refusals, why="it is refused")
    assert await scene.known() == before
    await scene.owner.finish_task(SESSION, TASK)
    found = await scene.owner.conclusion(SESSION, TASK.id, wait_ms=20_000)

    assert (mail.refusals[0].error.code, mail.refusals[0].task) == (ErrorCode.POOL_MISMATCH, TASK.id)
    assert (found.state.runner, found.state.pool, found.state.conflicts) == ("r1", POOL, ())


async def test_a_task_that_was_told_for_a_session_before_it_had_turns_stays_its_pool_s(scene: Scene):
    await scene.owner.finish_task("young", TASK)
    found = await scene.owner.conclusion("young", TASK.id, wait_ms=20_000)

    async with await scene.system.client("r3", OTHER_POOL) as intruder:
        mail = await Mail.of(intruder)
        await intruder.finish_task("young", replace(TASK, output="other"))
        await wait_until(lambda: mail.refusals, why="it is refused")

    assert mail.refusals[0].error.code is ErrorCode.POOL_MISMATCH
    assert (await scene.owner.conclusion("young", TASK.id)).state.conflicts == found.state.conflicts == ()


async def test_another_runner_s_claim_is_of_no_use_to_it(scene: Scene):
    before, run = await scene.known(), scene.request
    held = (SESSION, run.run_id, run.generation, run.claim_id)

    async with await scene.system.client("r3", OTHER_POOL) as intruder:
        released = await intruder.call("role.release", ReleaseRole(*held), RoleReleased)
        ended = RoleEnded(SESSION, "r3", *held[1:], response="complete")
        await intruder.publish(scene.system.subjects.esm_result("r3", SESSION), codec.encode(ended), b"")
        await wait_until(lambda: _handled(scene), why="the result was looked at")

    assert not released.released
    after = await scene.known()
    assert after[1].continuation == before[1].continuation


async def _handled(scene: Scene) -> bool:
    """Whether no result waits for a supervisor any more."""
    async with scene.system.as_(ADMIN) as admin:
        info = await admin.api(f"STREAM.INFO.{scene.system.subjects.stream('esm')}")
    return int(info["state"]["messages"]) == 0


class Mail:
    """What a runner is told that its messages were refused for."""

    def __init__(self) -> None:
        self.refusals: list[RefusalMail] = []

    @classmethod
    async def of(cls, client: TurnClient) -> "Mail":
        made = cls()
        await client.connection.listen(client.subjects.mailbox(client.identity, "refused"), made._on_mail)
        return made

    def _on_mail(self, _subject: bytes, _reply: bytes, body: bytes, _head: bytes) -> None:
        self.refusals.append(codec.decode(body, RefusalMail, "a Refusal"))
