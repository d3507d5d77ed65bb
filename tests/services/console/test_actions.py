"""What people do on pages: each form, done once, refused with a reason, and repeated without harm."""

import asyncio
from typing import Any

import pytest

from tests.services.conclusion.tasks import prompts_of
from tests.services.console.serving import Console, Page, card
from tests.services.validation.asking import MULTIPLE, ask, freeform, structured
from tests.waiting import wait_until
from turngate.console.guard import MOST_BYTES
from turngate_contracts.dead import DeadEntry, DeadPage, ListDead
from turngate_protocol.question import Request

ANSWER = "/sessions/s1/answer"


async def waiting_card(console: Console, page: Page) -> None:
    await card(await console.system.client())
    await page.get("/sessions/s1")


async def prompts(console: Console, count: int) -> list[dict[str, Any]]:
    async def there() -> list[dict[str, Any]]:
        found = await prompts_of(console.system)
        return found if len(found) >= count else []

    return await wait_until(there, why=f"{count} prompts are on their way")


async def test_a_card_is_answered_and_the_prompt_goes_out(console: Console, page: Page) -> None:
    await waiting_card(console, page)

    done = await page.post(ANSWER, turn=1, option=1, text="Tell #orders first.", op="op-1")

    assert done.status_code == 200
    assert done.json() == {
        "ok": True,
        "message": "Answered turn 1 of s1: Run it now",
        "location": "/sessions/s1",
    }
    (prompt,) = await prompts(console, 1)
    assert prompt["text"].startswith("Run the migration on production")
    assert prompt["text"].endswith("Tell #orders first.")
    assert prompt["actor"] == "console-local"


async def test_without_a_script_the_page_says_what_was_done(console: Console, page: Page) -> None:
    await waiting_card(console, page)

    done = await page.post(ANSWER, as_json=False, turn=1, option=2, op="op-1")
    shown = await page.get(done.headers["location"])
    later = await page.get(done.headers["location"])

    assert (done.status_code, done.headers["location"]) == (303, "/sessions/s1")
    assert "Answered turn 1 of s1: Run it on Sunday at 04:00" in shown.text
    assert "Answered turn 1 of s1: Run it on Sunday at 04:00" not in later.text


async def test_without_a_script_the_page_says_why_nothing_was_done(console: Console, page: Page) -> None:
    await waiting_card(console, page)

    done = await page.post(ANSWER, as_json=False, turn=1, option=9, op="op-1")
    shown = await page.get(done.headers["location"])

    assert "turn 1 has no option 9; its card offers 1, 2, 3" in shown.text


async def test_a_repeated_form_is_no_second_answer(console: Console, page: Page) -> None:
    await waiting_card(console, page)

    first = await page.post(ANSWER, turn=1, option=1, op="op-1")
    again = await page.post(ANSWER, turn=1, option=1, op="op-1")

    assert first.json() == again.json()
    assert len(await prompts(console, 1)) == 1


async def test_the_second_person_sees_who_was_first(console: Console, page: Page) -> None:
    await waiting_card(console, page)
    await (await console.system.client("ann")).answer("s1", 1, 2)

    late = await page.post(ANSWER, turn=1, option=1, op="op-1")

    assert late.status_code == 409
    assert late.json()["code"] == "already_answered"
    assert late.json()["details"]["actor"] == "ann"
    assert late.json()["details"]["label"] == "Run it on Sunday at 04:00"


async def test_of_many_who_answer_at_once_one_wins(console: Console, page: Page) -> None:
    await waiting_card(console, page)

    answers = await asyncio.gather(*(page.post(ANSWER, turn=1, option=n % 3 + 1, op=f"op-{n}") for n in range(8)))

    assert sorted(answer.status_code for answer in answers) == [200] + [409] * 7
    assert {answer.json()["code"] for answer in answers if answer.status_code == 409} == {"already_answered"}


async def test_a_card_that_a_newer_turn_replaced_can_not_be_answered(console: Console, page: Page) -> None:
    await waiting_card(console, page)
    await card(await console.system.client(), turn=2)

    late = await page.post(ANSWER, turn=1, option=1, op="op-1")

    assert (late.status_code, late.json()["code"]) == (409, "superseded")
    assert late.json()["details"]["current_turn"] == 2


async def test_a_collected_text_goes_to_the_session_as_its_next_prompt_once(console: Console, page: Page) -> None:
    await waiting_card(console, page)

    first = await page.post(ANSWER, turn=1, option=3, text="Leave it\r\nuntil May.", op="op-1")
    again = await page.post(ANSWER, turn=1, option=3, text="Leave it\r\nuntil May.", op="op-1")

    assert (first.status_code, again.status_code) == (200, 200)
    assert [prompt["text"] for prompt in await prompts(console, 1)] == ["Leave it\nuntil May."]


