"""Prompts: each is done by one runner, however slow it is, whoever comes and goes, and whatever gets lost."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from tests.running import System
from tests.services.jetstream.raw import Proxy
from tests.waiting import wait_until
from turngate.jetstream.connect import connect
from turngate.jetstream.embedded import EmbeddedServer
from turngate.jetstream.provision import ensure_consumer
from turngate.jetstream.request import Requester
from turngate.runner import NotTaken
from turngate.runner.prompts import receive
from turngate_contracts import codec
from turngate_contracts.errors import ErrorCode
from turngate_protocol.report.session import Prompt

POOL = "pool-1"
WAIT_MS = 1_000
"""The acknowledgement wait of these tests' consumer."""


class Pool:
    """A pool whose consumer waits for a second only."""

    def __init__(self, system: System) -> None:
        self.system = system
        self.stream = system.subjects.stream("work")
        self.consumer = system.subjects.prompt_consumer(POOL)

    async def make(self) -> None:
        stream, config = self.system.settings.topology().pool_consumers(POOL)[0]
        await ensure_consumer(self.system.requester, stream, {**config, "ack_wait": WAIT_MS * 1_000_000})

    async def put(self, *names: str) -> None:
        for name in names:
            prompt = Prompt(name, "session-1", "work", "service", 0)
            await self.system.requester.publish(self.system.subjects.prompt(POOL, name), codec.encode(prompt))

    async def info(self) -> dict[str, Any]:
        return await self.system.requester.api(f"CONSUMER.INFO.{self.stream}.{self.consumer}")

    async def unfinished(self) -> int:
        """How many prompts are delivered and not ended."""
        return int((await self.info())["num_ack_pending"])

    async def delivered(self) -> int:
        """How many deliveries there were, repeats included."""
        return int((await self.info())["delivered"]["consumer_seq"])

    async def delivered_at_least(self, count: int) -> bool:
        return await self.delivered() >= count

    async def is_asked_by(self, runners: int) -> bool:
        return int((await self.info())["num_waiting"]) >= runners

    async def remake(self) -> None:
        """Make the consumer anew: it knows of no acknowledgement."""
        await self.system.requester.api(f"CONSUMER.DELETE.{self.stream}.{self.consumer}")
        await self.make()

    async def is_over(self) -> bool:
        info = await self.info()
        return not info["num_ack_pending"] and not info["num_pending"]


class Runner:
    """A connection that receives the pool's prompts."""

    def __init__(self, pool: Pool, requester: Requester) -> None:
        self.connection = requester.connection
        self.requester = requester
        self._pool = pool

    def prompts(self, slots: int = 4) -> "contextlib.aclosing[Any]":
        subjects = self._pool.system.subjects
        return contextlib.aclosing(receive(self.connection, self.requester, subjects, POOL, slots, ack_wait_ms=WAIT_MS))

    async def do(self, done: list[str], slots: int = 4) -> None:
        """Take and do prompts, for ever."""
        async with self.prompts(slots) as prompts:
            async for incoming in prompts:
                await incoming.take()
                done.append(incoming.prompt.id)


Starting = Callable[..., Awaitable[Runner]]


@pytest.fixture
async def pool(system: System) -> Pool:
    made = Pool(system)
    await made.make()
    return made


@pytest.fixture
async def starting(pool: Pool) -> AsyncIterator[Starting]:
    """Connect runners; they end with the test."""
    async with contextlib.AsyncExitStack() as stack:

        async def start(url: str = "") -> Runner:
            connection = await connect(url or pool.system.settings.nats_url)
            connection.options["reconnect_time_wait"] = 0.05
            stack.push_async_callback(connection.close)
            requester = await Requester.start(connection)
            stack.push_async_callback(requester.stop)
            return Runner(pool, requester)

        yield start


@contextlib.asynccontextmanager
async def working(*runs: Any) -> AsyncIterator[None]:
    tasks = [asyncio.create_task(run) for run in runs]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def names(count: int) -> list[str]:
    return [f"p{number}" for number in range(count)]


async def outlive(proxy: Proxy, signs: int = 5) -> None:
    """Wait for so many more signs of life, three of which are sent in one acknowledgement wait."""
    before = proxy.sent.count(b"+WPI")
    await wait_until(lambda: proxy.sent.count(b"+WPI") >= before + signs, why="what is held is kept alive")


@pytest.fixture
async def proxy(nats_server: EmbeddedServer) -> AsyncIterator[Proxy]:
    """A runner's way to the server."""
    async with Proxy.to(nats_server.port) as made:
        yield made


async def test_a_slow_caller_never_sees_a_prompt_twice(pool: Pool, starting: Starting, proxy: Proxy):
    runner = await starting(proxy.url)
    await pool.put(*names(3))
    seen = []

    async with runner.prompts() as prompts:
        for left in (3, 2, 1):
            incoming = await anext(prompts)
            seen.append(incoming.prompt.id)
            await outlive(proxy, 5 * left)
            await incoming.take()

    assert seen == names(3)
    assert await pool.delivered() == 3, "nothing was delivered again"
    assert await pool.is_over()


async def test_two_runners_share_a_pool_and_each_prompt_is_done_once(pool: Pool, starting: Starting):
    one, other = await starting(), await starting()
    first: list[str] = []
    second: list[str] = []

    async with working(one.do(first), other.do(second)):
        await wait_until(lambda: pool.is_asked_by(2), why="both ask")
        await pool.put(*names(40))
        await wait_until(lambda: len(first) + len(second) >= 40, why="all are done")
        await wait_until(pool.is_over, why="all are acknowledged")

    assert sorted(first + second) == sorted(names(40))
    assert first
    assert second


