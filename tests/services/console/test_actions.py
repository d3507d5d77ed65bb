"""What people do on pages: each form, done once, refused with a reason, and repeated without harm."""

import asyncio
import contextlib
import uuid
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from tests.running import System
from tests.services.conclusion.tasks import prompts_of
from tests.services.console.serving import Console, Page, card, started
from tests.services.validation.asking import MULTIPLE, ask, freeform, structured
from tests.waiting import wait_until
from turngate.console.guard import MOST_BYTES
from turngate.console.tokens import TokenFile
from turngate_contracts.dead import DeadEntry, DeadPage, ListDead
from turngate_protocol.question import Request

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(shared_system: System, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Console]:
    """One console for all tests of this module: none of them makes a token."""
    directory = tmp_path_factory.mktemp("console")
    async with contextlib.AsyncExitStack() as stack:
        service = await started(shared_system, stack, state_dir=str(directory))
        yield Console(shared_system, service, TokenFile(directory / "console-tokens.json"))


@pytest.fixture
def session() -> str:
    """A session that no other test has."""
    return f"s-{uuid.uuid4().hex[:8]}"


@pytest_asyncio.fixture(loop_scope="module")
async def answer(shared: Console, visitor: Page, session: str) -> str:
    """Where the card is answered that waits in this session, and that the browser looks at."""
    await card(await shared.system.client(), session)
    await visitor.get(f"/sessions/{session}")
    return f"/sessions/{session}/answer"


async def prompts(console: Console, session: str, count: int) -> list[dict[str, Any]]:
    async def there() -> list[dict[str, Any]]:
        found = [prompt for prompt in await prompts_of(console.system) if prompt["session"] == session]
        return found if len(found) >= count else []

    return await wait_until(there, why=f"{count} prompts are on their way")


async def test_a_card_is_answered_and_the_prompt_goes_out(
    shared: Console, visitor: Page, session: str, answer: str
) -> None:
    done = await visitor.post(answer, turn=1, option=1, text="Tell #orders first.", op="op-1")

    assert done.status_code == 200
    assert done.json() == {
        "ok": True,
        "message": f"Answered turn 1 of {session}: Run it now",
        "location": f"/sessions/{session}",
    }
    (prompt,) = await prompts(shared, session, 1)
    assert prompt["text"].startswith("Run the migration on production")
    assert prompt["text"].endswith("Tell #orders first.")
    assert prompt["actor"] == "console-local"


async def test_without_a_script_the_page_says_what_was_done(visitor: Page, session: str, answer: str) -> None:
    done = await visitor.post(answer, as_json=False, turn=1, option=2, op="op-1")
    shown = await visitor.get(done.headers["location"])
    later = await visitor.get(done.headers["location"])

    assert (done.status_code, done.headers["location"]) == (303, f"/sessions/{session}")
    assert f"Answered turn 1 of {session}: Run it on Sunday at 04:00" in shown.text
    assert f"Answered turn 1 of {session}: Run it on Sunday at 04:00" not in later.text


async def test_without_a_script_the_page_says_why_nothing_was_done(visitor: Page, answer: str) -> None:
    done = await visitor.post(answer, as_json=False, turn=1, option=9, op="op-1")
    shown = await visitor.get(done.headers["location"])

    assert "turn 1 has no option 9; its card offers 1, 2, 3" in shown.text


async def test_a_repeated_form_is_no_second_answer(shared: Console, visitor: Page, session: str, answer: str) -> None:
    first = await visitor.post(answer, turn=1, option=1, op="op-1")
    again = await visitor.post(answer, turn=1, option=1, op="op-1")

    assert first.json() == again.json()
    assert len(await prompts(shared, session, 1)) == 1


async def test_the_second_person_sees_who_was_first(shared: Console, visitor: Page, session: str, answer: str) -> None:
    await (await shared.system.client("ann")).answer(session, 1, 2)

    late = await visitor.post(answer, turn=1, option=1, op="op-1")

    assert late.status_code == 409
    assert late.json()["code"] == "already_answered"
    assert late.json()["details"]["actor"] == "ann"
    assert late.json()["details"]["label"] == "Run it on Sunday at 04:00"


