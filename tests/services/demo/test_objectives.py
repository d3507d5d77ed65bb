"""The objectives of the demo reach the ends of their plots, and it is told loudly when one does not."""

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.supervised import Supervised, supervising
from tests.waiting import wait_until
from turngate.demo.objectives import Campaign
from turngate.demo.plots import CREW, FRAGILE, LONG_MS, Plot, plots, scenarios
from turngate.jetstream.embedded import EmbeddedServer
from turngate.runner.adapters.scripted import ScriptedAdapter
from turngate_contracts import codec
from turngate_protocol.esm import parse_audit, parse_recovery, parse_worker
from turngate_protocol.esm.errors import InvalidReportError
from turngate_protocol.esm.objective import Status

PARSERS = {"worker": parse_worker, "critic": parse_audit, "audit": parse_audit, "recovery": parse_recovery}


@pytest_asyncio.fixture
async def scene(nats_server: EmbeddedServer, namespace: str) -> AsyncIterator[Supervised]:
    async with supervising(nats_server.url, namespace) as made:
        yield made


async def campaign(scene: Supervised, told: list[Plot], noted: list[str]) -> Campaign:
    """Objectives with hosts of this process; nobody is killed here."""

    async def kill(identity: str) -> None:
        raise AssertionError(f"{identity} was to be killed")

    played = scenarios(0.01) | {plot.session: list(plot.runs) for plot in told}
    await scene.host(ScriptedAdapter(played), pools=(CREW, FRAGILE), slots=8)
    client = await scene.system.client("you", CREW)
    return Campaign(client, told, kill, lambda about, word, sentence: noted.append(f"{about} {word} {sentence}"))


def test_every_ending_and_every_act_has_a_plot():
    told = plots()
    assert {plot.status for plot in told} == {Status.COMPLETE, Status.BLOCKED, Status.USAGE_LIMITED}
    assert {plot.act for plot in told} == {"", "pause", "edit", "kill"}
    assert [plot.pool for plot in told if plot.act == "kill"] == [FRAGILE]
    ScriptedAdapter(scenarios(0.5))


def test_what_the_agents_answer_is_a_report_but_for_the_one_that_chats():
    for plot in plots():
        for run in plot.runs:
            for role, step in run.items():
                if isinstance(step.get("response"), str):
                    with pytest.raises(InvalidReportError):
                        parse_worker(step["response"])
                elif "response" in step:
                    PARSERS[role](codec.encode(step["response"]).decode())
                else:
                    assert "failure" in step or step["delay_ms"] == LONG_MS


async def test_each_objective_without_a_crash_reaches_its_end(scene: Supervised):
    noted: list[str] = []
    told = [plot for plot in plots() if plot.act != "kill"]
    played = await campaign(scene, told, noted)

    await asyncio.wait_for(played.play(), 60)

    assert played.failures == []
    assert played.unfinished() == []
    assert played.ended == {plot.session: plot.status.value for plot in told}
    assert played.summary()["count"] == len(told)
    assert any("rejected" in note for note in noted)


async def test_an_objective_that_ends_elsewhere_is_a_failure(scene: Supervised):
    (honest,) = (plot for plot in plots() if plot.session == "parser-tests")
    played = await campaign(scene, [honest._replace(status=Status.BLOCKED)], [])

    await asyncio.wait_for(played.play(), 60)

    assert played.failures == ["objective parser-tests should be blocked and is complete"]


async def test_an_objective_to_which_something_never_happened_is_a_failure(scene: Supervised):
    (honest,) = (plot for plot in plots() if plot.session == "parser-tests")
    (paused,) = (plot for plot in plots() if plot.act == "pause")
    played = await campaign(scene, [honest._replace(must=paused.must)], [])

    await asyncio.wait_for(played.play(), 60)

    assert sorted(played.failures) == [
        "objective parser-tests: guided never happened",
        "objective parser-tests: paused never happened",
        "objective parser-tests: resumed never happened",
    ]


async def test_an_objective_that_does_not_end_says_where_it_stands(scene: Supervised):
    (slow,) = (plot for plot in plots() if plot.act == "kill")
    played = await campaign(scene, [slow._replace(act="")], [])
    playing = asyncio.create_task(played.play())

    await wait_until(lambda: "running worker" in played.unfinished()[0], 20, "its worker runs")
    playing.cancel()
    await asyncio.gather(playing, return_exceptions=True)

    assert played.unfinished() == ["objective night-migration should be complete: it is active, running worker"]