async def test_what_is_given_back_comes_again(pool: Pool, starting: Starting):
    runner = await starting()
    await pool.put("p")

    async with runner.prompts() as prompts:
        (await anext(prompts)).give_back(delay_ms=10)
        again = await anext(prompts)
        await again.take()

    assert again.prompt.id == "p"
    assert await pool.delivered() == 2
    assert await pool.is_over()


async def test_what_the_caller_passes_over_is_given_back(pool: Pool, starting: Starting):
    runner = await starting()
    await pool.put("passed-over", "next")

    async with runner.prompts() as prompts:
        passed_over = await anext(prompts)
        following = await anext(prompts)
        with pytest.raises(NotTaken, match="given back"):
            await passed_over.take()

    assert (passed_over.prompt.id, following.prompt.id) == ("passed-over", "next")


async def test_a_runner_that_ends_hands_back_what_it_did_not_take(pool: Pool, starting: Starting):
    runner, other = await starting(), await starting()
    await pool.put(*names(4))
    async with runner.prompts() as prompts:
        taken = await anext(prompts)
        await taken.take()
        await wait_until(lambda: runner_holds(pool, 3), why="the others are queued")

    done: list[str] = []
    async with working(other.do(done)):
        await wait_until(lambda: len(done) == 3, deadline_s=5, why="another runner gets them")

    assert sorted([taken.prompt.id, *done]) == names(4)


async def test_taking_twice_is_taking_once(pool: Pool, starting: Starting):
    runner = await starting()
    await pool.put("p")
    async with runner.prompts() as prompts:
        incoming = await anext(prompts)
        await incoming.take()
        await incoming.take()
        incoming.give_back()
    await incoming.take()
    assert await pool.is_over()


async def test_taking_without_a_connection_is_a_clear_error_and_can_be_repeated(
    pool: Pool, starting: Starting, proxy: Proxy
):
    runner = await starting(proxy.url)
    await pool.put("p")
    async with runner.prompts() as prompts:
        incoming = await anext(prompts)
        proxy.cut()
        await wait_until(lambda: not runner.connection.is_connected, why="the connection is lost")

        with pytest.raises(NotTaken, match="no connection") as error:
            await incoming.take()

        assert error.value.code is ErrorCode.UNAVAILABLE
        assert error.value.prompt == "p"
        await wait_until(lambda: runner.connection.is_connected, why="it is back")
        await incoming.take()
    assert await pool.is_over()


async def test_a_lost_confirmation_is_told_and_asked_for_again(pool: Pool, starting: Starting, proxy: Proxy):
    runner = await starting(proxy.url)
    await pool.put("p")
    async with runner.prompts() as prompts:
        incoming = await anext(prompts)
        proxy.muted = True
        taking = asyncio.create_task(incoming.take())
        await wait_until(pool.is_over, why="the server has the acknowledgement")
        proxy.cut()

        with pytest.raises(NotTaken, match="not confirmed"):
            await taking

        proxy.muted = False
        await wait_until(lambda: runner.connection.is_connected, why="it is back")
        await incoming.take()
    assert await pool.is_over()
    assert await pool.delivered() == 1


async def test_what_was_held_too_long_without_a_connection_is_another_s(pool: Pool, starting: Starting, proxy: Proxy):
    runner, other = await starting(proxy.url), await starting()
    await pool.put("p", "queued")
    async with runner.prompts() as prompts:
        incoming = await anext(prompts)
        await wait_until(lambda: runner_holds(pool, 2), why="the other one is queued")
        proxy.stall()
        done: list[str] = []
        async with working(other.do(done)):
            await wait_until(lambda: len(done) == 2, why="the server gives them to another runner")

        with pytest.raises(NotTaken, match="another runner"):
            await incoming.take()

    assert sorted(done) == ["p", "queued"]


async def test_a_copy_that_comes_again_takes_the_place_of_the_one_that_is_held(
    pool: Pool, starting: Starting, proxy: Proxy
):
    runner = await starting(proxy.url)
    await pool.put("p", "queued")
    async with runner.prompts() as prompts:
        incoming = await anext(prompts)
        proxy.lose = b"$JS.ACK"
        await wait_until(lambda: pool.delivered_at_least(4), why="both are delivered again")
        proxy.lose = b""
        await incoming.take()
        queued = await anext(prompts)
        await queued.take()
        await wait_until(pool.is_over, why="nothing is left")
        assert (incoming.prompt.id, queued.prompt.id) == ("p", "queued")


async def test_a_prompt_that_comes_again_after_it_was_taken_is_not_yielded(pool: Pool, starting: Starting):
    runner = await starting()
    await pool.put("p")
    async with runner.prompts() as prompts:
        await (await anext(prompts)).take()
        upcoming = asyncio.create_task(anext(prompts))
        # A server that was killed may have forgotten the acknowledgement; so has a consumer that is made anew.
        await pool.remake()
        await wait_until(pool.delivered, why="it is delivered again")
        await wait_until(pool.is_over, why="it is acknowledged again")
        await pool.put("next")
        assert (await upcoming).prompt.id == "next"


async def test_a_prompt_that_can_t_be_read_is_passed(pool: Pool, starting: Starting):
    runner = await starting()
    await pool.system.requester.publish(pool.system.subjects.prompt(POOL, "broken"), b"hello")
    await pool.put("good")
    async with runner.prompts() as prompts:
        incoming = await anext(prompts)
        await incoming.take()
    assert incoming.prompt.id == "good"
    assert await pool.is_over()


async def runner_holds(pool: Pool, count: int) -> bool:
    return await pool.unfinished() == count
