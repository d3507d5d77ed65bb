"""Who may: tokens, sessions, the host check, the rate limit; and where the console does not start at all."""

import asyncio
import contextlib
from pathlib import Path

import httpx
import pytest

from tests.services.console.serving import Console, Page, card, started
from tests.waiting import wait_until
from turngate.console.limits import PER_ADDRESS, WINDOW_S
from turngate.console.service import NeedsTokens
from turngate.console.tokens import Role

pytestmark = pytest.mark.asyncio(loop_scope="module")

PAGES = ("/", "/sessions", "/sessions/s1", "/questions", "/objectives", "/tasks", "/fleet")
API = ("/api/v1/inbox", "/api/v1/sessions/s1", "/live", "/api/v1/events")


async def test_on_loopback_and_without_tokens_nobody_needs_one(shared: Console, visitor: Page) -> None:
    assert (await visitor.get("/")).status_code == 200
    assert (await visitor.get("/api/v1/inbox")).status_code == 200


async def test_once_there_are_tokens_nothing_is_shown_without_one(shared: Console, visitor: Page) -> None:
    shared.add_token("ann")

    for path in PAGES:
        found = await visitor.get(path)
        assert (found.status_code, found.headers["location"]) == (303, f"/login?next={path}")
    for path in API:
        refused = await visitor.get(path, accept="application/json")
        assert (refused.status_code, refused.json()["code"]) == (401, "not_signed_in"), path
    assert (await visitor.get("/healthz")).status_code == 200
    assert (await visitor.get("/static/icon.svg")).status_code == 200


async def test_without_the_last_token_nobody_gets_in(shared: Console, visitor: Page) -> None:
    shared.add_token("ann")
    shared.tokens.remove("ann")

    assert (await visitor.get("/")).status_code == 303


async def test_a_log_in_opens_a_session_in_a_cookie_that_no_script_and_no_other_site_gets(
    shared: Console, visitor: Page
) -> None:
    await visitor.get("/")
    before = dict(visitor.http.cookies)
    token = shared.add_token("ann")

    done = await visitor.log_in(token)
    found = await visitor.get("/")

    cookie = done.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert "max-age=" in cookie
    assert token not in cookie
    assert dict(visitor.http.cookies) != before
    assert found.status_code == 200
    assert "ann" in found.text


async def test_behind_a_proxy_with_tls_the_cookie_is_for_tls_alone(shared: Console, visitor: Page) -> None:
    token = shared.add_token("ann")
    await visitor.get("/login")

    done = await visitor.post("/login", token=token, headers={"x-forwarded-proto": "https"})

    assert "secure" in done.headers["set-cookie"].lower()


async def test_a_log_in_without_a_script_leads_to_where_one_wanted_to_go(shared: Console, visitor: Page) -> None:
    token = shared.add_token("ann")
    asked = await visitor.get("/sessions")
    await visitor.get(asked.headers["location"])

    done = await visitor.post("/login", as_json=False, token=token, next="/sessions")
    strange = await visitor.post("/login", as_json=False, token=token, next="//evil.example")

    assert (done.status_code, done.headers["location"]) == (303, "/sessions")
    assert strange.status_code in (303, 403)
    assert "evil" not in strange.headers.get("location", "")


async def test_a_wrong_token_is_told_and_not_shown_again(shared: Console, visitor: Page) -> None:
    shared.add_token("ann")
    await visitor.get("/login")

    done = await visitor.post("/login", as_json=False, token="tgc_<b>wrong</b>")

    assert done.status_code == 401
    assert "no token of this console" in done.text
    assert "wrong</b>" not in done.text


async def test_a_viewer_looks_and_does_not_act(shared: Console, visitor: Page) -> None:
    await card(await shared.system.client(), "viewed")
    await visitor.log_in(shared.add_token("vic", Role.VIEWER))

    shown = await visitor.get("/sessions/viewed")
    form = await visitor.post("/sessions/viewed/answer", turn=1, option=1)
    program = await visitor.http.post(
        "/api/v1/sessions/viewed/answer", json={"turn": 1, "number": 1}, headers={"turngate-csrf": visitor.csrf}
    )

    assert shown.status_code == 200
    assert 'action="/sessions/viewed/answer"' not in shown.text
    for done in (form, program):
        assert (done.status_code, done.json()["code"]) == (403, "forbidden")


async def test_an_operator_acts_under_the_name_of_the_token(shared: Console, visitor: Page) -> None:
    client = await shared.system.client()
    await card(client, "operated")
    await visitor.log_in(shared.add_token("olga"))
    await visitor.get("/sessions/operated")

    done = await visitor.post("/sessions/operated/answer", turn=1, option=1)

    assert done.status_code == 200, done.text
    answer = (await client.get("operated")).state.current.answer
    assert answer is not None
    assert answer.actor == "olga"


async def test_a_program_shows_its_token_and_needs_no_cookie(shared: Console) -> None:
    client = await shared.system.client()
    await card(client, "programmed")
    bearer = {"authorization": f"Bearer {shared.add_token('bot')}"}

    async with httpx.AsyncClient(base_url=shared.url, headers=bearer) as program:
        inbox = await program.get("/api/v1/inbox")
        done = await program.post("/api/v1/sessions/programmed/answer", json={"turn": 1, "number": 1})

    assert "programmed" in [entry["session"] for entry in inbox.json()["entries"]]
    assert done.json()["answer"]["actor"] == "bot"


