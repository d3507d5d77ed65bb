"""The watchdog: a runner that fell silent is missed, whatever looks like silence is not."""

import asyncio
import time

from tests import esm_answers as answers
from tests.supervised import QUICK, Supervised, supervising
from tests.waiting import wait_until
from turngate.jetstream.embedded import EmbeddedServer
from turngate_contracts import codec
from turngate_contracts.esm import ObjectiveDue
from turngate_protocol.esm.inputs import TimerKind
from turngate_protocol.esm.state import CauseType

SESSION = "session-1"
HOUR_MS = 3_600_000


async def beating(hand, *requests):
    """Beat for ever, holding these role runs."""
    while True:
        await hand.beat(*requests)
        await asyncio.sleep(0.1)


async def listening(supervised: Supervised) -> None:
    """Wait until the supervisor would have heard a runner."""
    await wait_until(
        lambda: supervised.supervisor.presences.deaf_ms == 0, why="the supervisor listened for long enough"
    )


async def test_a_runner_that_fell_silent_is_missed_and_an_observer_looks(supervised: Supervised):
    person, hand = await supervised.person(), await supervised.runner()
    await person.create(SESSION, "Do all of it")
    await listening(supervised)
    request = await hand.claim(SESSION)
    await hand.beat(request)
    silent = time.monotonic()

    state = await supervised.until_offered(SESSION, "recovery")

    took_ms = (time.monotonic() - silent) * 1000
    assert took_ms >= QUICK["presence_ms"] * 0.8
    assert [gone.reason for gone in state.abandoned] == ["lost"]
    await supervised.host({"default": [answers.COMPLETES, answers.COMPLETES]})
    await supervised.until_status(SESSION, "complete")


async def test_a_runner_that_beats_is_never_missed(supervised: Supervised):
    person, hand = await supervised.person(), await supervised.runner()
    await person.create(SESSION, "Do all of it")
    await listening(supervised)
    request = await hand.claim(SESSION)
    beats = asyncio.create_task(beating(hand, request))

    looked = await supervised.until(
        SESSION,
        lambda s: (
            s.continuation
            and s.continuation.role_run.check_at > s.continuation.role_run.claimed_at + 6 * QUICK["watchdog_ms"]
        ),
    )
    beats.cancel()

    assert looked.continuation is not None
    assert looked.continuation.role_run.claim_id == request.claim_id


async def test_a_runner_that_beats_for_ever_without_holding_it_is_missed(supervised: Supervised):
    person, hand = await supervised.person(), await supervised.runner()
    await person.create(SESSION, "Do all of it")
    await listening(supervised)
    await hand.claim(SESSION)

    beats = asyncio.create_task(beating(hand))  # started again under the same name: it holds nothing
    await supervised.until_offered(SESSION, "recovery")
    beats.cancel()


async def test_a_role_run_that_nobody_claimed_is_not_lost_and_costs_nothing(supervised: Supervised):
    person = await supervised.person()
    await person.create(SESSION, "Do all of it")
    await supervised.until_offered(SESSION)
    await listening(supervised)

    state = await supervised.state(SESSION)

    assert state.continuation is not None
    assert state.continuation.role_run.role == "worker"
    assert (state.runs, state.abandoned) == (1, ())


async def test_a_process_that_just_started_takes_no_silence_for_a_loss(nats_server: EmbeddedServer, namespace: str):
    async with supervising(nats_server.url, namespace, presence_ms=2_500, watchdog_ms=100) as supervised:
        person, hand = await supervised.person(), await supervised.runner()
        await person.create(SESSION, "Do all of it")
        await hand.claim(SESSION)  # and never beats
        deaf = supervised.supervisor.presences.deaf_ms
        assert deaf > 0
        before = time.monotonic()

        await supervised.until_offered(SESSION, "recovery")

        assert (time.monotonic() - before) * 1000 >= deaf * 0.9


async def test_a_timer_of_an_older_state_is_replaced_by_the_one_that_is_wanted(supervised: Supervised):
    person, hand = await supervised.person(), await supervised.runner()
    await person.create(SESSION, "Do all of it")
    await listening(supervised)
    await hand.claim(SESSION)
    state = await supervised.state(SESSION)
    stale = ObjectiveDue(SESSION, TimerKind.WATCHDOG, state.generation, 12_345)
    stream, at = supervised.subjects.stream("timers"), supervised.subjects.timer_at("watchdog", SESSION)
    await supervised.requester.api(f"STREAM.PURGE.{stream}", {"filter": at})

    await supervised.requester.publish(supervised.subjects.timer_due("watchdog", SESSION), codec.encode(stale))

    await supervised.until_offered(SESSION, "recovery")


async def test_clocks_that_are_an_hour_apart_delay_nothing(nats_server: EmbeddedServer, namespace: str):
    async with supervising(nats_server.url, namespace, clock_offset_ms=HOUR_MS) as supervised:
        await supervised.add_supervisor(clock_offset_ms=-HOUR_MS)
        await supervised.add_supervisor(clock_offset_ms=0)
        person = await supervised.person()
        runs = [{"worker": {"response": "no report", "tools": 1}}] * 3
        await supervised.host({"default": [*runs, answers.GOES_ON, answers.COMPLETES]})

        await person.create(SESSION, "Do all of it")

        await supervised.until_status(SESSION, "complete")


async def test_an_observer_that_takes_too_long_is_given_up(nats_server: EmbeddedServer, namespace: str):
    async with supervising(nats_server.url, namespace, observer_ms=200, grace_ms=200) as supervised:
        person, hand = await supervised.person(), await supervised.runner()
        await person.create(SESSION, "Do all of it")
        await hand.report(await hand.claim(SESSION), "", failure="deadline", message="its time was up")
        await supervised.until_offered(SESSION, "recovery")
        observer = await hand.claim(SESSION)
        beats = asyncio.create_task(beating(hand, observer))

        state = await supervised.until(SESSION, lambda s: s.runs == 2, "the objective goes on without the observer")
        beats.cancel()

        assert CauseType.RECOVERY_FAILED in [cause.type for cause in state.recent]
