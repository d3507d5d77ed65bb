"""A role run is held by one claim of one runner: whoever else asks is told so, and starts nothing."""

import asyncio

import pytest

from tests import esm_answers as answers
from tests.supervised import Supervised, offers, refusal
from turngate_contracts.errors import ErrorCode, Refusal
from turngate_contracts.esm import ClaimRole, RoleClaimed
from turngate_protocol.esm.roles import RoleRequest

SESSION = "session-1"


async def test_of_many_claims_at_once_one_wins(supervised: Supervised):
    await supervised.add_supervisor()
    person = await supervised.person()
    hands = [await supervised.runner(f"hand-{number}") for number in range(6)]
    await person.create(SESSION, "Do all of it")

    results = await asyncio.gather(*(hand.claim(SESSION) for hand in hands), return_exceptions=True)

    won = [result for result in results if isinstance(result, RoleRequest)]
    lost = [result for result in results if isinstance(result, Refusal)]
    assert (len(won), len(lost)) == (1, 5)
    assert {(error.code, error.details["reason"]) for error in lost} == {(ErrorCode.CLAIM_REFUSED, "taken")}


async def test_the_same_claim_again_gets_the_same_request(supervised: Supervised):
    person, hand = await supervised.person(), await supervised.runner()
    await person.create(SESSION, "Do all of it")
    (offer,) = offers(await supervised.until_offered(SESSION))
    first = await hand.claim(SESSION, claim="claim-1")
    revision = (await supervised.state(SESSION)).revision

    again = await hand.client.call(
        "role.claim",
        ClaimRole(SESSION, offer.role_run_id, offer.generation, "claim-1"),
        RoleClaimed,
        pool="pool-1",
    )

    assert again.request == first
    assert (await supervised.state(SESSION)).revision == revision


@pytest.mark.parametrize(
    "changed",
    [{"role_run": "x-1-worker"}, {"generation": 99}, {"pool": "pool-2"}, {"session": "nowhere"}],
    ids=str,
)
async def test_a_claim_of_what_was_not_offered_is_refused(supervised: Supervised, changed):
    person, hand = await supervised.person(), await supervised.runner()
    await person.create(SESSION, "Do all of it")

    assert await refusal(hand.claim(SESSION, **changed)) is ErrorCode.CLAIM_REFUSED


@pytest.mark.parametrize("changed", [{"role_run": "a.b"}, {"claim": ""}, {"claim": "*"}, {"session": ">"}], ids=str)
async def test_a_claim_with_an_id_that_is_none_is_refused(supervised: Supervised, changed):
    person, hand = await supervised.person(), await supervised.runner()
    await person.create(SESSION, "Do all of it")

    assert await refusal(hand.claim(SESSION, **changed)) is ErrorCode.INVALID_ID


async def test_a_role_that_was_given_back_is_offered_again_and_its_old_claim_is_over(supervised: Supervised):
    person, hand, other = await supervised.person(), await supervised.runner(), await supervised.runner("hand-2")
    await person.create(SESSION, "Do all of it")
    first = await hand.claim(SESSION)

    assert await hand.release(first) is True
    assert await hand.release(first) is False
    second = await other.claim(SESSION)
    await hand.report(first, answers.CANDIDATE)
    await other.report(second, answers.CONTINUE)

    state = await supervised.until(SESSION, lambda s: s.runs == 2)
    assert second.run_id == first.run_id
    assert [c.reason for c in (*state.ignored, state.cause) if c and c.type == "result_ignored"] == ["other_claim"]


async def test_the_request_says_what_a_reviewer_may_do(supervised: Supervised):
    person, hand = await supervised.person(), await supervised.runner()
    await person.create(SESSION, "Do <all> of it", work_dir="/srv/x", mode="careful")
    worker = await hand.claim(SESSION)
    await hand.report(worker, answers.CANDIDATE)
    await supervised.until_offered(SESSION, "critic")

    critic = await hand.claim(SESSION)

    assert (worker.tools, critic.tools) == (None, ("read", "grep", "find", "ls"))
    assert (critic.work_dir, critic.mode, critic.max_iterations) == ("/srv/x", "careful", -1)
    assert "&lt;all&gt;" in worker.prompt
