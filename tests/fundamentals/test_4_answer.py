"""4. A report that asks something is a card: it waits in the inbox, one option answers it, and the answer is work.

A dispatch option's instruction becomes a prompt for the session's pool. While a card waits, prompts that only services
want in the session wait too.
"""

import contextlib

import pytest

from tests.fundamentals.reports import CARD
from tests.running import System
from tests.waiting import wait_until
from turngate_contracts.errors import ErrorCode, Refusal


async def test_a_card_waits_in_the_inbox_until_it_is_answered(system: System):
    runner, person = await system.client("runner-1"), await system.client("ann")
    await runner.submit_report("session-1", 1, CARD)
    await wait_until(lambda: _titles(person), why="the card is listed")
    assert await _titles(person) == [CARD["headline"]]

    await person.answer("session-1", 1, number=3)

    await wait_until(lambda: _is_empty(person), why="the answered card is listed no more")


async def test_a_dispatch_option_becomes_a_prompt_for_the_pool(system: System):
    runner, person = await system.client("runner-1"), await system.client("ann")
    await runner.submit_report("session-1", 1, CARD)

    recorded = await person.answer("session-1", 1, number=1, text="and tell the team")

    assert recorded.answer.actor == "ann"
    async with contextlib.aclosing(runner.prompts()) as prompts:
        incoming = await anext(prompts)
        await incoming.take()
    assert incoming.prompt.session == "session-1"
    assert incoming.prompt.text.startswith("Run the migration on production")
    assert incoming.prompt.text.endswith("and tell the team")


async def test_the_first_answer_wins_and_the_second_learns_who_was_first(system: System):
    runner, ann, bob = await system.client("runner-1"), await system.client("ann"), await system.client("bob")
    await runner.submit_report("session-1", 1, CARD)
    await ann.answer("session-1", 1, number=3)

    with pytest.raises(Refusal) as late:
        await bob.answer("session-1", 1, number=1)

    assert late.value.code is ErrorCode.ALREADY_ANSWERED
    assert late.value.details["actor"] == "ann"


async def test_a_service_s_prompt_waits_behind_the_card(system: System):
    runner, person = await system.client("runner-1"), await system.client("ann")
    await runner.submit_report("session-1", 1, CARD)
    queued = await person.send_prompt("session-1", "result-of-task-7", "Task 7 has finished: look at its result.")
    assert queued.held

    await person.dismiss("session-1", 1)

    async with contextlib.aclosing(runner.prompts()) as prompts:
        incoming = await anext(prompts)
        await incoming.take()
    assert incoming.prompt.id == "result-of-task-7"


async def _titles(person) -> list[str]:
    return [entry.title for entry in (await person.inbox()).entries]


async def _is_empty(person) -> bool:
    return not (await person.inbox()).entries