async def test_of_many_who_answer_at_once_one_wins(visitor: Page, answer: str) -> None:
    answers = await asyncio.gather(*(visitor.post(answer, turn=1, option=n % 3 + 1, op=f"op-{n}") for n in range(8)))

    assert sorted(answer.status_code for answer in answers) == [200] + [409] * 7
    assert {answer.json()["code"] for answer in answers if answer.status_code == 409} == {"already_answered"}


async def test_a_card_that_a_newer_turn_replaced_can_not_be_answered(
    shared: Console, visitor: Page, session: str, answer: str
) -> None:
    await card(await shared.system.client(), session, turn=2)

    late = await visitor.post(answer, turn=1, option=1, op="op-1")

    assert (late.status_code, late.json()["code"]) == (409, "superseded")
    assert late.json()["details"]["current_turn"] == 2


async def test_a_collected_text_goes_to_the_session_as_its_next_prompt_once(
    shared: Console, visitor: Page, session: str, answer: str
) -> None:
    first = await visitor.post(answer, turn=1, option=3, text="Leave it\r\nuntil May.", op="op-1")
    again = await visitor.post(answer, turn=1, option=3, text="Leave it\r\nuntil May.", op="op-1")

    assert (first.status_code, again.status_code) == (200, 200)
    assert [prompt["text"] for prompt in await prompts(shared, session, 1)] == ["Leave it\nuntil May."]


@pytest.mark.usefixtures("answer")
async def test_a_card_is_dismissed(shared: Console, visitor: Page, session: str) -> None:
    done = await visitor.post(f"/sessions/{session}/dismiss", turn=1, op="op-1")

    assert done.json()["message"] == f"Dismissed the card of turn 1 of {session}"
    state = (await (await shared.system.client("ann")).get(session)).state
    assert state.current.dismissal is not None
    assert state.current.dismissal.actor == "console-local"


async def asked(shared: Console, visitor: Page, session: str, call: Any = None) -> tuple[Request, dict[str, str]]:
    request = await ask(await shared.system.client(), session, call or structured())
    await visitor.get(f"/questions/{session}")
    return request, {"id": request.id, "digest": request.schema_digest}


async def test_one_of_several_options_is_an_answer(shared: Console, visitor: Page, session: str) -> None:
    _request, named = await asked(shared, visitor, session)

    done = await visitor.post(
        f"/questions/{session}/resolve", **named, **{"choice-0": "Disk", "custom-0": ""}, op="op-1"
    )

    assert done.json()["message"] == f"The question of {session} is answered"
    outcome = (await (await shared.system.client()).questions.get(session)).outcome
    assert outcome is not None
    assert outcome.by == "console-local"
    assert outcome.resolution is not None
    assert outcome.resolution.answers[0].selections == ("Disk",)


async def test_several_options_and_an_answer_of_ones_own(shared: Console, visitor: Page, session: str) -> None:
    _request, named = await asked(shared, visitor, session, structured(args=MULTIPLE))

    done = await visitor.post(
        f"/questions/{session}/resolve",
        **named,
        **{"choice-1": ["Disk", "Both"], "custom-0": "Neither:\r\nthe cache"},
        op="op-1",
    )

    assert done.status_code == 200, done.text
    outcome = (await (await shared.system.client()).questions.get(session)).outcome
    assert outcome is not None
    assert outcome.resolution is not None
    assert outcome.resolution.answers[0].custom == "Neither:\nthe cache"
    assert outcome.resolution.answers[1].selections == ("Disk", "Both")


async def test_a_blank_answer_is_refused_with_a_reason(shared: Console, visitor: Page, session: str) -> None:
    _request, named = await asked(shared, visitor, session)

    done = await visitor.post(f"/questions/{session}/resolve", **named, **{"custom-0": "  "}, op="op-1")

    assert done.status_code == 400
    assert done.json()["code"] in ("blank_answer", "invalid")


