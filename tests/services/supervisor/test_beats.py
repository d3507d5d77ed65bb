"""Beats: what a runner is told about what it holds, and what others see of it."""

import pytest
from msgspec.structs import replace

from tests import esm_answers as answers
from tests.supervised import POOL, Supervised, refusal
from tests.waiting import wait_until
from turngate_contracts.beats import MAX_HELD, Beat, BeatAnswer, HeldRole, ListRunners, RunnersPage
from turngate_contracts.errors import ErrorCode
from turngate_protocol.esm.objective import COUNTER_LIMIT, Role
from turngate_protocol.esm.steering import BeatAction

SESSION = "session-1"
BEAT = Beat("incarnation-1", (POOL,), (Role.WORKER,), 2)


async def test_a_runner_that_holds_its_role_run_goes_on(supervised: Supervised):
    person, hand = await supervised.person(), await supervised.runner()
    await person.create(SESSION, "Do all of it")
    request = await hand.claim(SESSION)

    assert await hand.action(request) is BeatAction.CONTINUE


@pytest.mark.parametrize("command", ["pause", "clear", "edit"])
async def test_a_runner_whose_role_run_was_given_up_is_told_to_stop(supervised: Supervised, command: str):
    person, hand = await supervised.person(), await supervised.runner()
    await person.create(SESSION, "Do all of it")
    request = await hand.claim(SESSION)

    await (person.edit(SESSION, "Another text") if command == "edit" else getattr(person, command)(SESSION))

    (answer,) = (await hand.beat(request)).answers
    assert answer.action is BeatAction.CANCEL
    assert answer.message == {"pause": "paused", "clear": "cleared", "edit": "edited"}[command]


async def test_a_cancel_is_also_put_into_the_mailbox(supervised: Supervised):
    person, hand = await supervised.person(), await supervised.runner()
    mails: list[bytes] = []
    await hand.client.connection.listen(
        supervised.subjects.mailbox("hand-1", "cancel"), lambda _s, _r, body, _h: mails.append(body)
    )
    await person.create(SESSION, "Do all of it")
    request = await hand.claim(SESSION)

    await person.pause(SESSION)

    await wait_until(lambda: any(request.claim_id.encode() in mail for mail in mails), why="the nudge came")


async def test_a_running_agent_is_steered_once_for_each_version(supervised: Supervised):
    person, hand = await supervised.person(), await supervised.runner()
    await person.create(SESSION, "Do all of it")
    request = await hand.claim(SESSION)
    await hand.client.objectives.update(SESSION, "blocked", "no key", run=request.run_id, generation=request.generation)

    (first,) = (await hand.beat(request)).answers
    (second,) = (await hand.beat(request, version=first.version)).answers

    assert first.action is BeatAction.STEER
    assert "no key" in first.message or "Do all of it" in first.message
    assert second.action is BeatAction.CONTINUE
    assert second.version == first.version


@pytest.mark.parametrize("changed", [{"claim_id": "another"}, {"generation": 77}, {"run_id": "x-1-worker"}], ids=str)
async def test_who_does_not_hold_what_it_says_is_told_to_stop(supervised: Supervised, changed):
    person, hand = await supervised.person(), await supervised.runner()
    await person.create(SESSION, "Do all of it")
    request = await hand.claim(SESSION)

    assert await hand.action(replace(request, **changed)) is BeatAction.CANCEL


async def test_another_runner_that_says_it_holds_it_is_told_to_stop(supervised: Supervised):
    person, hand, thief = await supervised.person(), await supervised.runner(), await supervised.runner("thief")
    await person.create(SESSION, "Do all of it")
    request = await hand.claim(SESSION)

    assert await thief.action(request) is BeatAction.CANCEL


