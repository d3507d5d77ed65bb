"""Who may: tokens, sessions, the host check, the rate limit; and where the console does not start at all."""

import asyncio
import contextlib
import stat
from pathlib import Path

import httpx
import pytest

from tests.services.console.serving import Console, Page, card, serving, started
from tests.waiting import wait_until
from turngate.console.guard import name_of
from turngate.console.limits import IN_ALL, PER_ADDRESS, REMEMBERED, WINDOW_S, Attempts
from turngate.console.service import NeedsTokens
from turngate.console.sessions import Sessions, load_secret
from turngate.console.tokens import Role, TokenFile, TokenFileError
from turngate.jetstream.embedded import EmbeddedServer

PAGES = ("/", "/sessions", "/sessions/s1", "/questions", "/objectives", "/tasks", "/fleet")
API = ("/api/v1/inbox", "/api/v1/sessions/s1", "/live", "/api/v1/events")


async def test_on_loopback_and_without_tokens_nobody_needs_one(console: Console, page: Page) -> None:
    assert (await page.get("/")).status_code == 200
    assert (await page.get("/api/v1/inbox")).status_code == 200


async def test_once_there_are_tokens_nothing_is_shown_without_one(console: Console, page: Page) -> None:
    console.add_token("ann")

    for path in PAGES:
        found = await page.get(path)
        assert (found.status_code, found.headers["location"]) == (303, f"/login?next={path}")
    for path in API:
        refused = await page.get(path, accept="application/json")
        assert (refused.status_code, refused.json()["code"]) == (401, "not_signed_in"), path
    assert (await page.get("/healthz")).status_code == 200
    assert (await page.get("/static/icon.svg")).status_code == 200


async def test_without_the_last_token_nobody_gets_in(console: Console, page: Page) -> None:
    console.add_token("ann")
    console.tokens.remove("ann")

    assert (await page.get("/")).status_code == 303


async def test_a_log_in_opens_a_session_in_a_cookie_that_no_script_and_no_other_site_gets(
    console: Console, page: Page
) -> None:
    await page.get("/")
    before = dict(page.http.cookies)
    token = console.add_token("ann")

    done = await page.log_in(token)
    found = await page.get("/")

    cookie = done.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert "max-age=" in cookie
    assert token not in cookie
    assert dict(page.http.cookies) != before
    assert found.status_code == 200
    assert "ann" in found.text


async def test_behind_a_proxy_with_tls_the_cookie_is_for_tls_alone(console: Console, page: Page) -> None:
    token = console.add_token("ann")
    await page.get("/login")

    done = await page.post("/login", token=token, headers={"x-forwarded-proto": "https"})

    assert "secure" in done.headers["set-cookie"].lower()


async def test_a_log_in_without_a_script_leads_to_where_one_wanted_to_go(console: Console, page: Page) -> None:
    token = console.add_token("ann")
    asked = await page.get("/sessions")
    await page.get(asked.headers["location"])

    done = await page.post("/login", as_json=False, token=token, next="/sessions")
    strange = await page.post("/login", as_json=False, token=token, next="//evil.example")

    assert (done.status_code, done.headers["location"]) == (303, "/sessions")
    assert strange.status_code in (303, 403)
    assert "evil" not in strange.headers.get("location", "")


async def test_a_wrong_token_is_told_and_not_shown_again(console: Console, page: Page) -> None:
    console.add_token("ann")
    await page.get("/login")

    done = await page.post("/login", as_json=False, token="tgc_<b>wrong</b>")

    assert done.status_code == 401
    assert "no token of this console" in done.text
    assert "wrong</b>" not in done.text


async def test_a_viewer_looks_and_does_not_act(console: Console, page: Page) -> None:
    await card(await console.system.client())
    await page.log_in(console.add_token("vic", Role.VIEWER))

    shown = await page.get("/sessions/s1")
    form = await page.post("/sessions/s1/answer", turn=1, option=1)
    program = await page.http.post(
        "/api/v1/sessions/s1/answer", json={"turn": 1, "number": 1}, headers={"turngate-csrf": page.csrf}
    )

    assert shown.status_code == 200
    assert 'action="/sessions/s1/answer"' not in shown.text
    for done in (form, program):
        assert (done.status_code, done.json()["code"]) == (403, "forbidden")


