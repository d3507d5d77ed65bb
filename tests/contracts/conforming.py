"""Reading the generated files as a stranger would: with public validators, never with our own decoders."""

import functools
import json
import re
from pathlib import Path
from typing import Any

import yaml
from jsonschema import Draft7Validator, Draft202012Validator  # type: ignore[import-untyped]

from turngate_contracts.esm_rows import (
    ESM_INTAKE,
    ESM_MAILBOX,
    ESM_PRESENCE,
    ESM_REQUESTS,
    ESM_STATES,
    ESM_TIMERS,
    ESM_WORK,
)

CONTRACTS = Path(__file__).parents[2] / "contracts"

ESM_CHANNELS = {
    *(row.name for row in (*ESM_INTAKE, *ESM_REQUESTS)),
    *(f"mailbox.{row.kind}" for row in ESM_MAILBOX),
    *(f"work.{row.name}" for row in ESM_WORK),
    *(f"{kind}.{row.bucket}" for row in ESM_STATES for kind in ("state", "event", "live")),
    *(f"timer.{kind}.{row.kind}" for row in ESM_TIMERS for kind in ("at", "due")),
    "event.progress",
    "live.progress",
    ESM_PRESENCE.stream,
}
"""The channels of objectives."""


@functools.cache
def asyncapi() -> dict[str, Any]:
    """The document as it is in the tree."""
    found: dict[str, Any] = yaml.load((CONTRACTS / "asyncapi.yaml").read_text(), Loader=yaml.CSafeLoader)
    return found


def schema_file(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((CONTRACTS / "schemas" / f"{name}.json").read_text())
    return found


def example_file(name: str) -> bytes:
    return (CONTRACTS / "examples" / f"{name}.json").read_bytes()


def problems(name: str, value: Any) -> list[str]:
    """What is wrong with a message by its schema file."""
    return _sentences(Draft202012Validator(schema_file(name)).iter_errors(value))


def payload_problems(name: str, value: Any) -> list[str]:
    """What is wrong with a message by its payload in the document."""
    return _document_problems(asyncapi()["components"]["messages"][name]["payload"], value)


def header_problems(name: str, fields: dict[str, str]) -> list[str]:
    """What is wrong with a message's header lines by the document."""
    return _document_problems(asyncapi()["components"]["messages"][name]["headers"], fields)


def undocumented_headers(name: str, fields: dict[str, str]) -> set[str]:
    """The header lines of ours that the document does not know; the server's own do not count."""
    known = asyncapi()["components"]["messages"][name]["headers"]["properties"]
    return {field for field in fields if field.startswith(("Turngate-", "ce-"))} - set(known)


def channels_of(subject: str, namespace: str) -> list[str]:
    """The channels whose address a subject has."""
    found = []
    for name, channel in asyncapi()["channels"].items():
        if channel["address"] is None:
            continue
        literal = re.escape(channel["address"].replace("{namespace}", namespace))
        if re.fullmatch(re.sub(r"\\\{[a-z_]+\\\}", "[^.]+", literal), subject):
            found.append(name)
    return found


def follow(ref: str) -> Any:
    """What a reference within the document points at."""
    found: Any = asyncapi()
    for part in ref.removeprefix("#/").split("/"):
        found = found[part]
    return found


def _document_problems(schema: dict[str, Any], value: Any) -> list[str]:
    whole = {"allOf": [schema], "components": asyncapi()["components"]}
    return _sentences(Draft7Validator(whole).iter_errors(value))


def _sentences(errors: Any) -> list[str]:
    return [f"{error.json_path}: {error.message}" for error in errors]