async def test_runners_are_listed_by_name_a_page_at_a_time_and_go_when_they_are_silent(supervised: Supervised):
    person = await supervised.person()
    hands = [await supervised.runner(name) for name in ("hand-b", "hand-a", "hand-c")]
    client = await supervised.system.client("bob")

    async def pages() -> list[RunnersPage]:
        for hand in hands:
            await hand.beat()
        first = await client.call("runner.list", ListRunners(limit=2), RunnersPage)
        rest = await client.call("runner.list", ListRunners(first.cursor), RunnersPage)
        # On a machine that is busy one of them may be taken for silent in between.
        return [first, rest] if len(first.runners) + len(rest.runners) == len(hands) else []

    first, rest = await wait_until(pages, why="all three are listed")
    assert [runner.runner for runner in first.runners] == ["hand-a", "hand-b"]
    assert (first.more, rest.more) == (True, False)
    assert [runner.runner for runner in rest.runners] == ["hand-c"]
    assert await person.runners("another-pool") == []

    async def nobody() -> bool:
        return await person.runners() == []

    await wait_until(nobody, why="they were silent for too long")


async def test_a_role_without_a_runner_says_so_and_starts_when_one_comes(supervised: Supervised):
    person = await supervised.person()
    await person.create(SESSION, "Do all of it")

    found = await person.get(SESSION)
    (entry,) = (await person.page()).entries
    assert (found.activity.kind, found.runners) == ("waiting_for_runner", 0)
    assert (entry.activity.kind, entry.runners) == ("waiting_for_runner", 0)
    assert found.activity.since > 0

    await supervised.host({"default": [{"worker": answers.HANGS}]})
    await supervised.until(SESSION, lambda s: s.continuation is not None and s.continuation.role_run.claim_id)

    async def one() -> bool:
        return (await person.get(SESSION)).runners == 1

    await wait_until(one, why="the runner is known")


@pytest.mark.parametrize(("said", "kept"), [(10**30, COUNTER_LIMIT), (-(10**30), 0)], ids=["huge", "negative"])
async def test_numbers_that_lie_are_kept_as_far_as_everybody_can_read_them(
    supervised: Supervised, said: int, kept: int
):
    hand, person = await supervised.runner(), await supervised.person()
    held = HeldRole(SESSION, "r", Role.WORKER, 1, "c", since=said, version=said, tool_calls=said)

    await hand.client.call("runner.beat", replace(BEAT, slots=said, started_at=said, held=(held,)), BeatAnswer)

    (runner,) = await person.runners()
    (shown,) = runner.held
    assert {runner.slots, runner.started_at, shown.since, shown.version, shown.tool_calls} == {kept}


@pytest.mark.parametrize(
    "beat",
    [
        replace(BEAT, incarnation=""),
        replace(BEAT, pools=()),
        replace(BEAT, pools=("a.b",)),
        replace(BEAT, pools=tuple(f"p{n}" for n in range(65))),
        replace(BEAT, held=(HeldRole(SESSION, "r", Role.WORKER, 1, "*"),)),
        replace(BEAT, held=(HeldRole("", "r", Role.WORKER, 1, "c"),)),
        replace(BEAT, held=tuple(HeldRole(SESSION, f"r{n}", Role.WORKER, 1, "c") for n in range(MAX_HELD + 1))),
    ],
    ids=["incarnation", "no pools", "pool", "pools", "claim", "session", "held"],
)
async def test_a_beat_that_is_none_is_refused(supervised: Supervised, beat: Beat):
    hand = await supervised.runner()

    code = await refusal(hand.client.call("runner.beat", beat, BeatAnswer))

    assert code in (ErrorCode.INVALID_ID, ErrorCode.INVALID_MESSAGE)


async def test_a_beat_of_a_session_that_never_was_is_answered(supervised: Supervised):
    hand = await supervised.runner()

    answer = await hand.client.call(
        "runner.beat", replace(BEAT, held=(HeldRole("nowhere", "r", Role.WORKER, 1, "c"),)), BeatAnswer
    )

    assert [each.action for each in answer.answers] == [BeatAction.CANCEL]
