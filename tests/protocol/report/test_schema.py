"""The JSON Schema: it describes exactly the records, and states what the validator demands."""

import json
from typing import Any

import pytest
from msgspec.structs import fields

from turngate_protocol.report import Block, BlockType, Effect, Level, Option, Report, Status, VerifyStatus, json_schema
from turngate_protocol.report.model import SHAPES

SCHEMA = json_schema()
BLOCK = SCHEMA["properties"]["blocks"]["items"]
OPTION = BLOCK["properties"]["options"]["items"]


@pytest.mark.parametrize(
    ("schema", "record", "required"),
    [
        (SCHEMA, Report, ["task_status", "headline", "blocks"]),
        (BLOCK, Block, ["type", "id", "summary"]),
        (OPTION, Option, ["id", "label", "effect"]),
    ],
)
def test_each_object_has_the_fields_of_its_record(schema: dict[str, Any], record: type, required: list[str]):
    assert sorted(schema["properties"]) == sorted(info.name for info in fields(record))
    assert schema["required"] == required
    assert schema["type"] == "object"


@pytest.mark.parametrize(
    ("field", "vocabulary"),
    [
        (SCHEMA["properties"]["task_status"], Status),
        (BLOCK["properties"]["type"], BlockType),
        (BLOCK["properties"]["status"], VerifyStatus),
        (BLOCK["properties"]["importance"], Level),
        (BLOCK["properties"]["severity"], Level),
        (BLOCK["properties"]["response_type"], ["single"]),
        (OPTION["properties"]["effect"], Effect),
    ],
)
def test_each_enum_is_the_vocabulary_of_the_validator(field: dict[str, Any], vocabulary: Any):
    assert field["enum"] == list(vocabulary)


@pytest.mark.parametrize(
    ("schema", "name", "limit"),
    [
        (SCHEMA, "headline", "160 characters"),
        (SCHEMA, "blocks", "at most 20 blocks"),
        (BLOCK, "id", "64 characters"),
        (BLOCK, "summary", "240 characters"),
        (BLOCK, "details", "32768 bytes"),
        (BLOCK, "options", "2 to 6"),
        (OPTION, "id", "64 characters"),
        (OPTION, "label", "60 characters"),
        (OPTION, "description", "200 characters"),
        (OPTION, "consequence", "200 characters"),
        (OPTION, "preview", "4096 bytes"),
        (OPTION, "instruction", "1024 bytes"),
    ],
)
def test_each_limit_is_in_its_description(schema: dict[str, Any], name: str, limit: str):
    assert limit in schema["properties"][name]["description"]


@pytest.mark.parametrize("kind", SHAPES)
def test_the_description_of_a_field_names_the_types_that_require_it(kind: str):
    shape = SHAPES[kind]
    names = [required.name for required in shape.required]
    if shape.interactive:
        names += ["options", "response_type", "recommendation_reason"]
    if shape.recommends:
        names.append("recommendation")

    assert all(kind in BLOCK["properties"][name]["description"].split("Required for")[1] for name in names)


@pytest.mark.parametrize(("given", "stated"), [(7, 7), (0, 20), (-1, 20)])
def test_the_schema_states_the_limit_of_the_turn(given: int, stated: int):
    assert f"at most {stated} blocks" in json_schema(given)["properties"]["blocks"]["description"]


def test_it_is_one_object_schema_without_alternatives():
    text = json.dumps(SCHEMA)

    assert not any(word in text for word in ("oneOf", "anyOf", "allOf", "$ref", "const"))


def test_every_field_is_described():
    assert all(
        field["description"].endswith(".")
        for schema in (SCHEMA, BLOCK, OPTION)
        for field in schema["properties"].values()
    )


def test_changing_a_schema_changes_no_other():
    json_schema()["properties"].clear()

    assert json_schema() == SCHEMA
