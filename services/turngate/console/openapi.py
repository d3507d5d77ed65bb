"""The OpenAPI document of the JSON API, made of the same table that serves it and of the messages' own schemas."""

from typing import Any, Final

from turngate import __version__
from turngate.console.errors import CODES
from turngate.console.operations import BASE, OPERATIONS, Operation
from turngate_contracts.catalogue import GENERAL_ERRORS
from turngate_contracts.errors import STATUS
from turngate_contracts.json_schemas import DIALECT, components, names

_REF: Final = "#/components/schemas/{name}"
_JSON: Final = "application/json"
_OWN_CODES: Final = ("not_signed_in", "wrong_token", "forbidden", "too_many")
_CHANGE_CODES: Final = ("csrf", "wrong_origin", "wrong_content_type", "body_too_large")


def document() -> dict[str, Any]:
    """Return the document, OpenAPI 3.1."""
    messages = tuple(dict.fromkeys(kind for each in OPERATIONS for kind in (each.row.request, each.row.reply)))
    schemas, called = components(messages, _REF), names(messages)
    paths: dict[str, Any] = {}
    for each in OPERATIONS:
        described = _operation(each, schemas[called[each.row.request]], called[each.row.reply])
        paths.setdefault(f"{BASE}{each.path}", {})[each.method.lower()] = described
    paths[f"{BASE}/events"] = {"get": _events()}
    used = _reached(schemas, [called[each.row.reply] for each in OPERATIONS] + [str(paths)])
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Turngate console",
            "version": __version__,
            "summary": "What the console shows and does, for programs.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "jsonSchemaDialect": DIALECT,
        "servers": [{"url": "/", "description": "this console"}],
        "security": [{"token": []}, {}],
        "paths": paths,
        "components": {
            "schemas": {name: schemas[name] for name in schemas if name in used} | {"Error": _error()},
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "`turngate console token add NAME` makes one; needless on loopback without tokens",
                }
            },
        },
    }


def _operation(operation: Operation, request: dict[str, Any], reply: str) -> dict[str, Any]:
    fields, required = request.get("properties", {}), request.get("required", [])
    path, others = operation.in_path(), operation.other_fields()
    described: dict[str, Any] = {
        "operationId": operation.id,
        "summary": operation.row.summary,
        "tags": [operation.path.split("/")[1]],
        "parameters": [{"name": name, "in": "path", "required": True, "schema": fields[name]} for name in path],
        "responses": {
            "200": {"description": "done", "content": {_JSON: {"schema": {"$ref": _REF.format(name=reply)}}}},
            **_errors(operation),
        },
    }
    if operation.changes:
        body = {
            "type": "object",
            "properties": {name: fields[name] for name in others},
            "required": [name for name in others if name in required],
            "additionalProperties": False,
        }
        described["requestBody"] = {"required": bool(body["required"]), "content": {_JSON: {"schema": body}}}
    else:
        described["parameters"] += [
            {"name": name, "in": "query", "required": name in required, "schema": fields[name]} for name in others
        ]
    return described


def _errors(operation: Operation) -> dict[str, Any]:
    statuses: dict[int, list[str]] = {}
    for code in (*GENERAL_ERRORS, *operation.row.errors):
        statuses.setdefault(STATUS[code], []).append(code.value)
    for own in (*_OWN_CODES, *(_CHANGE_CODES if operation.changes else ())):
        statuses.setdefault(CODES[own], []).append(own)
    return {str(status): _refused(codes) for status, codes in sorted(statuses.items())}


def _refused(codes: list[str]) -> dict[str, Any]:
    return {
        "description": ", ".join(dict.fromkeys(codes)),
        "content": {_JSON: {"schema": {"$ref": "#/components/schemas/Error"}}},
    }


def _events() -> dict[str, Any]:
    text = "The sequence after which to go on; the header Last-Event-ID wins."
    return {
        "operationId": "events",
        "summary": "Follow what changes, as server-sent events: state, progress, reset and status.",
        "tags": ["events"],
        "parameters": [
            {"name": "after", "in": "query", "description": text, "schema": {"type": "integer", "minimum": 0}}
        ],
        "responses": {
            "200": {"description": "the stream", "content": {"text/event-stream": {"schema": {"type": "string"}}}},
            "401": _refused(["not_signed_in", "wrong_token"]),
            "429": _refused(["too_many"]),
        },
    }


def _error() -> dict[str, Any]:
    return {
        "type": "object",
        "required": ["code", "message", "details"],
        "properties": {
            "code": {"type": "string", "description": "stable; what went wrong"},
            "message": {"type": "string", "description": "one sentence that names the value and the way out"},
            "details": {"type": "object", "description": "the same as facts"},
        },
    }


def _reached(schemas: dict[str, Any], texts: list[str]) -> set[str]:
    """Return the names of the schemas that something refers to, also by way of others."""
    found: set[str] = set()
    waiting = [name for name in schemas if name in texts or any(f"/{name}'" in text for text in texts)]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            text = str(schemas[name])
            waiting += [other for other in schemas if f"/{other}'" in text]
    return found
