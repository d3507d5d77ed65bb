"""The document of the JSON API as tests read it."""

import json
from typing import Any

from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from turngate.console.openapi import document

DOCUMENT: dict[str, Any] = json.loads(json.dumps(document()))


def operations() -> list[tuple[str, str, dict[str, Any]]]:
    return [(path, method, each) for path, item in DOCUMENT["paths"].items() for method, each in item.items()]


def schema(part: dict[str, Any]) -> Draft202012Validator:
    """A validator of one schema of the document, with all that it may refer to."""
    return Draft202012Validator({**part, "components": DOCUMENT["components"]})


def reply_schema(path: str, method: str, status: int) -> Draft202012Validator:
    content = DOCUMENT["paths"][path][method]["responses"][str(status)]["content"]
    return schema(content["application/json"]["schema"])
