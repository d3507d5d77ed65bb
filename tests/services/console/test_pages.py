"""The pages as a browser without scripts gets them."""

import re
from html import escape
from html.parser import HTMLParser
from urllib.parse import quote

import pytest

from tests.services.conclusion.tasks import concluded, finished, success
from tests.services.console.serving import Console, Page, card, with_text
from tests.services.validation.asking import ask
from tests.waiting import wait_until
from turngate.console import reading
from turngate.console.guard import POLICY
from turngate.jetstream import backwards
from turngate.validation import listing

pytestmark = pytest.mark.asyncio(loop_scope="module")

LISTS = ("/", "/sessions", "/questions", "/objectives", "/tasks", "/fleet")


async def test_every_list_is_there_before_anything_happened(shared: Console) -> None:
    async with shared.browser() as visitor:
        for path in LISTS:
            found = await visitor.get(path)

            assert found.status_code == 200, (path, found.text)
            assert "<main" in found.text
            assert "<title>" in found.text


async def test_a_card_is_on_the_page_of_its_session_and_in_the_inbox(shared: Console, visitor: Page) -> None:
    await card(await shared.system.client())

    for path in ("/", "/sessions/s1"):
        found = await visitor.get(path)

        assert found.status_code == 200
        assert "The migration is ready" in found.text
        assert "Run it on Sunday at 04:00" in found.text
    assert 'action="/sessions/s1/answer"' in found.text


async def test_a_question_an_objective_and_a_task_have_pages(shared: Console, tmp_path) -> None:
    client = await shared.system.client()
    await ask(client, "asked")
    await client.objectives.create("driven", "Make the suite pass")
    await client.finish_task("parent", finished("t1", success(), tmp_path))
    await concluded(client)

    async with shared.browser() as visitor:
        assert "Where shall the data go?" in (await visitor.get("/questions/asked")).text
        assert "Where shall the data go?" in (await visitor.get("/questions")).text
        assert "Make the suite pass" in (await visitor.get("/objectives/driven")).text
        assert "Make the suite pass" in (await visitor.get("/objectives")).text
        assert "It works" in (await visitor.get("/tasks/parent/t1")).text
        assert "t1" in (await visitor.get("/tasks?session=parent")).text
        assert "validation" in (await visitor.get("/fleet")).text


async def test_sessions_are_searched_by_a_form_that_needs_no_script(shared: Console, visitor: Page) -> None:
    client = await shared.system.client()
    await client.submit_report("sought-1", 1, with_text("headline", "A needle & a <b>"), mutated=True)
    await client.end_turn("sought-2", 1)

    for text, found, missing in (("SOUGHT-2", "sought-2", "sought-1"), ("needle & a <B>", "sought-1", "sought-2")):
        page = await visitor.get(f"/sessions?q={quote(text)}")

        assert f'href="/sessions/{found}"' in page.text
        assert f'href="/sessions/{missing}"' not in page.text
        assert f'value="{escape(text)}"' in page.text
    assert "No session has that" in (await visitor.get("/sessions?q=nobody-has-this")).text
    assert (await visitor.get(f"/sessions?q={'x' * 300}")).status_code == 400


async def test_sessions_behind_many_changes_are_reached(
    shared: Console, visitor: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "READ_AT_MOST", 2)
    monkeypatch.setattr(backwards, "_WINDOW", 2)
    client = await shared.system.client()
    await client.end_turn("quiet", 1)
    for turn in range(1, 9):
        await client.end_turn("busy", turn)

    first = await visitor.get("/sessions")
    (older,) = re.findall(r'href="(/sessions\?cursor=\d+)"', first.text)
    assert 'href="/sessions/busy"' in first.text
    assert 'href="/sessions/quiet"' in (await visitor.get(older)).text

    monkeypatch.setattr(reading, "EMPTY_PAGES", 0)
    nothing = await visitor.get(older)
    assert "None found so far" in nothing.text
    assert re.search(r'href="/sessions\?cursor=\d+"', nothing.text)


async def test_a_session_that_has_not_ended_a_turn_has_a_page_that_says_so(shared: Console, visitor: Page) -> None:
    await (await shared.system.client()).send_prompt("prompted", "p-1", "Begin")

    for session in ("unheard-of", "prompted"):
        found = await visitor.get(f"/sessions/{session}")

        assert found.status_code == 200
        assert "No turn has ended here yet." in found.text
        assert f"turngate turn submit {session} 1 examples/report.json" in found.text


async def test_a_long_history_begins_with_what_happened_last_and_leads_back(shared: Console, visitor: Page) -> None:
    person = (await shared.system.client("ann")).objectives
    await person.create("storied", "Make it pass")
    for _ in range(60):
        await person.pause("storied")
        await person.resume("storied")
    await person.guide("storied", "The last word")

    newest = await visitor.get("/objectives/storied")
    (older,) = re.findall(r'href="(/objectives/storied\?before=\d+)"', newest.text)
    oldest = await visitor.get(older)

    assert '<th role="rowheader" scope="row">guided</th>' in newest.text
    assert '<th role="rowheader" scope="row">created</th>' not in newest.text
    assert '<th role="rowheader" scope="row">created</th>' in oldest.text
    assert '<th role="rowheader" scope="row">guided</th>' not in oldest.text
    assert 'href="/objectives/storied">the newest</a>' in oldest.text


