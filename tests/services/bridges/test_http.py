"""`turngate mcp --http`: the SDK's client over streamable HTTP, the token, and who is let in by which name."""

import asyncio
import contextlib
import stat
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import httpx2
import pytest
import pytest_asyncio
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import ElicitResult
from msgspec.structs import replace

from tests.services.bridges.agent import BAD, GOOD, QUESTION, SESSION, Agent, question_of, text_of
from tests.waiting import wait_until
from turngate.bridges.mcp import http
from turngate.bridges.mcp.options import Options
from turngate.bridges.mcp.server import TurngateServer

TOKEN = "a-token-of-these-tests"
CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
WANTED = {"accept": "application/json, text/event-stream", "authorization": f"Bearer {TOKEN}"}


class Served:
    """A server over HTTP."""

    def __init__(self, url: str) -> None:
        self.url = url

    @contextlib.asynccontextmanager
    async def agent(self, mode: str = "legacy", elicitation: Any = None, **headers: str) -> AsyncIterator[Agent]:
        """An agent that holds the token."""
        async with (
            httpx2.AsyncClient(headers={"authorization": f"Bearer {TOKEN}", **headers}, timeout=60) as web,
            Client(
                streamable_http_client(self.url, http_client=web), mode=mode, elicitation_callback=elicitation
            ) as client,
        ):
            yield Agent(client, [])

    async def post(self, body: Any = CALL, **headers: str) -> httpx.Response:
        """Send one request as any program might."""
        async with httpx.AsyncClient() as web:
            return await web.post(self.url, json=body, headers=WANTED | headers)


@contextlib.asynccontextmanager
async def serving(options: Options) -> AsyncIterator[Served]:
    """A server on a free port of loopback, in this process."""
    app = http.application(TurngateServer(options), TOKEN, "127.0.0.1")
    listening, url = http.listen("127.0.0.1", 0)
    server = http.web_server(app)
    task = asyncio.create_task(server.serve(sockets=[listening]))
    try:
        await wait_until(lambda: server.started, why="the web server started")
        yield Served(url)
    finally:
        server.should_exit = True
        await task
        listening.close()


@pytest_asyncio.fixture
async def served(options: Options) -> AsyncIterator[Served]:
    """A server whose clients name their sessions by themselves."""
    async with serving(replace(options, session="")) as made:
        yield made


@pytest_asyncio.fixture
async def guarded(alone: Options) -> AsyncIterator[Served]:
    """A server whose guard is looked at, and no services."""
    async with serving(alone) as made:
        yield made


async def test_a_report_is_rejected_repaired_and_accepted(served, person):
    async with served.agent(**{"turngate-session": SESSION}) as one:
        rejected = await one.report(BAD)
        accepted = await one.report(GOOD)

    assert (rejected["outcome"], accepted["outcome"], accepted["attempt"]) == ("rejected", "accepted", 2)
    assert (await person.get(SESSION)).state.current.phase.value == "accepted"


async def test_each_mcp_session_is_a_session_of_its_own_where_none_is_named(served):
    async with served.agent() as one, served.agent() as other:
        first, second = await one.report(GOOD), await other.report(GOOD)

    assert (first["turn"], second["turn"]) == (1, 1)


async def test_a_newer_client_without_mcp_sessions_must_name_its_own(served):
    async with (
        served.agent(mode="2026-07-28") as nameless,
        served.agent(mode="2026-07-28", **{"turngate-session": SESSION}) as named,
    ):
        refused = await nameless.call("Report", GOOD)
        accepted = await named.report(GOOD)

    assert refused.is_error
    assert "configure the header turngate-session" in text_of(refused)
    assert accepted["outcome"] == "accepted"


async def test_a_session_header_that_is_no_id_is_refused(served):
    async with served.agent(**{"turngate-session": "a.b"}) as one:
        result = await one.call("Report", GOOD)

    assert result.is_error
    assert text_of(result).startswith("invalid_id: the header turngate-session 'a.b' is not an id")


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_a_question_is_answered_in_the_client(served, mode):
    async def fill_in(context: Any, params: Any) -> ElicitResult:
        return ElicitResult(action="accept", content={"q1": "Redis"})

    async with served.agent(mode, fill_in, **{"turngate-session": SESSION}) as one:
        result = await one.call("ask_user", QUESTION)

    assert text_of(result) == '{"answers":[{"selections":["Redis"]}]}'


async def test_an_answer_that_found_its_request_cut_off_is_told_when_the_call_is_made_again(served, person):
    began = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "raw", "version": "1"},
    }
    opened = await served.post({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": began})
    session = {"mcp-session-id": opened.headers["mcp-session-id"], "turngate-session": SESSION}
    await served.post({"jsonrpc": "2.0", "method": "notifications/initialized"}, **session)
    ask = {"name": "ask_user", "arguments": QUESTION}

    async with (
        httpx.AsyncClient() as web,
        web.stream(
            "POST",
            served.url,
            json={"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": ask},
            headers=WANTED | session,
        ),
    ):
        request = await question_of(person)
    await person.questions.resolve(SESSION, request, chat="Redis, please")
    again = await served.post({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": ask}, **session)

    assert '{\\"chat\\":\\"Redis, please\\"}' in again.text


@pytest.mark.parametrize("authorization", ["", "Bearer", "Bearer wrong", f"Basic {TOKEN}", TOKEN], ids=str)
async def test_without_the_token_nobody_is_let_in(guarded, authorization):
    refused = await guarded.post(authorization=authorization)

    assert refused.status_code == 401
    assert refused.json()["code"] == "unauthorized"
    assert "Authorization: Bearer TOKEN" in refused.json()["message"]
    assert refused.headers["www-authenticate"].startswith("Bearer")


async def test_a_name_that_was_resolved_to_this_machine_is_refused(guarded):
    refused = await guarded.post(host="evil.example")

    assert refused.status_code == 421


async def test_a_page_of_another_origin_is_refused(guarded):
    refused = await guarded.post(origin="https://evil.example")

    assert refused.status_code == 403


async def test_a_call_before_initialisation_is_refused(guarded):
    refused = await guarded.post()

    assert refused.status_code == 400
    assert "error" in refused.json()


async def test_a_body_over_the_limit_is_refused_unread(guarded):
    refused = await guarded.post({"x": "y" * 5 * 1024 * 1024})

    assert refused.status_code == 413


def test_a_token_is_made_once_and_for_the_user_alone(tmp_path):
    made, file = http.token_of(None, {}, tmp_path / "agents")
    again, _ = http.token_of(None, {}, tmp_path / "agents")

    assert made == again
    assert file is not None
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_token_in_the_environment_wins_over_the_made_one(tmp_path):
    assert http.token_of(None, {http.TOKEN_VARIABLE: TOKEN}, tmp_path) == (TOKEN, None)


@pytest.mark.parametrize(("text", "mode", "problem"), [(TOKEN, 0o644, "chmod 600"), ("short", 0o600, "16 or more")])
def test_a_token_file_that_others_read_or_that_is_easily_guessed_is_refused(tmp_path: Path, text, mode, problem):
    file = tmp_path / "token"
    file.write_text(text)
    file.chmod(mode)

    with pytest.raises(http.TokenUnusable, match=problem):
        http.token_of(file, {}, tmp_path)
