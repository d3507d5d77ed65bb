"""The JSON API: its document is true of each operation, and each operation works."""

import json
import re
from pathlib import Path
from typing import Any

import httpx
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from tests.services.conclusion.tasks import concluded, finished, success
from tests.services.console.serving import Console, Page, card
from tests.services.validation.asking import ask
from turngate.console.openapi import document
from turngate.console.operations import BASE, OPERATIONS
from turngate_contracts.json_schemas import DIALECT

DOCUMENT = json.loads(json.dumps(document()))
_METHODS = {"get", "post"}
_STRUCTURE: dict[str, Any] = {
    "type": "object",
    "required": ["openapi", "info", "paths", "components"],
    "properties": {
        "openapi": {"pattern": r"^3\.1\.\d+$"},
        "info": {"type": "object", "required": ["title", "version"]},
        "paths": {
            "patternProperties": {
                "^/": {
                    "propertyNames": {"enum": sorted(_METHODS)},
                    "additionalProperties": {"$ref": "#/$defs/operation"},
                }
            },
            "additionalProperties": False,
        },
    },
    "$defs": {
        "content": {
            "type": "object",
            "minProperties": 1,
            "additionalProperties": {"type": "object", "required": ["schema"]},
        },
        "operation": {
            "type": "object",
            "required": ["operationId", "summary", "responses"],
            "properties": {
                "parameters": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "required": ["name", "in", "schema"],
                        "properties": {"in": {"enum": ["path", "query", "header"]}},
                        "if": {"properties": {"in": {"const": "path"}}},
                        "then": {"required": ["required"], "properties": {"required": {"const": True}}},
                    },
                },
                "requestBody": {"type": "object", "required": ["content"]},
                "responses": {
                    "required": ["200"],
                    "propertyNames": {"pattern": "^[1-5][0-9][0-9]$"},
                    "additionalProperties": {
                        "required": ["description"],
                        "properties": {"content": {"$ref": "#/$defs/content"}},
                    },
                },
            },
        },
    },
}


def operations() -> list[tuple[str, str, dict[str, Any]]]:
    return [(path, method, each) for path, item in DOCUMENT["paths"].items() for method, each in item.items()]


def schema(part: dict[str, Any]) -> Draft202012Validator:
    """A validator of one schema of the document, with all that it may refer to."""
    return Draft202012Validator({**part, "components": DOCUMENT["components"]})


def reply_schema(path: str, method: str, status: int) -> Draft202012Validator:
    content = DOCUMENT["paths"][path][method]["responses"][str(status)]["content"]
    return schema(content["application/json"]["schema"])


def test_the_document_is_openapi() -> None:
    Draft202012Validator(_STRUCTURE).validate(DOCUMENT)
    assert DOCUMENT["jsonSchemaDialect"] == DIALECT


def test_each_schema_is_one_and_each_reference_leads_somewhere() -> None:
    schemas = DOCUMENT["components"]["schemas"]
    for name, each in schemas.items():
        Draft202012Validator.check_schema(each)
        assert re.fullmatch(r"[a-zA-Z0-9._-]+", name)
    for reference in _references(DOCUMENT):
        place: Any = DOCUMENT
        for part in reference.removeprefix("#/").split("/"):
            place = place[part]


def test_each_operation_has_a_name_of_its_own_and_declares_its_path() -> None:
    found = operations()
    names = [each["operationId"] for _path, _method, each in found]
    assert len(set(names)) == len(names) == len(OPERATIONS) + 1
    for path, _method, each in found:
        declared = {parameter["name"] for parameter in each["parameters"] if parameter["in"] == "path"}
        assert declared == {part[1:-1] for part in path.split("/") if part.startswith("{")}


def _references(value: Any) -> list[str]:
    if isinstance(value, dict):
        own = [value["$ref"]] if isinstance(value.get("$ref"), str) else []
        return own + [each for part in value.values() for each in _references(part)]
    return [each for part in value for each in _references(part)] if isinstance(value, list) else []


async def test_each_operation_answers_as_the_document_says(whole: Console, tmp_path: Path) -> None:
    client = await whole.system.client()
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
    known = {each["operationId"]: (path, method) for path, method, each in operations()}

    async with httpx.AsyncClient(base_url=whole.url, timeout=20) as program:
        for name, parts, given in steps:
            path, method = known[name]
            place = path.format_map(parts)
            done = await (program.get(place, params=given) if method == "get" else program.post(place, json=given))

            assert done.status_code == 200, (name, done.text)
            reply_schema(path, method, 200).validate(done.json())

    left = set(known) - {name for name, _parts, _given in steps} - {"events"}
    assert left == {"dead_list", "dead_get", "dead_retry", "dead_drop"}, "each operation is called"


async def test_errors_are_those_of_the_document(console: Console, page: Page) -> None:
    found = await page.get(f"{BASE}/sessions/unknown")

    assert found.status_code == 404
    reply_schema(f"{BASE}/sessions/{{session}}", "get", 404).validate(found.json())
    assert found.json() == {
        "code": "not_found",
        "message": "session unknown is not known",
        "details": {"session": "unknown"},
    }


async def test_the_document_is_served(page: Page) -> None:
    assert (await page.get(f"{BASE}/openapi.json")).json() == DOCUMENT


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


async def test_what_can_not_be_understood_is_told(page: Page) -> None:
    for body, status, says in BAD_BODIES:
        done = await page.http.post(
            f"{BASE}/sessions/s1/answer", content=body, headers={"content-type": "application/json"}
        )

        assert done.status_code == status, (body[:40], done.text)
        assert says in done.json()["message"]


async def test_a_query_that_is_not_known_is_told(page: Page) -> None:
    found = await page.get(f"{BASE}/inbox?limt=1")

    assert found.status_code == 400
    assert "cursor, limit, kind" in found.json()["message"]


async def test_a_page_of_another_site_can_not_use_the_api(console: Console, page: Page) -> None:
    await card(await console.system.client())
    await page.get("/sessions/s1")
    path, answer = f"{BASE}/sessions/s1/answer", {"turn": 1, "number": 1}
    page.http.cookies.clear()

    plain = await page.http.post(path, content=b"{}", headers={"content-type": "text/plain"})
    strange = await page.http.post(path, json=answer, headers={"origin": "http://evil.example"})
    tokenless = await page.http.post(path, json=answer, headers={"sec-fetch-site": "same-origin"})

    assert (plain.status_code, plain.json()["code"]) == (415, "wrong_content_type")
    assert (strange.status_code, strange.json()["code"]) == (403, "wrong_origin")
    assert (tokenless.status_code, tokenless.json()["code"]) == (403, "csrf")
    assert (await (await console.system.client()).get("s1")).state.waiting


async def test_a_script_of_this_console_uses_the_api_with_its_token(console: Console, page: Page) -> None:
    await card(await console.system.client())
    await page.get("/sessions/s1")

    done = await page.http.post(
        f"{BASE}/sessions/s1/answer",
        json={"turn": 1, "number": 1},
        headers={"turngate-csrf": page.csrf, "origin": console.url.rstrip("/")},
    )

    assert done.status_code == 200, done.text