async def test_a_chat_reply_decides_too(shared: Console, visitor: Page, session: str) -> None:
    _request, named = await asked(shared, visitor, session, freeform())

    done = await visitor.post(f"/questions/{session}/chat", **named, text="What would you do?", op="op-1")

    assert done.json()["message"] == f"The question of {session} is chat"


async def test_a_question_is_given_up_and_the_next_person_is_told(shared: Console, visitor: Page, session: str) -> None:
    _request, named = await asked(shared, visitor, session)

    done = await visitor.post(f"/questions/{session}/cancel", **named, op="op-1")
    late = await visitor.post(f"/questions/{session}/resolve", **named, **{"choice-0": "Disk"}, op="op-2")

    assert done.json()["message"] == f"The question of {session} is cancelled"
    assert (late.status_code, late.json()["code"]) == (409, "already_resolved")


async def test_an_objective_is_created_steered_and_cleared(shared: Console, session: str) -> None:
    async with shared.browser() as visitor:
        await visitor.get("/objectives")
        made = await visitor.post(
            "/objectives", session=session, text="Make it pass", pool="", work_dir="", mode="", op="op-1"
        )
        assert (made.status_code, made.json()["location"]) == (200, f"/objectives/{session}"), made.text
        steps = {
            "pause": {},
            "resume": {},
            "guide": {"text": "Mind the cache."},
            "edit": {"text": "Make it pass twice"},
            "run": {},
            "clear": {},
        }
        for step, fields in steps.items():
            done = await visitor.post(f"/objectives/{session}/{step}", **fields, op=f"op-{step}")

            assert done.status_code == 200, (step, done.text)
            assert done.json()["message"].endswith(session)

    causes = [cause.type.value async for cause in (await shared.system.client("ann")).objectives.history(session)]
    assert causes[0] == "created"
    assert {"paused", "resumed", "guided", "edited", "cleared"} <= set(causes)


async def test_an_objective_that_is_there_is_not_replaced(shared: Console, session: str) -> None:
    async with shared.browser() as visitor:
        await visitor.get("/objectives")
        await visitor.post("/objectives", session=session, text="One", op="op-1")
        second = await visitor.post("/objectives", session=session, text="Two", op="op-2")

    assert (second.status_code, second.json()["code"]) == (409, "objective_exists")


async def test_a_dead_letter_is_retried_and_another_dropped(shared: Console) -> None:
    client = await shared.system.client("ann")
    for each in ("letter-1", "letter-2"):
        subject = shared.system.subjects.turn_report("pool-1", "runner-1", each)
        await shared.system.requester.publish(subject, b"this is no message")

    async def there() -> tuple[DeadEntry, ...]:
        found = (await client.call("dead.list", ListDead(), DeadPage)).entries
        return found if len(found) == 2 else ()

    one, other = await wait_until(there, why="both letters are there")
    async with shared.browser() as visitor:
        await visitor.get("/fleet")
        retried = await visitor.post(f"/dead/{one.letter}/retry", why="fixed", op="op-1")
        dropped = await visitor.post(f"/dead/{other.letter}/drop", why="", op="op-2")

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


async def test_bad_fields_are_told_and_nothing_is_answered(
    shared: Console, visitor: Page, session: str, answer: str
) -> None:
    for fields, status in BAD_FIELDS:
        done = await visitor.post(answer, **fields)

        assert done.status_code == status, (fields, done.text)
        assert done.json()["message"]
    assert (await (await shared.system.client()).get(session)).state.waiting


async def test_a_form_of_another_site_does_nothing(shared: Console, visitor: Page, session: str, answer: str) -> None:
    for headers in ({"origin": "http://evil.example"}, {"origin": "null"}, {"sec-fetch-site": "cross-site"}):
        done = await visitor.post(answer, headers=headers, turn=1, option=1)

        assert (done.status_code, done.json()["code"]) == (403, "wrong_origin")
    assert (await (await shared.system.client()).get(session)).state.waiting