async def test_a_card_is_dismissed(console: Console, page: Page) -> None:
    await waiting_card(console, page)

    done = await page.post("/sessions/s1/dismiss", turn=1, op="op-1")

    assert done.json()["message"] == "Dismissed the card of turn 1 of s1"
    state = (await (await console.system.client("ann")).get("s1")).state
    assert state.current.dismissal is not None
    assert state.current.dismissal.actor == "console-local"


async def asked(console: Console, page: Page, call: Any = None) -> tuple[Request, dict[str, str]]:
    request = await ask(await console.system.client(), "s1", call or structured())
    await page.get("/questions/s1")
    return request, {"id": request.id, "digest": request.schema_digest}


async def test_one_of_several_options_is_an_answer(console: Console, page: Page) -> None:
    _request, named = await asked(console, page)

    done = await page.post("/questions/s1/resolve", **named, **{"choice-0": "Disk", "custom-0": ""}, op="op-1")

    assert done.json()["message"] == "The question of s1 is answered"
    outcome = (await (await console.system.client()).questions.get("s1")).outcome
    assert outcome is not None
    assert outcome.by == "console-local"
    assert outcome.resolution is not None
    assert outcome.resolution.answers[0].selections == ("Disk",)


async def test_several_options_and_an_answer_of_ones_own(console: Console, page: Page) -> None:
    _request, named = await asked(console, page, structured(args=MULTIPLE))

    done = await page.post(
        "/questions/s1/resolve",
        **named,
        **{"choice-1": ["Disk", "Both"], "custom-0": "Neither:\r\nthe cache"},
        op="op-1",
    )

    assert done.status_code == 200, done.text
    outcome = (await (await console.system.client()).questions.get("s1")).outcome
    assert outcome is not None
    assert outcome.resolution is not None
    assert outcome.resolution.answers[0].custom == "Neither:\nthe cache"
    assert outcome.resolution.answers[1].selections == ("Disk", "Both")


async def test_a_blank_answer_is_refused_with_a_reason(console: Console, page: Page) -> None:
    _request, named = await asked(console, page)

    done = await page.post("/questions/s1/resolve", **named, **{"custom-0": "  "}, op="op-1")

    assert done.status_code == 400
    assert done.json()["code"] in ("blank_answer", "invalid")


async def test_a_chat_reply_decides_too(console: Console, page: Page) -> None:
    _request, named = await asked(console, page, freeform())

    done = await page.post("/questions/s1/chat", **named, text="What would you do?", op="op-1")

    assert done.json()["message"] == "The question of s1 is chat"


async def test_a_question_is_given_up_and_the_next_person_is_told(console: Console, page: Page) -> None:
    _request, named = await asked(console, page)

    done = await page.post("/questions/s1/cancel", **named, op="op-1")
    late = await page.post("/questions/s1/resolve", **named, **{"choice-0": "Disk"}, op="op-2")

    assert done.json()["message"] == "The question of s1 is cancelled"
    assert (late.status_code, late.json()["code"]) == (409, "already_resolved")


async def test_an_objective_is_created_steered_and_cleared(whole: Console) -> None:
    async with whole.browser() as page:
        await page.get("/objectives")
        made = await page.post(
            "/objectives", session="o1", text="Make it pass", pool="", work_dir="", mode="", op="op-1"
        )
        assert (made.status_code, made.json()["location"]) == (200, "/objectives/o1"), made.text
        steps = {
            "pause": {},
            "resume": {},
            "guide": {"text": "Mind the cache."},
            "edit": {"text": "Make it pass twice"},
            "run": {},
            "clear": {},
        }
        for step, fields in steps.items():
            done = await page.post(f"/objectives/o1/{step}", **fields, op=f"op-{step}")

            assert done.status_code == 200, (step, done.text)
            assert done.json()["message"].endswith("o1")

    causes = [cause.type.value async for cause in (await whole.system.client("ann")).objectives.history("o1")]
    assert causes[0] == "created"
    assert {"paused", "resumed", "guided", "edited", "cleared"} <= set(causes)


async def test_an_objective_that_is_there_is_not_replaced(whole: Console) -> None:
    async with whole.browser() as page:
        await page.get("/objectives")
        await page.post("/objectives", session="o1", text="One", op="op-1")
        second = await page.post("/objectives", session="o1", text="Two", op="op-2")

    assert (second.status_code, second.json()["code"]) == (409, "objective_exists")


async def test_a_dead_letter_is_retried_and_another_dropped(whole: Console) -> None:
    client = await whole.system.client("ann")
    for session in ("s1", "s2"):
        subject = whole.system.subjects.turn_report("runner-1", session)
        await whole.system.requester.publish(subject, b"this is no message")

    async def there() -> tuple[DeadEntry, ...]:
        found = (await client.call("dead.list", ListDead(), DeadPage)).entries
        return found if len(found) == 2 else ()

    one, other = await wait_until(there, why="both letters are there")
    async with whole.browser() as page:
        await page.get("/fleet")
        retried = await page.post(f"/dead/{one.letter}/retry", why="fixed", op="op-1")
        dropped = await page.post(f"/dead/{other.letter}/drop", why="", op="op-2")

    assert (retried.status_code, retried.json()["location"]) == (200, "/fleet"), retried.text
    assert dropped.json()["message"] == "The dead letter is dropped"
    found = {entry.letter: entry for entry in (await client.call("dead.list", ListDead(), DeadPage)).entries}
    decided = found[one.letter].decided
    assert decided is not None
    assert (decided.by, decided.why) == ("console-local", "fixed")