async def test_an_operator_acts_under_the_name_of_the_token(console: Console, page: Page) -> None:
    client = await console.system.client()
    await card(client)
    await page.log_in(console.add_token("olga"))
    await page.get("/sessions/s1")

    done = await page.post("/sessions/s1/answer", turn=1, option=1)

    assert done.status_code == 200, done.text
    answer = (await client.get("s1")).state.current.answer
    assert answer is not None
    assert answer.actor == "olga"


async def test_a_program_shows_its_token_and_needs_no_cookie(console: Console) -> None:
    client = await console.system.client()
    await card(client)
    bearer = {"authorization": f"Bearer {console.add_token('bot')}"}

    async with httpx.AsyncClient(base_url=console.url, headers=bearer) as program:
        inbox = await program.get("/api/v1/inbox")
        done = await program.post("/api/v1/sessions/s1/answer", json={"turn": 1, "number": 1})

    assert len(inbox.json()["entries"]) == 1
    assert done.json()["answer"]["actor"] == "bot"


async def test_removing_a_token_ends_its_sessions_and_its_requests(console: Console, page: Page) -> None:
    token = console.add_token("ann")
    console.add_token("bob")
    await page.log_in(token)
    assert (await page.get("/")).status_code == 200

    console.tokens.remove("ann")

    assert (await page.get("/")).status_code == 303
    assert (await page.get("/api/v1/inbox", authorization=f"Bearer {token}")).status_code == 401


async def test_a_token_of_the_same_name_does_not_bring_a_session_back(console: Console, page: Page) -> None:
    await page.log_in(console.add_token("ann"))

    console.tokens.remove("ann")
    console.add_token("ann")

    assert (await page.get("/")).status_code == 303


async def test_who_logs_out_is_out(console: Console, page: Page) -> None:
    await page.log_in(console.add_token("ann"))
    await page.get("/")

    left = await page.post("/logout")

    assert left.headers["location"] == "/login"
    assert (await page.get("/")).status_code == 303


async def test_a_log_in_needs_the_page_that_asks_for_it(console: Console, page: Page) -> None:
    token = console.add_token("ann")

    done = await page.post("/login", token=token)

    assert (done.status_code, done.json()["code"]) == (403, "csrf")


async def test_a_cookie_of_somebody_else_s_making_is_nothing(console: Console, page: Page) -> None:
    console.add_token("ann")
    await page.get("/login")
    (name,) = page.http.cookies
    page.http.cookies.set(name, page.http.cookies[name][:-4] + "AAAA")

    assert (await page.get("/")).status_code == 303


async def test_wrong_tokens_are_slowed_down_and_say_how_long(console: Console, page: Page) -> None:
    token = console.add_token("ann")
    await page.get("/login")
    for _ in range(PER_ADDRESS):
        assert (await page.post("/login", token="tgc_wrong")).status_code == 401

    refused = await page.post("/login", token=token)
    program = await page.get("/api/v1/inbox", authorization="Bearer tgc_other")

    for done in (refused, program):
        assert (done.status_code, done.json()["code"]) == (429, "too_many")
        assert 1 <= int(done.headers["retry-after"]) <= WINDOW_S + 1


async def test_only_names_of_this_console_are_answered(console: Console, page: Page) -> None:
    port = console.url.rsplit(":", 1)[1].rstrip("/")
    named = ("localhost", f"localhost:{port}", f"127.0.0.1:{port}", f"[::1]:{port}", "192.168.7.9", "LOCALHOST.")
    strange = ("evil.example", f"evil.example:{port}", "localhost.evil.example", "127.0.0.1.evil.example", ":80")
    for host in named:
        assert (await page.get("/healthz", host=host)).status_code == 200, host
    for host in strange:
        refused = await page.get("/healthz", host=host)
        assert (refused.status_code, refused.json()["code"]) == (421, "wrong_host"), host


def test_a_host_is_its_name_without_its_port() -> None:
    assert name_of("Example.COM:8420") == "example.com"
    assert name_of("[::1]:8420") == "::1"
    assert name_of("[::1") is None
    assert name_of("a:b") is None
    assert name_of("") is None


async def test_another_address_needs_tokens_first(console: Console) -> None:
    async with contextlib.AsyncExitStack() as stack:
        with pytest.raises(NeedsTokens, match="turngate console token add"):
            await started(console.system, stack, console_host="0.0.0.0")

        console.add_token("ann")
        service = await started(console.system, stack, console_host="0.0.0.0")
        async with httpx.AsyncClient(base_url=service.url) as client:
            assert (await client.get("/")).status_code == 303