async def test_a_form_with_the_own_origin_is_taken(shared: Console, visitor: Page, answer: str) -> None:
    headers = {"origin": shared.url.rstrip("/"), "sec-fetch-site": "same-origin"}
    done = await visitor.post(answer, headers=headers, turn=1, option=1)

    assert done.status_code == 200


async def test_a_form_without_the_token_of_its_session_does_nothing(
    shared: Console, visitor: Page, session: str, answer: str
) -> None:
    async with shared.browser() as other:
        await other.get("/")
        visitor.csrf, own = other.csrf, visitor.csrf

        strange = await visitor.post(answer, turn=1, option=1)
        visitor.csrf = ""
        missing = await visitor.post(answer, turn=1, option=1)
        visitor.csrf = own
        visitor.http.cookies.clear()
        cookieless = await visitor.post(answer, turn=1, option=1)

    for done in (strange, missing, cookieless):
        assert (done.status_code, done.json()["code"]) == (403, "csrf")
    assert (await (await shared.system.client()).get(session)).state.waiting


async def test_what_is_too_large_is_refused_unread(visitor: Page, session: str) -> None:
    await visitor.get("/")

    told = await visitor.post(f"/sessions/{session}/answer", text="x" * (MOST_BYTES + 1))

    async def endless():
        for _ in range(64):
            yield b"x" * 65_536

    kind = {"content-type": "application/x-www-form-urlencoded", "accept": "application/json"}
    found = await visitor.http.post(f"/sessions/{session}/answer", content=endless(), headers=kind)

    assert (told.status_code, told.json()["code"]) == (413, "body_too_large")
    assert (found.status_code, found.json()["code"]) == (413, "body_too_large")


@pytest.mark.parametrize("charset", ["utf-7", "unicode_escape", "undefined", "rot13"])
async def test_a_form_in_another_encoding_than_utf_8_is_refused(visitor: Page, answer: str, charset: str) -> None:
    await visitor.get("/")
    kind = {"content-type": f"multipart/form-data; boundary=b; charset={charset}", "accept": "application/json"}
    body = f'--b\r\nContent-Disposition: form-data; name="csrf"\r\n\r\n{visitor.csrf}\r\n--b--\r\n'

    done = await visitor.http.post(answer, content=body, headers=kind)

    assert (done.status_code, done.json()["code"]) == (415, "wrong_content_type")


async def test_a_form_leads_to_no_other_site(visitor: Page, session: str, answer: str) -> None:
    for to in ("//evil.example", "https://evil.example", "/\\evil.example", "/a\r\nSet-Cookie: a=b"):
        done = await visitor.post(answer, as_json=False, turn=1, option=1, next=to)

        assert done.headers["location"] == f"/sessions/{session}"
        assert "a=b" not in str(done.headers)


async def test_a_form_is_no_page_and_a_page_takes_no_form(visitor: Page, session: str) -> None:
    got = await visitor.get(f"/sessions/{session}/answer", accept="application/json")
    await visitor.get("/")
    posted = await visitor.post("/fleet")

    assert (got.status_code, posted.status_code) == (405, 405)


async def test_who_did_what_is_in_the_log(
    visitor: Page, session: str, answer: str, caplog: pytest.LogCaptureFixture
) -> None:
    await visitor.post(answer, turn=1, option=1, text="a secret of mine", op="op-1")
    await visitor.post(answer, turn=1, option=2, op="op-2")

    lines = [record.getMessage() for record in caplog.records if record.name == "turngate.console.acting.acts"]
    who = f"action=turn.answer actor=console-local address=127.0.0.1 session={session} turn=1"
    assert lines == [f"{who} number=1 op=op-1 outcome=done", f"{who} number=2 op=op-2 outcome=already_answered"]
    assert "a secret of mine" not in caplog.text