BAD_FIELDS = [
    ({"turn": "x", "option": "1"}, 400),
    ({"turn": "1", "option": ""}, 400),
    ({"turn": "", "option": "1"}, 400),
    ({"turn": "-1", "option": "1"}, 400),
    ({"turn": "1", "option": "1", "text": "x" * 20_000}, 400),
    ({"turn": "1", "option": "1", "op": "no.id"}, 400),
    ({"turn": "9", "option": "1"}, 404),
]


async def test_bad_fields_are_told_and_nothing_is_answered(console: Console, page: Page) -> None:
    await waiting_card(console, page)

    for fields, status in BAD_FIELDS:
        done = await page.post(ANSWER, **fields)

        assert done.status_code == status, (fields, done.text)
        assert done.json()["message"]
    assert (await (await console.system.client()).get("s1")).state.waiting


async def test_a_form_of_another_site_does_nothing(console: Console, page: Page) -> None:
    await waiting_card(console, page)

    for headers in ({"origin": "http://evil.example"}, {"origin": "null"}, {"sec-fetch-site": "cross-site"}):
        done = await page.post(ANSWER, headers=headers, turn=1, option=1)

        assert (done.status_code, done.json()["code"]) == (403, "wrong_origin")
    assert (await (await console.system.client()).get("s1")).state.waiting


async def test_a_form_with_the_own_origin_is_taken(console: Console, page: Page) -> None:
    await waiting_card(console, page)

    headers = {"origin": console.url.rstrip("/"), "sec-fetch-site": "same-origin"}
    done = await page.post(ANSWER, headers=headers, turn=1, option=1)

    assert done.status_code == 200


async def test_a_form_without_the_token_of_its_session_does_nothing(console: Console, page: Page) -> None:
    await waiting_card(console, page)
    async with console.browser() as other:
        await other.get("/")
        page.csrf, own = other.csrf, page.csrf

        strange = await page.post(ANSWER, turn=1, option=1)
        page.csrf = ""
        missing = await page.post(ANSWER, turn=1, option=1)
        page.csrf = own
        page.http.cookies.clear()
        cookieless = await page.post(ANSWER, turn=1, option=1)

    for done in (strange, missing, cookieless):
        assert (done.status_code, done.json()["code"]) == (403, "csrf")
    assert (await (await console.system.client()).get("s1")).state.waiting


async def test_what_is_too_large_is_refused_unread(page: Page) -> None:
    await page.get("/")

    told = await page.post("/sessions/s1/answer", text="x" * (MOST_BYTES + 1))

    async def endless():
        for _ in range(64):
            yield b"x" * 65_536

    kind = {"content-type": "application/x-www-form-urlencoded", "accept": "application/json"}
    found = await page.http.post("/sessions/s1/answer", content=endless(), headers=kind)

    assert (told.status_code, told.json()["code"]) == (413, "body_too_large")
    assert (found.status_code, found.json()["code"]) == (413, "body_too_large")


async def test_a_form_leads_to_no_other_site(console: Console, page: Page) -> None:
    await waiting_card(console, page)

    for to in ("//evil.example", "https://evil.example", "/\\evil.example", "/a\r\nSet-Cookie: a=b"):
        done = await page.post(ANSWER, as_json=False, turn=1, option=1, next=to)

        assert done.headers["location"] == "/sessions/s1"
        assert "a=b" not in str(done.headers)


async def test_a_form_is_no_page_and_a_page_takes_no_form(page: Page) -> None:
    got = await page.get("/sessions/s1/answer", accept="application/json")
    await page.get("/")
    posted = await page.post("/fleet")

    assert (got.status_code, posted.status_code) == (405, 405)


async def test_who_did_what_is_in_the_log(console: Console, page: Page, caplog: pytest.LogCaptureFixture) -> None:
    await waiting_card(console, page)

    await page.post(ANSWER, turn=1, option=1, text="a secret of mine", op="op-1")
    await page.post(ANSWER, turn=1, option=2, op="op-2")

    lines = [record.getMessage() for record in caplog.records if record.name == "turngate.console.acting.acts"]
    who = "action=turn.answer actor=console-local address=127.0.0.1 session=s1 turn=1"
    assert lines == [f"{who} number=1 op=op-1 outcome=done", f"{who} number=2 op=op-2 outcome=already_answered"]
    assert "a secret of mine" not in caplog.text
