"""The document of the JSON API, by itself: it is OpenAPI, and each reference in it leads somewhere."""

import re
from typing import Any

from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from tests.services.console.described import DOCUMENT, operations
from turngate.console.operations import OPERATIONS
from turngate_contracts.json_schemas import DIALECT

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
