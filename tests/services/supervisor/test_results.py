"""Results that lie, repeat, come late, or are no results: none of them moves an objective where it should not go."""

from typing import Any

import pytest
from msgspec.structs import replace

from tests import esm_answers as answers
from tests.supervised import Hand, Supervised
from tests.waiting import wait_until
from turngate_contracts import codec
from turngate_contracts.esm import RoleEnded, StartObjective
from turngate_protocol.esm.evidence import Evidence
from turngate_protocol.esm.role_reports import RESPONSE_BYTES
from turngate_protocol.esm.roles import RoleRequest
from turngate_protocol.esm.state import CauseType, EsmState

SESSION = "session-1"
HUGE = 10**30


async def a_worker(supervised: Supervised) -> tuple[Hand, RoleRequest]:
    """An objective whose worker a runner holds."""
    person, hand = await supervised.person(), await supervised.runner()
    await person.create(SESSION, "Do all of it")
    return hand, await hand.claim(SESSION)


def reasons(state: EsmState) -> list[str]:
    """Why results were ignored, oldest first."""
    causes = (*state.ignored, state.cause)
    return [c.reason for c in causes if c is not None and c.type is CauseType.RESULT_IGNORED]


async def test_the_same_result_three_times_is_applied_once(supervised: Supervised):
    hand, request = await a_worker(supervised)
    ended = hand.ended(request, answers.CONTINUE)

    for _ in range(3):
        await hand.publish(ended)

    state = await supervised.until(SESSION, lambda s: "duplicate" in reasons(s))
    assert state.objective is not None
    assert state.objective.tokens_used == 7
    assert state.runs == 2


async def test_a_result_that_comes_before_the_claim_changes_nothing(supervised: Supervised):
    person, hand = await supervised.person(), await supervised.runner()
    await person.create(SESSION, "Do all of it")
    state = await supervised.until_offered(SESSION)
    assert state.continuation is not None
    run = state.continuation.role_run

    await hand.publish(RoleEnded(SESSION, "hand-1", run.id, state.generation, "hand-1-c1", answers.CANDIDATE))

    state = await supervised.until(SESSION, lambda s: reasons(s) == ["not_claimed"])
    assert state.objective is not None
    assert state.objective.status == "active"
    await hand.claim(SESSION)  # it can still be claimed


@pytest.mark.parametrize(
    "changed",
    [
        {"role_run": "nobodys-1-worker"},
        {"generation": 1},
        {"generation": -5},
        {"generation": 2**70},
        {"claim": "anothers"},
    ],
    ids=str,
)
async def test_a_result_of_another_run_changes_nothing(supervised: Supervised, changed: dict[str, Any]):
    hand, request = await a_worker(supervised)

    await hand.publish(hand.ended(request, answers.CANDIDATE, **changed))

    state = await supervised.until(SESSION, lambda s: reasons(s) != [])
    assert state.objective is not None
    assert (state.objective.status, state.objective.tokens_used) == ("active", 0)
    await hand.report(request, answers.CANDIDATE)  # the true one still counts
    await supervised.until_offered(SESSION, "critic")


async def test_another_runner_s_result_changes_nothing(supervised: Supervised):
    _, request = await a_worker(supervised)
    thief = await supervised.runner("thief")

    await thief.report(request, answers.CANDIDATE)

    state = await supervised.until(SESSION, lambda s: reasons(s) == ["other_claim"])
    assert state.objective is not None
    assert state.objective.status == "active"


async def test_a_result_for_a_cleared_objective_can_not_touch_the_next(supervised: Supervised):
    hand, request = await a_worker(supervised)
    person = await supervised.person("bob")
    await person.clear(SESSION)
    await person.create(SESSION, "Another one")

    await hand.report(request, answers.CANDIDATE)

    state = await supervised.until(SESSION, lambda s: "cleared" in reasons(s))
    assert state.objective is not None
    assert (state.objective.status, state.objective.tokens_used) == ("active", 0)


async def test_a_result_for_a_session_that_never_was_makes_no_objective(supervised: Supervised):
    hand = await supervised.runner()

    await hand.publish(RoleEnded("nowhere", "hand-1", "r-1-worker", 3, "c-1", answers.CANDIDATE))

    state = await supervised.until("nowhere", lambda s: reasons(s) == ["unknown"])
    assert state.objective is None
    assert (await supervised.supervisor.lane.lanes.store.load("nowhere")).revision > 0