async def test_removing_a_token_ends_its_sessions_and_its_requests(shared: Console, visitor: Page) -> None:
    token = shared.add_token("ann")
    shared.add_token("bob")
    await visitor.log_in(token)
    assert (await visitor.get("/")).status_code == 200

    shared.tokens.remove("ann")

    assert (await visitor.get("/")).status_code == 303
    assert (await visitor.get("/api/v1/inbox", authorization=f"Bearer {token}")).status_code == 401


async def test_a_token_of_the_same_name_does_not_bring_a_session_back(shared: Console, visitor: Page) -> None:
    await visitor.log_in(shared.add_token("ann"))

    shared.tokens.remove("ann")
    shared.add_token("ann")

    assert (await visitor.get("/")).status_code == 303


async def test_who_logs_out_is_out(shared: Console, visitor: Page) -> None:
    await visitor.log_in(shared.add_token("ann"))
    await visitor.get("/")

    left = await visitor.post("/logout")

    assert left.headers["location"] == "/login"
    assert (await visitor.get("/")).status_code == 303


async def test_a_log_in_needs_the_page_that_asks_for_it(shared: Console, visitor: Page) -> None:
    token = shared.add_token("ann")

    done = await visitor.post("/login", token=token)

    assert (done.status_code, done.json()["code"]) == (403, "csrf")


async def test_a_cookie_of_somebody_else_s_making_is_nothing(shared: Console, visitor: Page) -> None:
    shared.add_token("ann")
    await visitor.get("/login")
    (name,) = visitor.http.cookies
    visitor.http.cookies.set(name, visitor.http.cookies[name][:-4] + "AAAA")

    assert (await visitor.get("/")).status_code == 303


async def test_wrong_tokens_are_slowed_down_and_say_how_long(shared: Console, visitor: Page) -> None:
    token = shared.add_token("ann")
    await visitor.get("/login")
    for _ in range(PER_ADDRESS):
        assert (await visitor.post("/login", token="tgc_wrong")).status_code == 401

    refused = await visitor.post("/login", token=token)
    program = await visitor.get("/api/v1/inbox", authorization="Bearer tgc_other")

    for done in (refused, program):
        assert (done.status_code, done.json()["code"]) == (429, "too_many")
        assert 1 <= int(done.headers["retry-after"]) <= WINDOW_S + 1


async def test_only_names_of_this_console_are_answered(shared: Console, visitor: Page) -> None:
    port = shared.url.rsplit(":", 1)[1].rstrip("/")
    named = ("localhost", f"localhost:{port}", f"127.0.0.1:{port}", f"[::1]:{port}", "192.168.7.9", "LOCALHOST.")
    strange = ("evil.example", f"evil.example:{port}", "localhost.evil.example", "127.0.0.1.evil.example", ":80")
    for host in named:
        assert (await visitor.get("/healthz", host=host)).status_code == 200, host
    for host in strange:
        refused = await visitor.get("/healthz", host=host)
        assert (refused.status_code, refused.json()["code"]) == (421, "wrong_host"), host


async def test_another_address_needs_tokens_first(shared: Console, tmp_path: Path) -> None:
    place = {"console_host": "0.0.0.0", "state_dir": str(tmp_path)}
    async with contextlib.AsyncExitStack() as stack:
        with pytest.raises(NeedsTokens, match="turngate console token add"):
            await started(shared.system, stack, **place)

        shared.add_token("ann")
        service = await started(shared.system, stack, **place)
        async with httpx.AsyncClient(base_url=service.url) as client:
            assert (await client.get("/")).status_code == 303


async def test_where_clients_need_identities_a_browser_needs_a_token(shared: Console) -> None:
    async with contextlib.AsyncExitStack() as stack:
        service = await started(shared.system, stack, nats_seed_file="/seeds/console.seed")
        async with httpx.AsyncClient(base_url=service.url) as client:
            assert (await client.get("/")).status_code == 303


async def test_a_name_that_is_set_is_answered_too(shared: Console) -> None:
    async with contextlib.AsyncExitStack() as stack:
        service = await started(shared.system, stack, console_hosts="gate.example, other.example")
        async with httpx.AsyncClient(base_url=service.url) as client:
            assert (await client.get("/healthz", headers={"host": "gate.example:443"})).status_code == 200
            assert (await client.get("/healthz", headers={"host": "evil.example"})).status_code == 421


async def test_the_stream_of_a_removed_token_ends(shared: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("turngate.console.live.HEARTBEAT_S", 0.1)
    bearer = {"authorization": f"Bearer {shared.add_token('bot')}"}
    async with (
        httpx.AsyncClient(base_url=shared.url, headers=bearer) as program,
        program.stream("GET", "/api/v1/events") as stream,
    ):
        assert stream.status_code == 200
        shared.tokens.remove("bot")
        async with asyncio.timeout(10):
            _rest = [line async for line in stream.aiter_lines()]
    await wait_until(lambda: shared.service.hub.open == 0)
