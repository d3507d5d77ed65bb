"""What agents say while they work: told to whoever watches, by runners that hold the role run, and bounded."""

import asyncio
from typing import Any

from tests.supervised import POOL, Hand, Supervised
from tests.waiting import wait_until
from turngate.jetstream.direct import Stored, read_page
from turngate.runner.adapters.base import RoleContext, RoleResult
from turngate_contracts import codec
from turngate_contracts.beats import Beat, BeatAnswer, HeldRole
from turngate_contracts.headers import MESSAGE_TTL
from turngate_contracts.progress import RoleProgressed
from turngate_protocol.esm.objective import Role
from turngate_protocol.esm.roles import RoleRequest

SESSION = "session-1"


async def stored(supervised: Supervised) -> list[Stored]:
    stream, subject = supervised.subjects.stream("events"), supervised.subjects.progress(SESSION)
    page, _ = await read_page(supervised.requester, stream, 0, 100, subject)
    return page


async def told(supervised: Supervised) -> list[RoleProgressed]:
    return [codec.decode(each.body, RoleProgressed, "progress") for each in await stored(supervised)]


async def say(hand: Hand, request: RoleRequest, line: str, **more: Any) -> BeatAnswer:
    held = HeldRole(
        SESSION, request.run_id, request.role, request.generation, request.claim_id, progress=line, tool_calls=3, **more
    )
    beat = Beat("incarnation-1", (POOL,), tuple(Role), 1, (held,))
    return await hand.client.call("runner.beat", beat, BeatAnswer)


async def claimed(supervised: Supervised, name: str = "hand-1") -> tuple[Hand, RoleRequest]:
    person, hand = await supervised.person(), await supervised.runner(name)
    await person.create(SESSION, "Do all of it")
    return hand, await hand.claim(SESSION)


async def test_what_an_agent_says_is_told_once(supervised: Supervised):
    hand, request = await claimed(supervised)

    await say(hand, request, "reads the parser")
    await say(hand, request, "reads the parser")
    await wait_until(lambda: told(supervised), why="it is told")

    (news,) = await told(supervised)
    assert (news.session, news.role_run, news.runner) == (SESSION, request.run_id, "hand-1")
    assert (news.role, news.progress, news.tool_calls) == (Role.WORKER, "reads the parser", 3)


async def test_of_what_is_said_at_once_only_some_is_told_and_the_last_word_is_among_it(supervised: Supervised):
    hand, request = await claimed(supervised)

    for number in range(20):
        await say(hand, request, f"line {number}")

    async def last_word() -> bool:
        # A runner's beats go on while its agent works.
        await say(hand, request, "line 19")
        lines = [news.progress for news in await told(supervised)]
        return lines[-1:] == ["line 19"]

    await wait_until(last_word, why="the last word is told")
    assert len(await told(supervised)) <= 4


async def test_what_is_told_leaves_the_events_by_itself(supervised: Supervised):
    hand, request = await claimed(supervised)
    await say(hand, request, "reads the parser")
    await wait_until(lambda: told(supervised))

    (message,) = await stored(supervised)

    assert message.fields[MESSAGE_TTL] == "600s"
    assert message.fields["ce-type"] == "turngate.role.progressed"


async def test_who_does_not_hold_the_role_run_tells_nothing(supervised: Supervised):
    _, request = await claimed(supervised)
    stranger = await supervised.runner("hand-2")

    await say(stranger, request, "I am the agent")
    await say(await supervised.runner("hand-1"), request, "I really am")
    await wait_until(lambda: told(supervised))

    assert [news.runner for news in await told(supervised)] == ["hand-1"]


async def test_what_an_ended_role_said_is_no_news(supervised: Supervised):
    hand, request = await claimed(supervised)

    await say(hand, request, "done", ended=True)
    await say(hand, request, "goes on")
    await wait_until(lambda: told(supervised))

    assert [news.progress for news in await told(supervised)] == ["goes on"]


async def test_a_long_line_is_cut(supervised: Supervised):
    hand, request = await claimed(supervised)

    await say(hand, request, "x" * 100_000)
    await wait_until(lambda: told(supervised))

    (news,) = await told(supervised)
    assert len(news.progress) == 500


class Talker:
    """An adapter whose agent says a line and works on."""

    async def run(self, request: RoleRequest, context: RoleContext) -> RoleResult:
        context.progress("reads the parser")
        await context.cancelled.wait()
        return RoleResult("stopped")


async def test_a_host_beats_soon_when_its_agent_says_something(supervised: Supervised):
    await supervised.host(Talker(), beat_s=1_000.0)
    person = await supervised.person()

    await person.create(SESSION, "Do all of it")

    async with asyncio.timeout(10):
        await wait_until(lambda: told(supervised), why="far sooner than its next beat is due")