async def test_the_inbox_names_an_objective_that_waits_for_a_runner_and_how_to_start_one(
    shared: Console, visitor: Page
) -> None:
    await (await shared.system.client()).objectives.create("lonely", "Make it pass", pool="gpu")

    async def named() -> bool:
        text = (await visitor.get("/")).text
        return 'href="/objectives/lonely"' in text and "turngate runner --pool gpu -- COMMAND" in text

    await wait_until(named, why="the role is offered, and nobody takes it")


async def test_the_inside_of_main_alone_comes_with_what_the_frame_needs(shared: Console, visitor: Page) -> None:
    await card(await shared.system.client())

    found = await visitor.get("/", **{"Turngate-Fragment": "main"})

    assert "<html" not in found.text
    assert "The migration is ready" in found.text
    assert int(found.headers["turngate-inbox"]) >= 1
    assert int(found.headers["turngate-cursor"]) >= 0
    assert found.headers["turngate-title"]


async def test_what_a_model_wrote_is_text_and_never_markup(shared: Console, visitor: Page) -> None:
    hostile = '<script>alert(1)</script><img src=x onerror=alert(2)>"\'><a href="javascript:alert(3)">x</a>'
    client = await shared.system.client()
    await client.submit_report("hostile", 1, with_text("headline", hostile), mutated=True)

    for path in ("/", "/sessions", "/sessions/hostile"):
        text = (await visitor.get(path)).text

        assert "&lt;script&gt;alert(1)" in text
        assert Strict(text).wrong == []
        assert not re.search(r"<(?:img|a) [^>]*(?:src=x|javascript)", text)


class Strict(HTMLParser):
    """Collects what the policy would not run, and what would come from elsewhere."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.wrong: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = dict(attributes)
        if tag in ("style", "iframe", "object", "embed", "base") or (tag == "script" and "src" not in given):
            self.wrong.append(tag)
        for name, value in attributes:
            leads = name in ("href", "src", "action", "formaction") and not (value or "").startswith(("/", "#", "?"))
            if name.startswith("on") or name == "style" or leads or (value or "").startswith("//"):
                self.wrong.append(f"{tag} {name}={value}")


async def test_no_page_has_a_script_or_a_style_of_its_own(shared: Console) -> None:
    await card(await shared.system.client())
    async with shared.browser() as visitor:
        for path in (*LISTS, "/sessions/s1", "/login", "/nothing-here"):
            found = await visitor.get(path)

            assert found.headers["content-security-policy"] == POLICY
            assert found.headers["x-content-type-options"] == "nosniff"
            assert found.headers["referrer-policy"] == "same-origin"
            assert Strict(found.text).wrong == [], path


MISSING = [
    ("/nothing-here", 404),
    ("/tasks/s1/unknown", 404),
    ("/sessions/not.an.id", 400),
    ("/sessions/%2e%2e", 400),
    ("/sessions/a%00b", 400),
    ("/sessions/s1/answer/more", 404),
    ("/sessions?cursor=-1", 400),
    ("/sessions?cursor=x", 400),
    ("/questions?cursor=99999999999999999999", 400),
    ("/static/../service.py", 404),
    ("/static/%2e%2e/service.py", 404),
]


async def test_what_is_not_there_is_an_error_page(visitor: Page) -> None:
    for path, status in MISSING:
        found = await visitor.get(path)

        assert found.status_code == status, path
        assert "<main" in found.text
        assert "Traceback" not in found.text


async def test_a_program_gets_errors_as_json(visitor: Page) -> None:
    found = await visitor.get("/tasks/s1/unknown", accept="application/json")

    assert found.status_code == 404
    assert found.json()["code"] == "not_found"
    assert found.json()["details"] == {"session": "s1", "task": "unknown"}


async def test_a_status_that_is_none_names_those_that_are(shared: Console) -> None:
    async with shared.browser() as visitor:
        found = await visitor.get("/objectives?status=asleep", accept="application/json")

    assert found.status_code == 400
    assert "active" in found.json()["message"]


async def test_files_are_asked_about_and_sent_once(visitor: Page) -> None:
    first = await visitor.get("/static/icon.svg")

    again = await visitor.get("/static/icon.svg", **{"If-None-Match": first.headers["etag"]})

    assert first.status_code == 200
    assert first.headers["cache-control"] == "no-cache"
    assert again.status_code == 304


async def test_pages_are_not_kept_by_anybody(visitor: Page) -> None:
    assert (await visitor.get("/")).headers["cache-control"] == "no-store"


async def test_it_says_that_it_lives_and_that_it_is_ready(visitor: Page) -> None:
    assert (await visitor.get("/healthz")).status_code == 200
    assert (await visitor.get("/readyz")).status_code == 200
