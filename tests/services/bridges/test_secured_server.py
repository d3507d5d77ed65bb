"""On a server with accounts the tools act as a runner: they report, ask and conclude, and answer for nobody."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp_types import ElicitResult
from msgspec.structs import replace

from tests.secured import POOL, Secured, secured
from tests.services.bridges.agent import GOOD, QUESTION, SESSION, agent, options_for, question_of, running_call, text_of


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Secured]:
    """A server that knows everybody by a key."""
    with secured(tmp_path / "secured") as made:
        yield made


async def test_a_runner_s_key_is_all_that_the_tools_need_and_only_people_answer(server, tmp_path):
    tried: list[str] = []

    async def fill_in(context: Any, params: Any) -> ElicitResult:
        tried.append(params.message)
        return ElicitResult(action="accept", content={"q1": "Postgres"})

    options = replace(options_for(server.settings("r1"), tmp_path, pool=POOL), identity="r1", login=server.login("r1"))
    async with server.services():
        person = await server.client("ann")
        async with person, agent(options, elicitation=fill_in) as one:
            reported = await one.report(GOOD)
            claimed = await one.call("update_esm", {"status": "complete", "reason": "done"})
            async with running_call(one, "ask_user", QUESTION) as call:
                await person.questions.resolve(SESSION, await question_of(person), chat="Redis")
                answered = await call
            outcome = (await person.questions.get(SESSION)).outcome

    assert reported["outcome"] == "accepted"
    assert text_of(claimed).startswith("not_found: ")
    assert text_of(answered) == '{"chat":"Redis"}'
    assert outcome is not None
    assert outcome.by == "ann", "a form in the client may not answer for a person"
    assert len(tried) <= 1