@pytest.mark.parametrize(
    ("tokens", "duration_ms", "evidence"),
    [
        (-5, -7, Evidence(2, {}, 0)),
        (HUGE, HUGE, Evidence(HUGE, {"bash": HUGE}, 0)),
        (0, 0, Evidence(2, {}, -3)),
    ],
    ids=["negative", "huge", "negative errors"],
)
async def test_counts_that_lie_do_no_harm(supervised: Supervised, tokens, duration_ms, evidence):
    hand, request = await a_worker(supervised)

    await hand.publish(hand.ended(request, answers.CONTINUE, tokens=tokens, duration_ms=duration_ms, evidence=evidence))

    state = await supervised.until(SESSION, lambda s: s.runs == 2)
    assert state.objective is not None
    assert 0 <= state.objective.tokens_used <= 2**53 - 1
    assert 0 <= state.objective.time_used_ms <= 2**53 - 1


HOSTILE = {
    "empty": "",
    "prose": "I am done. It all works.",
    "several objects": f"{answers.CONTINUE}\n{answers.CANDIDATE}",
    "fenced": f"Here:\n```json\n{answers.CANDIDATE}\n```\nbye",
    "truncated": answers.CANDIDATE[:-20],
    "control characters": f"\x00\x1b[2J\x07{answers.CANDIDATE}\x1b]0;x\x07",
    "null bytes inside": answers.worker(summary="a\u0000b"),
    "nested": "[" * 5_000 + "{" * 5_000,
    "just at the limit": answers.CONTINUE + " " * (RESPONSE_BYTES - len(answers.CONTINUE)),
    "over the limit": answers.CANDIDATE + " " * RESPONSE_BYTES,
    "right to left": "\u202e" + answers.CANDIDATE,
}
BELIEVED = {"fenced", "control characters", "right to left"}
GOES_ON = {"several objects", "null bytes inside", "just at the limit"}


@pytest.mark.parametrize("name", HOSTILE)
async def test_whatever_an_agent_answers_is_judged_and_nothing_breaks(supervised: Supervised, name: str):
    hand, request = await a_worker(supervised)

    await hand.report(request, HOSTILE[name])

    state = await supervised.until(
        SESSION, lambda s: s.continuation is None or s.continuation.role_run.id != request.run_id
    )
    assert state.objective is not None
    expected = "complete_candidate" if name in BELIEVED else "active"
    assert state.objective.status == expected
    assert (state.objective.rejection_count == 1) is (name not in BELIEVED | GOES_ON)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[]",
        b'{"session":"session-1"}',
        b"\xff\xfe\x00",
        b'{"session":"session-1","runner":"hand-1","role_run":"r","generation":"x","claim":"c"}',
        b'{"session":"session-1","runner":"hand-1","role_run":"r","generation":1,"claim":"c","failure":"boredom"}',
        b'{"session":"session-1","runner":"hand-1","role_run":"r","generation":1,"claim":"c","response":"\\ud800"}',
        b'{"session":"session-1","runner":"somebody","role_run":"r","generation":1,"claim":"c"}',
        b'{"session":"session-2","runner":"hand-1","role_run":"r","generation":1,"claim":"c"}',
        b'{"session":"session-1","runner":"hand-1","role_run":"r.*.>","generation":1,"claim":"c"}',
        b"{" * 10_000,
    ],
    ids=lambda body: ascii(body[:40]),
)
async def test_a_message_that_is_no_result_is_told_and_put_aside(supervised: Supervised, body: bytes):
    hand, request = await a_worker(supervised)
    before = await supervised.state(SESSION)
    told: list[bytes] = []
    await hand.client.connection.listen(
        supervised.subjects.mailbox("hand-1", "refused"), lambda _s, _r, mail, _h: told.append(mail)
    )

    await hand.publish(body, SESSION)

    await wait_until(lambda: told, why="the runner learns of it")
    letters = await wait_until(lambda: _dead(supervised), why="the message is kept")
    assert letters == 1
    after = await supervised.state(SESSION)
    assert replace(after, op="") == replace(before, op="")
    await hand.report(request, answers.CONTINUE)
    await supervised.until(SESSION, lambda s: s.runs == 2)


async def _dead(supervised: Supervised) -> int:
    info = await supervised.requester.api(f"STREAM.INFO.{supervised.subjects.stream('dead')}")
    return int(info["state"]["messages"])


async def test_a_start_message_starts_the_next_continuation(supervised: Supervised):
    person, hand = await supervised.person(), await supervised.runner()
    await person.create(SESSION, "Do all of it")
    await person.pause(SESSION)
    await person.resume(SESSION)
    await supervised.until_offered(SESSION)
    before = await supervised.state(SESSION)

    await supervised.requester.publish(
        supervised.subjects.esm_start(SESSION), codec.encode(StartObjective(SESSION, "cron", "op-1"))
    )
    await supervised.requester.publish(
        supervised.subjects.esm_start("nowhere"), codec.encode(StartObjective("nowhere", "cron", "op-2"))
    )

    assert await wait_until(lambda: _dead(supervised), why="the start of nothing is put aside") == 1
    state = await supervised.state(SESSION)
    assert state.runs == before.runs  # one was under way: it is not started twice
    await hand.claim(SESSION)
