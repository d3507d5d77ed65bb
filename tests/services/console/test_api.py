"""The JSON API: each operation works, and answers as its document says."""

from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.services.conclusion.tasks import concluded, finished, success
from tests.services.console.described import DOCUMENT, operations, reply_schema
from tests.services.console.serving import Console, Page, card
from tests.services.validation.asking import ask
from tests.waiting import wait_until
from turngate.console.operations import BASE
from turngate_contracts.dead import DeadEntry, DeadPage, ListDead

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_each_operation_answers_as_the_document_says(shared: Console, tmp_path: Path) -> None:
    client = await shared.system.client()
    await card(client, "s1")
    await card(client, "s2")
    first, second = await ask(client, "q1"), await ask(client, "q2")
    await client.finish_task("parent", finished("t1", success(), tmp_path))
    await concluded(client)
    named = {each.id: {"request_id": each.id, "schema_digest": each.schema_digest} for each in (first, second)}
    steps: list[tuple[str, dict[str, str], dict[str, Any]]] = [
        ("inbox_list", {}, {"limit": 10, "kind": "card"}),
        ("turn_list", {}, {"limit": 1}),
        ("turn_get", {"session": "s1"}, {"turn": 1, "attempt": 1}),
        ("turn_answer", {"session": "s1"}, {"turn": 1, "number": 1, "op": "op-1"}),
        ("turn_dismiss", {"session": "s2"}, {"turn": 1}),
        ("turn_prompt", {"session": "s2"}, {"pool": "pool-1", "id": "p-1", "text": "Go on."}),
        ("question_get", {"session": "q1"}, {}),
        ("question_resolve", {"session": "q1"}, {**named[first.id], "answers": [{"selections": ["Disk"]}]}),
        ("question_reject", {"session": "q2"}, named[second.id]),
        ("esm_create", {}, {"session": "o1", "text": "Make it pass"}),
        ("esm_list", {}, {"status": "active"}),
        ("esm_get", {"session": "o1"}, {}),
        ("esm_configure", {"session": "o1"}, {"pool": "pool-2"}),
        ("esm_guide", {"session": "o1"}, {"text": "Mind the cache."}),
        ("esm_edit", {"session": "o1"}, {"text": "Make it pass twice"}),
        ("esm_pause", {"session": "o1"}, {}),
        ("esm_resume", {"session": "o1"}, {}),
        ("esm_run", {"session": "o1"}, {}),
        ("esm_history", {"session": "o1"}, {"limit": 5}),
        ("esm_clear", {"session": "o1"}, {}),
        ("conclusion_list", {}, {"session": "parent"}),
        ("conclusion_get", {"session": "parent", "task": "t1"}, {}),
        ("runner_list", {}, {"pool": "pool-1"}),
    ]
    first_letter, second_letter = await letters(shared, 2)
    steps += [
        ("dead_list", {}, {"status": "waiting"}),
        ("dead_get", {"letter": first_letter}, {}),
        ("dead_retry", {"letter": first_letter}, {"why": "again"}),
        ("dead_drop", {"letter": second_letter}, {}),
    ]
    known = {each["operationId"]: (path, method) for path, method, each in operations()}

    async with httpx.AsyncClient(base_url=shared.url, timeout=20) as program:
        for name, parts, given in steps:
            path, method = known[name]
            place = path.format_map(parts)
            done = await (program.get(place, params=given) if method == "get" else program.post(place, json=given))

            assert done.status_code == 200, (name, done.text)
            reply_schema(path, method, 200).validate(done.json())

    assert set(known) - {name for name, _parts, _given in steps} == {"events"}, "each operation is called"


async def letters(shared: Console, count: int) -> list[str]:
    """Have so many messages that are none given up, and return the ids of their letters."""
    client = await shared.system.client("ann")
    for number in range(count):
        subject = shared.system.subjects.turn_report("pool-1", "runner-1", f"dead-{number}")
        await shared.system.requester.publish(subject, b"this is no message")

    async def there() -> tuple[DeadEntry, ...]:
        found = (await client.call("dead.list", ListDead(), DeadPage)).entries
        return found if len(found) >= count else ()

    return [entry.letter for entry in await wait_until(there, why="the letters are there")]


async def test_errors_are_those_of_the_document(shared: Console, visitor: Page) -> None:
    found = await visitor.get(f"{BASE}/sessions/unknown")

    assert found.status_code == 404
    reply_schema(f"{BASE}/sessions/{{session}}", "get", 404).validate(found.json())
    assert found.json() == {
        "code": "not_found",
        "message": "session unknown is not known",
        "details": {"session": "unknown"},
    }


async def test_the_document_is_served(visitor: Page) -> None:
    assert (await visitor.get(f"{BASE}/openapi.json")).json() == DOCUMENT


BAD_BODIES = [
    (b"{", 400, "not a JSON object"),
    (b"[]", 400, "not a JSON object"),
    (b"\xff\xfe", 400, "not a JSON object"),
    (b"[" * 100_000, 400, "not a JSON object"),
    (b'{"turn": "1", "number": 1}', 400, "Expected `int`"),
    (b'{"turn": 1, "numbr": 1}', 400, "'numbr' is no field of this; it has turn, number, block, option, text, op"),
    (b'{"turn": 1, "session": "s2"}', 400, "'session' is no field"),
    (b'{"number": 1}', 400, "missing required field `turn`"),
    (b'{"turn": 1, "number": 1}', 404, "turn 1 is not known"),
]


async def test_what_can_not_be_understood_is_told(visitor: Page) -> None:
    for body, status, says in BAD_BODIES:
        done = await visitor.http.post(
            f"{BASE}/sessions/nobody/answer", content=body, headers={"content-type": "application/json"}
        )

        assert done.status_code == status, (body[:40], done.text)
        assert says in done.json()["message"]


async def test_a_query_that_is_not_known_is_told(visitor: Page) -> None:
    found = await visitor.get(f"{BASE}/inbox?limt=1")

    assert found.status_code == 400
    assert "cursor, limit, kind" in found.json()["message"]


async def test_a_page_of_another_site_can_not_use_the_api(shared: Console, visitor: Page) -> None:
    await card(await shared.system.client(), "kept-out")
    await visitor.get("/sessions/kept-out")
    path, answer = f"{BASE}/sessions/kept-out/answer", {"turn": 1, "number": 1}
    visitor.http.cookies.clear()

    plain = await visitor.http.post(path, content=b"{}", headers={"content-type": "text/plain"})
    strange = await visitor.http.post(path, json=answer, headers={"origin": "http://evil.example"})
    tokenless = await visitor.http.post(path, json=answer, headers={"sec-fetch-site": "same-origin"})

    assert (plain.status_code, plain.json()["code"]) == (415, "wrong_content_type")
    assert (strange.status_code, strange.json()["code"]) == (403, "wrong_origin")
    assert (tokenless.status_code, tokenless.json()["code"]) == (403, "csrf")
    assert (await (await shared.system.client()).get("kept-out")).state.waiting


async def test_a_script_of_this_console_uses_the_api_with_its_token(shared: Console, visitor: Page) -> None:
    await card(await shared.system.client(), "let-in")
    await visitor.get("/sessions/let-in")

    done = await visitor.http.post(
        f"{BASE}/sessions/let-in/answer",
        json={"turn": 1, "number": 1},
        headers={"turngate-csrf": visitor.csrf, "origin": shared.url.rstrip("/")},
    )

    assert done.status_code == 200, done.text