async def test_a_name_that_is_set_is_answered_too(nats_server: EmbeddedServer, namespace: str, tmp_path: Path) -> None:
    async with (
        serving(nats_server.url, namespace, tmp_path, console_hosts="gate.example, other.example") as console,
        console.browser() as page,
    ):
        assert (await page.get("/healthz", host="gate.example:443")).status_code == 200
        assert (await page.get("/healthz", host="evil.example")).status_code == 421


async def test_the_stream_of_a_removed_token_ends(console: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("turngate.console.live.HEARTBEAT_S", 0.1)
    bearer = {"authorization": f"Bearer {console.add_token('bot')}"}
    async with (
        httpx.AsyncClient(base_url=console.url, headers=bearer) as program,
        program.stream("GET", "/api/v1/events") as stream,
    ):
        assert stream.status_code == 200
        console.tokens.remove("bot")
        async with asyncio.timeout(10):
            _rest = [line async for line in stream.aiter_lines()]
    await wait_until(lambda: console.service.hub.open == 0)


def test_the_file_keeps_no_token_and_is_its_owner_s_alone(tmp_path: Path) -> None:
    file = TokenFile(tmp_path / "new" / "tokens.json")

    token = file.add("ann", Role.VIEWER, 1)

    assert token not in file.path.read_text()
    assert len(token) > 40
    assert stat.S_IMODE(file.path.stat().st_mode) == 0o600
    found = file.match(token)
    assert found is not None
    assert (found.name, found.role) == ("ann", Role.VIEWER)
    assert file.match(f"{token}x") is None
    assert file.match("\ud800") is None


def test_a_file_that_others_may_read_is_not_used(tmp_path: Path) -> None:
    file = TokenFile(tmp_path / "tokens.json")
    file.add("ann", Role.VIEWER, 1)
    file.path.chmod(0o644)

    with pytest.raises(TokenFileError, match="chmod 600"):
        file.tokens()


def test_a_file_of_something_else_is_not_used(tmp_path: Path) -> None:
    path = tmp_path / "tokens.json"
    path.write_text("[]")
    path.chmod(0o600)

    with pytest.raises(TokenFileError, match="move it away"):
        TokenFile(path).tokens()


def test_a_name_has_one_token(tmp_path: Path) -> None:
    file = TokenFile(tmp_path / "tokens.json")
    file.add("ann", Role.VIEWER, 1)

    with pytest.raises(TokenFileError, match="ann has one"):
        file.add("ann", Role.OPERATOR, 2)


def test_a_change_by_another_process_is_seen_at_once(tmp_path: Path) -> None:
    ours, theirs = TokenFile(tmp_path / "tokens.json"), TokenFile(tmp_path / "tokens.json")
    ours.add("ann", Role.VIEWER, 1)

    added = theirs.add("bob", Role.VIEWER, 2)

    assert ours.match(added) is not None
    theirs.remove("bob")
    assert ours.match(added) is None


def test_the_secret_is_made_once(tmp_path: Path) -> None:
    path = tmp_path / "new" / "secret"

    made = load_secret(path)

    assert load_secret(path) == made
    assert len(made) == 32
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [each.name for each in path.parent.iterdir()] == ["secret"]


def test_a_session_s_form_token_is_its_own() -> None:
    sessions = Sessions(b"x" * 32)
    one, other = sessions.read(sessions.write(sessions.open())), sessions.read(sessions.write(sessions.open()))

    assert sessions.is_csrf(one, sessions.csrf(one))
    assert not sessions.is_csrf(other, sessions.csrf(one))
    assert not sessions.is_csrf(one, "é")


def test_attempts_are_forgotten_after_a_while_and_bounded_in_number() -> None:
    now = 1000.0
    attempts = Attempts(lambda: now)
    for _ in range(PER_ADDRESS):
        attempts.failed("a")

    assert attempts.wait_s("a") == WINDOW_S + 1
    assert attempts.wait_s("b") == 0
    now += WINDOW_S + 1
    assert attempts.wait_s("a") == 0
    for number in range(REMEMBERED + 10):
        attempts.failed(str(number))
    assert len(attempts._failures) == REMEMBERED
    assert attempts.wait_s("new") > 0, f"more than {IN_ALL} in all"
