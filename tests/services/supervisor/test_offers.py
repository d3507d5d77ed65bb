"""Offers: one ticket for a role run, the newest one, made again when it was forgotten."""

import pytest
from msgspec.structs import replace

from tests import esm_answers as answers
from tests.supervised import POOL, Supervised, offers, supervising
from tests.waiting import wait_until
from turngate.jetstream.embedded import EmbeddedServer
from turngate.supervisor.offers import Offers
from turngate_contracts import codec
from turngate_contracts.errors import ErrorCode, Refusal
from turngate_contracts.esm import RoleOffer
from turngate_protocol.esm.continuation import advance, settle
from turngate_protocol.esm.inputs import Create
from turngate_protocol.esm.objective import Role
from turngate_protocol.esm.state import DEFAULT_POLICY, EsmState

SESSION = "session-1"
OFFER = RoleOffer(SESSION, "run-1-worker", Role.WORKER, 2, POOL, 1_000, 5)


def offering(supervised: Supervised) -> Offers:
    return Offers(supervised.requester, supervised.subjects, DEFAULT_POLICY, POOL)


async def stored(supervised: Supervised, offer: RoleOffer) -> RoleOffer | None:
    subject = supervised.subjects.role_offer(offer.pool, offer.role, offer.role_run)
    stream = supervised.subjects.stream("work")
    reply = await supervised.requester.request(f"$JS.API.DIRECT.GET.{stream}.{subject}")
    return codec.decode(reply.body, RoleOffer, "an offer") if reply.body else None


async def test_the_same_offer_again_is_the_same_one(supervised: Supervised):
    made = offering(supervised)

    assert await made.make(OFFER) is True
    assert await made.make(OFFER) is False


async def test_a_newer_offer_replaces_an_older_and_never_the_other_way(supervised: Supervised):
    made = offering(supervised)
    newer = replace(OFFER, revision=9)
    await made.make(OFFER)

    assert await made.make(newer) is True
    assert await made.make(OFFER) is False
    assert await stored(supervised, OFFER) == newer


async def test_a_role_run_that_is_named_as_another_session_s_is_offered_beside_it(supervised: Supervised):
    made = offering(supervised)
    namesake = replace(OFFER, session="session-2")

    assert await made.make(OFFER) is True
    assert await made.make(namesake) is True
    assert await made.make(namesake) is False
    assert await stored(supervised, OFFER) == OFFER


async def test_a_ticket_that_can_not_be_read_is_replaced(supervised: Supervised):
    subject = supervised.subjects.role_offer(POOL, "worker", OFFER.role_run)
    await supervised.requester.publish(subject, b"scribble")

    assert await offering(supervised).make(OFFER) is True


async def test_a_stream_that_is_full_is_not_taken_for_an_offer_that_is_there(supervised: Supervised):
    stream = supervised.subjects.stream("work")
    info = await supervised.requester.api(f"STREAM.INFO.{stream}")
    await supervised.requester.api(f"STREAM.UPDATE.{stream}", {**info["config"], "max_bytes": 1})

    with pytest.raises(Refusal) as refused:
        await offering(supervised).make(OFFER)

    assert refused.value.code is ErrorCode.OVERLOADED


async def test_an_offer_leaves_by_itself(supervised: Supervised):
    made = Offers(supervised.requester, supervised.subjects, DEFAULT_POLICY, POOL)
    made._head = made._head.replace(b"Nats-TTL: 3600s", b"Nats-TTL: 1s")
    await made.make(OFFER)

    async def gone() -> bool:
        return await stored(supervised, OFFER) is None

    await wait_until(gone, why="its time is over")


async def test_a_role_run_whose_ticket_was_forgotten_is_offered_again(nats_server: EmbeddedServer, namespace: str):
    async with supervising(nats_server.url, namespace, redispatch_ms=300) as supervised:
        person = await supervised.person()
        await person.create(SESSION, "Do all of it")
        state = await supervised.until_offered(SESSION)
        assert state.continuation is not None
        run = state.continuation.role_run
        offer = replace(OFFER, role_run=run.id)

        async def is_offered() -> bool:
            return await stored(supervised, offer) is not None

        await wait_until(is_offered, why="it is offered")
        subject = supervised.subjects.role_offer(POOL, "worker", run.id)
        await supervised.requester.api(f"STREAM.PURGE.{supervised.subjects.stream('work')}", {"filter": subject})

        await supervised.host({"default": [answers.COMPLETES]})

        await supervised.until_status(SESSION, "complete")


async def test_a_ticket_that_was_taken_and_dropped_is_offered_again(nats_server: EmbeddedServer, namespace: str):
    async with supervising(nats_server.url, namespace, redispatch_ms=300) as supervised:
        person, hand = await supervised.person(), await supervised.runner()
        await person.create(SESSION, "Do all of it")
        request = await hand.claim(SESSION)
        # Its ticket reaches another runner meanwhile, who is refused and drops it.
        await supervised.host({"default": [answers.COMPLETES]})
        consumer = supervised.subjects.role_consumer(POOL, "worker")

        async def dropped() -> bool:
            name = f"CONSUMER.INFO.{supervised.subjects.stream('work')}.{consumer}"
            info = await supervised.requester.api(name)
            return int(info["delivered"]["consumer_seq"]) >= 1 and info["num_ack_pending"] == 0

        await wait_until(dropped, why="the other runner dropped it")
        await hand.release(request)

        await supervised.until_status(SESSION, "complete")


async def is_offered(supervised: Supervised, session: str) -> bool:
    state = await supervised.until_offered(session)
    assert state.continuation is not None
    return await stored(supervised, replace(OFFER, role_run=state.continuation.role_run.id)) is not None


async def test_a_role_run_is_offered_before_any_reconciler_is_given_its_state(supervised: Supervised):
    await supervised.supervisor.reconciler.stop()
    person = await supervised.person()

    await person.create(SESSION, "Do all of it")

    await wait_until(lambda: is_offered(supervised, SESSION), why="the command itself offered it")


async def test_a_nudge_that_is_lost_costs_time_and_no_role_run(supervised: Supervised, monkeypatch: pytest.MonkeyPatch):
    lost: list[RoleOffer] = []
    monkeypatch.setattr(Offers, "_nudge", lambda _self, offer: lost.append(offer))
    person = await supervised.person()

    await person.create(SESSION, "Do all of it")

    await wait_until(lambda: is_offered(supervised, SESSION), why="the reconciler offered it")
    assert [offer.session for offer in lost] == [SESSION]


async def test_what_a_nudge_has_offered_is_not_offered_again(supervised: Supervised):
    made = offering(supervised)
    state = settle(advance(EsmState(SESSION), Create(text="Do all of it", esm_id="e1", pool=POOL), 1), 1)

    made.nudge(state)
    (effect,) = offers(state)
    offer = made.of(effect, state)
    await wait_until(lambda: made._stored, why="the nudge is confirmed")

    assert await made.make(offer) is False
    assert await stored(supervised, offer) == offer
