"""A task that ended gets its one conclusion, judged where its files are, and its parent is told once."""

import contextlib
from pathlib import Path

import pytest

from tests.fundamentals.reports import CARD
from tests.running import System
from tests.services.conclusion.conftest import Start
from tests.services.conclusion.tasks import block, concluded, finished, judged, prompts_of, success
from tests.waiting import wait_until
from turngate.runner import TurnClient
from turngate_contracts.errors import ErrorCode, InvalidMessage, Refusal
from turngate_contracts.tasks import ConclusionEntry
from turngate_protocol.conclusion.record import ConclusionPhase, prompt_id


async def test_a_success_whose_files_exist_is_believed(system: System, root: Path):
    runner = await system.client()
    await runner.serve_stat([root])

    await runner.finish_task("parent", finished("t1", success("made.txt", f"{root}/made.txt"), root))

    conclusion, gate = judged(await concluded(runner))
    assert (conclusion.status, conclusion.warnings) == ("success", ())
    assert gate.verified_artifacts == ("made.txt", f"{root}/made.txt")


async def test_a_success_that_cites_a_missing_file_is_partial_and_says_so(system: System, root: Path):
    runner = await system.client()
    await runner.serve_stat([root])

    await runner.finish_task("parent", finished("t1", success("made.txt", "invented.txt"), root))

    conclusion, gate = judged(await concluded(runner))
    assert conclusion.status == "partial"
    assert conclusion.artifacts == ("made.txt", "invented.txt")
    assert gate.missing_artifacts == ("invented.txt",)
    assert "invented.txt" in conclusion.warnings[0]


async def test_a_line_of_a_file_is_checked_as_the_file(system: System, root: Path):
    runner = await system.client()
    await runner.serve_stat([root])

    await runner.finish_task(
        "parent", finished("t1", success("made.txt:12", "made.txt#L10-L20", "invented.txt:3"), root)
    )

    _, gate = judged(await concluded(runner))
    assert gate.verified_artifacts == ("made.txt:12", "made.txt#L10-L20")
    assert gate.missing_artifacts == ("invented.txt:3",)


async def test_only_a_success_is_looked_into(system: System):
    runner = await system.client()
    await runner.finish_task("parent", finished("t1", block("status: partial\nsummary: half\nartifacts: [/no/where]")))

    conclusion, gate = judged(await concluded(runner))
    assert conclusion.status == "partial"
    assert not gate.inspected


async def test_a_task_that_failed_without_a_block_gets_a_conclusion_of_its_error(system: System):
    runner = await system.client()
    await runner.finish_task("parent", finished("t1", "no block", status="failed", exit_code=3, error="out of memory"))

    conclusion, _ = judged(await concluded(runner))
    assert conclusion.synthesized
    assert (conclusion.status, conclusion.summary) == ("failed", "out of memory (exit code 3)")


async def test_a_success_without_a_tool_call_carries_a_warning(system: System, root: Path):
    runner = await system.client()
    await runner.serve_stat([root])

    await runner.finish_task("parent", finished("t1", success("made.txt"), root, tool_calls=0))

    conclusion, gate = judged(await concluded(runner))
    assert conclusion.status == "success"
    assert "no tool call" in conclusion.warnings[0]
    assert gate.tool_calls == 0


