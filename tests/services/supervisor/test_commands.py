"""Every command against every state: the running service says and stores what the pure machine says."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from msgspec.structs import replace

from tests import esm_answers as answers
from tests.supervised import Hand, Supervised, refusal
from turngate.runner.objectives import Objectives
from turngate_contracts.errors import Refusal
from turngate_protocol.esm.classify import FailureKind
from turngate_protocol.esm.continuation import advance, settle
from turngate_protocol.esm.errors import EsmError
from turngate_protocol.esm.inputs import (
    Clear,
    Configure,
    Create,
    Edit,
    Guide,
    Input,
    Pause,
    Resume,
    Start,
    Update,
)
from turngate_protocol.esm.objective import Objective
from turngate_protocol.esm.state import EsmState

SESSION = "session-1"
LATER = 1_900_000_000_000

Arrange = Callable[[Supervised, Objectives, Hand], Awaitable[Any]]


async def nothing(supervised, person, hand):
    """No objective was ever there."""


async def cleared(supervised, person, hand):
    await person.create(SESSION, "First")
    await person.clear(SESSION)


async def offered(supervised, person, hand):
    await person.create(SESSION, "First")


async def worked_on(supervised, person, hand):
    await person.create(SESSION, "First")
    await hand.claim(SESSION)


async def paused(supervised, person, hand):
    await person.create(SESSION, "First")
    await person.pause(SESSION)


async def failed(supervised, person, hand):
    await person.create(SESSION, "First")
    await hand.report(await hand.claim(SESSION), "", failure=FailureKind.ERROR, message="it broke")
    await supervised.until_status(SESSION, "paused")


async def limited(supervised, person, hand):
    await person.create(SESSION, "First")
    await hand.report(await hand.claim(SESSION), "", failure=FailureKind.USAGE_LIMIT, message="quota")
    await supervised.until_status(SESSION, "usage_limited")


async def blocked(supervised, person, hand):
    await person.create(SESSION, "First")
    for number in range(3):
        await person.update(SESSION, "blocked", "no key", run=f"another-{number}")
    await supervised.until_status(SESSION, "blocked")


async def challenged(supervised, person, hand):
    await person.create(SESSION, "First")
    await hand.report(await hand.claim(SESSION), answers.CANDIDATE)
    await supervised.until_offered(SESSION, "critic")


async def audited(supervised, person, hand):
    await challenged(supervised, person, hand)
    await hand.report(await hand.claim(SESSION), answers.PASS)
    await supervised.until_offered(SESSION, "audit")


async def complete(supervised, person, hand):
    await audited(supervised, person, hand)
    await hand.report(await hand.claim(SESSION), answers.PASS)
    await supervised.until_status(SESSION, "complete")


STATES: list[Arrange] = [
    nothing, cleared, offered, worked_on, paused, failed, limited, blocked, challenged, audited, complete,
]  # fmt: skip

COMMANDS: dict[str, tuple[Callable[[Objectives], Awaitable[Any]], Input]] = {
    "create": (lambda p: p.create(SESSION, "Second"), Create(text="Second", esm_id="any", pool="pool-1")),
    "edit": (lambda p: p.edit(SESSION, "Third"), Edit(text="Third")),
    "edit with nothing": (lambda p: p.edit(SESSION, " \n"), Edit(text=" \n")),
    "pause": (lambda p: p.pause(SESSION), Pause()),
    "resume": (lambda p: p.resume(SESSION), Resume()),
    "clear": (lambda p: p.clear(SESSION), Clear()),
    "guide": (lambda p: p.guide(SESSION, "Mind it"), Guide(text="Mind it")),
    "run": (lambda p: p.run(SESSION), Start()),
    "configure": (lambda p: p.configure(SESSION, mode="fast"), Configure(mode="fast")),
    "complete": (
        lambda p: p.update(SESSION, "complete", "done", run="x"),
        Update(status="complete", reason="done", run_id="x"),
    ),
    "block": (
        lambda p: p.update(SESSION, "blocked", "no key", run="x"),
        Update(status="blocked", reason="no key", run_id="x"),
    ),
    "update to nonsense": (lambda p: p.update(SESSION, "won", "yes"), Update(status="won", reason="yes")),
}  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("arrange", STATES, ids=lambda arrange: arrange.__name__)
async def test_a_command_does_what_the_machine_says(supervised: Supervised, arrange: Arrange, command: str):
    person, hand = await supervised.person(), await supervised.runner()
    await arrange(supervised, person, hand)
    send, told = COMMANDS[command]
    before = await supervised.state(SESSION)
    expected = _expected(before, told)

    if not isinstance(expected, EsmState):
        assert (await refusal(send(person))).value == expected
        assert (await supervised.state(SESSION)).revision == before.revision
        return
    stands = await send(person)

    assert _shape(stands.objective) == _shape(expected.objective)
    assert stands.repeated is (expected is before)
    after = await supervised.until(SESSION, lambda s: s.revision >= expected.revision)
    assert (after.generation > before.generation) is (expected.generation > before.generation)


def _expected(state: EsmState, told: Input) -> EsmState | str:
    try:
        return settle(advance(state, told, LATER), LATER)
    except EsmError as error:
        return error.kind


def _shape(objective: Objective | None) -> Objective | None:
    """An objective without what differs by the moment, and by who chose its id."""
    if objective is None:
        return None
    bare = replace(objective, esm_id="", created_at=0, updated_at=0)
    return replace(bare, completion_run_id=re.sub("^[0-9a-f]{16}", "", bare.completion_run_id))


async def test_the_same_command_again_is_known_and_does_nothing(supervised: Supervised):
    person = await supervised.person()
    await person.create(SESSION, "First", op="op-1")
    await person.guide(SESSION, "Mind it", op="op-2")

    again = await person.guide(SESSION, "Mind it", op="op-2")
    created = await person.create(SESSION, "First", op="op-1")

    assert (again.repeated, created.repeated) == (True, True)
    assert len((await supervised.state(SESSION)).guidance) == 1


async def test_of_two_creations_at_once_one_wins(supervised: Supervised):
    await supervised.add_supervisor()
    ann, bob = await supervised.person("ann"), await supervised.person("bob")

    results = await asyncio.gather(
        *(who.create(SESSION, f"Objective {n}") for n, who in enumerate([ann, bob] * 4)), return_exceptions=True
    )

    errors = [result for result in results if isinstance(result, Refusal)]
    assert [error.code.value for error in errors] == ["objective_exists"] * 7


async def test_an_edit_while_a_role_runs_keeps_its_result_out(supervised: Supervised):
    person, hand = await supervised.person(), await supervised.runner()
    await challenged(supervised, person, hand)
    await hand.report(await hand.claim(SESSION), answers.PASS)
    audit = await hand.claim(SESSION)
    assert audit.role == "audit"

    await person.edit(SESSION, "Something else")
    await hand.report(audit, answers.PASS)

    state = await supervised.until(
        SESSION,
        lambda s: any(c and c.reason == "edited" for c in (*s.ignored, s.cause)),
        "the result is known and ignored",
    )
    assert state.objective is not None
    assert (state.objective.status, state.objective.text) == ("active", "Something else")
    assert state.objective.tokens_used == 7 * 3  # its usage counts


async def test_a_configured_pool_moves_a_role_that_waits(supervised: Supervised):
    person = await supervised.person()
    await person.create(SESSION, "First")
    await supervised.until_offered(SESSION)

    await person.configure(SESSION, pool="pool-2")
    await person.configure(SESSION, pool="pool-1")
    await supervised.host({"default": [answers.COMPLETES]}, pools=("pool-2",), identity="runner-2")
    await supervised.host({"default": [answers.COMPLETES]}, pools=("pool-1",), identity="runner-1")

    state = await supervised.until_status(SESSION, "complete")
    assert {cause.runner for cause in state.recent if cause.role} == {"runner-1"}
