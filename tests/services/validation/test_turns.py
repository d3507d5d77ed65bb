"""Turns through the running service: verdicts for exactly what was submitted, prompts sent once, sizes that fit."""

import asyncio
from pathlib import Path

import pytest

from tests.fundamentals.reports import CARD, DONE, UNCHECKED
from tests.running import System, running
from tests.waiting import wait_until
from turngate.jetstream.direct import read_page
from turngate.jetstream.embedded import EmbeddedServer
from turngate_contracts import codec
from turngate_contracts import messages as m
from turngate_contracts.errors import ErrorCode, Refusal
from turngate_protocol.report.session import MAX_ENDINGS, Outcome
from turngate_protocol.report.turn import Attempt, content_digest


def digest_of(report: dict[str, object], **facts: bool) -> str:
    return content_digest(Attempt("s", "pool-1", "runner-1", 1, 1, codec.encode(report), **facts))


async def test_two_contents_under_one_number_get_one_verdict_and_one_conflict(system: System):
    client = await system.client()

    results = await asyncio.gather(
        client.submit_report("s", 1, DONE, mutated=True),
        client.submit_report("s", 1, UNCHECKED, mutated=True),
        return_exceptions=True,
    )

    verdicts = [r for r in results if isinstance(r, m.Verdict)]
    conflicts = [r.code for r in results if isinstance(r, Refusal)]
    assert len(verdicts) == 1
    assert conflicts == [ErrorCode.ATTEMPT_CONFLICT]


async def test_asking_for_a_verdict_with_other_content_tells_of_the_conflict(system: System):
    client = await system.client()
    await client.submit_report("s", 1, DONE, mutated=True)

    same = m.GetTurn("s", 1, 1, digest=digest_of(DONE, mutated=True))
    other = m.GetTurn("s", 1, 1, digest=digest_of(UNCHECKED, mutated=True))

    found = await client.call("turn.get", same, m.TurnFound)
    assert found.verdict is not None
    conflict = await client.call("turn.get", other, m.TurnFound)
    assert conflict.verdict is None
    assert conflict.refused is not None
    assert conflict.refused.code is ErrorCode.ATTEMPT_CONFLICT


async def test_a_runner_of_another_pool_can_not_ask_for_the_session_s_turns(system: System):
    await (await system.client("runner-1", "pool-1")).submit_report("s", 1, DONE, mutated=True)
    other = await system.client("runner-2", "pool-2")
    with pytest.raises(Refusal) as error:
        await other.call("turn.get", m.GetTurn("s", pool="pool-2"), m.TurnFound)
    assert error.value.code is ErrorCode.POOL_MISMATCH


async def test_white_space_around_a_report_does_not_make_it_another_one(system: System):
    client = await system.client()
    first = await client.submit_report("s", 1, b"\n  " + codec.encode(DONE) + b" \n", mutated=True)
    again = await client.submit_report("s", 1, codec.encode(DONE), mutated=True)
    assert first == again
    assert first.outcome is Outcome.ACCEPTED


async def test_a_turn_that_ends_without_end_is_told_to_begin_a_new_one(system: System):
    client = await system.client()
    for number in range(1, MAX_ENDINGS + 1):
        await client.end_turn("s", 1, ending=number)
    with pytest.raises(Refusal) as error:
        await client.end_turn("s", 1, ending=MAX_ENDINGS + 1)
    assert error.value.code is ErrorCode.TURN_DECIDED


async def test_a_prompt_that_was_sent_is_not_held_when_it_is_asked_for_again(system: System):
    client = await system.client()
    await client.submit_report("s", 1, DONE, mutated=True)
    assert not (await client.send_prompt("s", "one", "go on")).held
    await wait_until(lambda: _is_sent(system, client, "one"), why="the prompt was handed over")
    await client.submit_report("s", 2, CARD)

    again = await client.send_prompt("s", "one", "go on")

    assert not again.held
    assert (await client.get("s")).state.held == ()


async def test_another_text_under_the_id_of_a_held_prompt_is_a_conflict(system: System):
    client = await system.client()
    await client.submit_report("s", 1, CARD)
    await client.send_prompt("s", "one", "go on")
    with pytest.raises(Refusal) as error:
        await client.send_prompt("s", "one", "something else")
    assert error.value.code is ErrorCode.PROMPT_CONFLICT


async def test_prompts_that_grow_when_they_are_escaped_never_fill_a_state(system: System):
    client = await system.client()
    await client.submit_report("s", 1, CARD)
    many = (client.send_prompt("s", f"p{n}", "\x01" * 16_000) for n in range(20))
    results = await asyncio.gather(*many, return_exceptions=True)
    refused = [r.code for r in results if isinstance(r, Refusal)]
    assert refused
    assert set(refused) == {ErrorCode.OVERLOADED}
    verdict = await client.submit_report("s", 2, DONE, mutated=True)
    assert verdict.outcome is Outcome.ACCEPTED


@pytest.fixture
def small_server(tmp_path: Path) -> EmbeddedServer:
    """A server with nats-server's own default limit of 1 MiB a message."""
    return EmbeddedServer(tmp_path / "small", sync_always=False, max_payload=1024 * 1024)


async def test_where_messages_are_small_a_large_turn_is_still_answered(small_server: EmbeddedServer, namespace: str):
    with small_server:
        async with running(small_server.url, namespace) as system:
            client = await system.client()
            large = {**DONE, "ignored": "x" * 700_000}
            verdict = await client.submit_report("s", 1, large, mutated=True)
            assert verdict.outcome is Outcome.ACCEPTED
            found = await client.get("s", 1, attempt=1)
            assert found.verdict is not None


async def test_where_messages_are_small_a_large_poison_message_is_still_buried(
    small_server: EmbeddedServer, namespace: str
):
    with small_server:
        async with running(small_server.url, namespace) as system:
            subject = f"{namespace}.turn.report.pool-1.runner-1.s"
            await system.requester.publish(subject, b"\x00" * 900_000)
            stream = system.subjects.stream("dead")

            async def buried() -> bool:
                return bool((await read_page(system.requester, stream, 0, 10, f"{namespace}.dead.>"))[0])

            await wait_until(buried, why="it is in the dead letters")


async def _is_sent(system: System, client, prompt: str) -> bool:
    return prompt in (await client.get("s")).state.sent