class TestTheParent:
    async def test_it_gets_one_prompt_in_its_pool(self, system: System, root: Path):
        runner = await system.client()
        await runner.serve_stat([root])
        await runner.finish_task("parent", finished("t1", success("made.txt", "invented.txt"), root))

        state = await concluded(runner)

        (prompt,) = await prompts_of(system)
        assert prompt["session"] == "parent"
        assert prompt["id"] == prompt_id("parent", "t1")
        assert prompt["kind"] == "conclusion"
        assert prompt["text"] == state.message
        assert prompt["text"].startswith("[delegated-result task=t1 engine=engine-1 project=host status=partial")
        assert "  - made.txt (16 B)\n  - invented.txt (missing)\n" in prompt["text"]

    async def test_it_is_not_disturbed_while_its_card_waits(self, system: System):
        runner, person = await system.client(), await system.client("ann")
        await runner.submit_report("parent", 1, CARD)
        await runner.finish_task("parent", finished("t1", "done"))
        state = await concluded(runner)
        held = (await runner.get("parent")).state.held
        assert [prompt.id for prompt in held] == [prompt_id("parent", "t1")]
        assert await prompts_of(system) == []

        await person.dismiss("parent", 1)

        async with contextlib.aclosing(runner.prompts()) as prompts:
            incoming = await anext(prompts)
            await incoming.take()
        assert incoming.prompt.text == state.message

    async def test_one_whose_session_nobody_knows_yet_is_told_through_its_pool(self, system: System):
        runner = await system.client()
        await runner.finish_task("nobody", finished("t1", "done"))

        state = await concluded(runner, session="nobody")

        assert state.refusal is None
        assert [prompt["session"] for prompt in await prompts_of(system)] == ["nobody"]

    async def test_one_of_another_pool_is_not_told_and_nothing_is_concluded(self, system: System):
        web = await system.client("runner-2", "web")
        await web.submit_report("parent", 1, CARD)
        runner = await system.client()

        await runner.finish_task("parent", finished("t1", "done"))

        await wait_until(lambda: nothing_left(system), why="the task is handled")
        with pytest.raises(Refusal) as unknown:
            await runner.conclusion("parent", "t1")
        assert unknown.value.code == ErrorCode.NOT_FOUND
        assert await prompts_of(system) == await prompts_of(system, "web") == []

    async def test_one_of_another_pool_is_told_when_its_pool_is_named(self, system: System):
        web = await system.client("runner-2", "web")
        await web.submit_report("parent", 1, b"{}")
        runner = await system.client()

        await runner.finish_task("parent", finished("t1", "done"), pool="web")

        assert (await concluded(runner)).refusal is None
        assert len(await prompts_of(system, "web")) == 1


class TestTellingAgain:
    async def test_the_same_ending_changes_nothing(self, system: System, root: Path):
        runner = await system.client()
        await runner.serve_stat([root])
        task = finished("t1", success("made.txt"), root)
        await runner.finish_task("parent", task)
        before = await concluded(runner)

        await runner.finish_task("parent", task)

        await _until_handled(system)
        assert await concluded(runner) == before
        assert len(await prompts_of(system)) == 1

    async def test_another_ending_is_a_conflict_and_the_first_stands(self, system: System, root: Path):
        runner, other = await system.client(), await system.client("runner-2")
        await runner.serve_stat([root])
        await runner.finish_task("parent", finished("t1", success("made.txt"), root))
        before = await concluded(runner)

        await other.finish_task("parent", finished("t1", "something else", status="failed"))

        await wait_until(lambda: _conflicts(runner), why="the conflict is recorded")
        state = await concluded(runner)
        assert state.conclusion == before.conclusion
        assert [(c.runner, c.status) for c in state.conflicts] == [("runner-2", "failed")]
        assert len(await prompts_of(system)) == 1

    async def test_the_same_id_in_another_session_is_another_task(self, system: System):
        runner = await system.client()
        await runner.finish_task("a", finished("t1", "first"))
        await runner.finish_task("b", finished("t1", "second"))

        assert (await concluded(runner, session="a")).conclusion != (await concluded(runner, session="b")).conclusion
        assert len(await prompts_of(system)) == 2


async def test_every_step_is_an_event(system: System, root: Path):
    runner = await system.client()
    await runner.serve_stat([root])
    await runner.finish_task("parent", finished("t1", success("invented.txt"), root))
    await concluded(runner)

    async def story() -> list[str] | None:
        kinds = [e.type async for e in runner.events(kind="conclusions", key="parent.t1", until_caught_up=True)]
        return kinds if len(kinds) == 3 else None

    assert await wait_until(story, why="the events are there") == [
        "turngate.conclusion.received",
        "turngate.conclusion.downgraded",
        "turngate.conclusion.prompt_sent",
    ]


class TestAsking:
    async def test_a_task_that_nobody_told_of_is_not_found(self, system: System):
        client = await system.client()
        with pytest.raises(Refusal) as error:
            await client.conclusion("parent", "t1")
        assert error.value.code is ErrorCode.NOT_FOUND

    async def test_a_list_shows_each_task_once_at_its_newest(self, system: System):
        runner = await system.client()
        for number in range(7):
            await runner.finish_task("parent", finished(f"t{number}", f"output {number}"))
        for number in range(7):
            await concluded(runner, f"t{number}")

        shown: list[ConclusionEntry] = []
        cursor, more = 0, True
        while more:
            page = await runner.conclusions(cursor, 3)
            assert len(page.entries) <= 3
            shown += page.entries
            cursor, more = page.cursor, page.more

        assert sorted(entry.task for entry in shown) == [f"t{number}" for number in range(7)]
        assert {entry.phase for entry in shown} == {ConclusionPhase.SETTLED}
        assert {entry.title for entry in shown} == {f"output {number}" for number in range(7)}

    async def test_a_list_may_begin_with_what_changed_last(self, system: System):
        runner = await system.client()
        told = [("parent" if number % 2 else "other", f"t{number}") for number in range(7)]
        for session, task in told:
            await runner.finish_task(session, finished(task, task))
            await concluded(runner, task, session)

        shown: list[tuple[str, str]] = []
        cursor, more = 0, True
        while more:
            page = await runner.conclusions(cursor, 3, newest=True)
            assert len(page.entries) <= 3
            shown += [(entry.session, entry.task) for entry in page.entries]
            cursor, more = page.cursor, page.more
        of_parent = await runner.conclusions(session="parent", newest=True)

        assert shown == told[::-1]
        assert [entry.task for entry in of_parent.entries] == ["t5", "t3", "t1"]

    async def test_a_list_may_be_of_one_session(self, system: System):
        runner = await system.client()
        for session in ("a", "ab", "b"):
            await runner.finish_task(session, finished("t1", session))
            await concluded(runner, session=session)

        page = await runner.conclusions(session="a")

        assert [(entry.session, entry.task) for entry in page.entries] == [("a", "t1")]
        assert (await runner.conclusions(session="none")).entries == ()

    async def test_a_cursor_that_is_none_is_refused(self, system: System):
        client = await system.client()
        with pytest.raises(Refusal) as error:
            await client.conclusions(cursor=-1)
        assert error.value.code is InvalidMessage.code


class TestSettings:
    async def test_without_the_fallback_a_task_without_a_block_has_no_conclusion(self, start: Start):
        async with start(synthesize="off") as system:
            runner = await system.client()
            await runner.finish_task("parent", finished("t1", "no block"))

            state = await concluded(runner)

            assert state.conclusion is None
            assert state.message.endswith("(no conclusion captured)")
            assert len(await prompts_of(system)) == 1

    async def test_a_gate_that_is_off_believes_everything(self, start: Start):
        async with start(evidence="off") as system:
            runner = await system.client()
            await runner.finish_task("parent", finished("t1", success("/no/where")))

            conclusion, gate = judged(await concluded(runner))

            assert (conclusion.status, gate.inspected) == ("success", False)

    async def test_a_shared_directory_is_looked_into_instead_of_asking(self, start: Start, root: Path):
        async with start(shared_dir=str(root)) as system:
            runner = await system.client()  # it serves no files
            await runner.finish_task("parent", finished("t1", success("made.txt", "no.txt", "/etc/passwd"), root))

            _, gate = judged(await concluded(runner))

            assert gate.verified_artifacts == ("made.txt",)
            assert gate.missing_artifacts == ("no.txt",)
            assert gate.uncheckable_artifacts == ("/etc/passwd",)


async def _conflicts(client: TurnClient) -> bool:
    return bool((await client.conclusion("parent", "t1")).state.conflicts)


async def _until_handled(system: System) -> None:
    async def handled() -> bool:
        info = await system.requester.api(f"STREAM.INFO.{system.subjects.stream('tasks')}")
        return int(info["state"]["messages"]) == 0

    await wait_until(handled, why="every task message is handled")


async def nothing_left(system: System) -> bool:
    """Whether every task that was published is handled."""
    info = await system.requester.api(f"STREAM.INFO.{system.subjects.stream('tasks')}")
    return bool(info["state"]["last_seq"]) and not info["state"]["messages"]
