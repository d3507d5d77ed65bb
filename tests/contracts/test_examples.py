"""Every message has one example that is valid by its schema and by our decoder, and that later versions may extend."""

import json
from typing import Any

import msgspec
import pytest
from msgspec import Raw, Struct

from tests.contracts.conforming import example_file, header_problems, payload_problems, problems
from turngate_contracts import codec
from turngate_contracts.asyncapi_messages import all_messages
from turngate_contracts.examples import EXAMPLES
from turngate_contracts.json_schemas import message_schema
from turngate_contracts.messages import SCHEMAS

MESSAGES = [pytest.param(kind, name, id=name) for kind, name in SCHEMAS.items()]
REQUIRING = [
    pytest.param(name, field, id=f"{name}-{field}")
    for kind, name in SCHEMAS.items()
    for field in message_schema(kind).get("required", ())
]


@pytest.mark.parametrize(("kind", "name"), MESSAGES)
def test_the_example_fits_its_schema(kind: type[Struct], name: str):
    assert problems(name, json.loads(example_file(name))) == []


@pytest.mark.parametrize(("kind", "name"), MESSAGES)
def test_the_example_fits_the_document(kind: type[Struct], name: str):
    (shown,) = all_messages()[name]["examples"]

    assert shown["payload"] == json.loads(example_file(name))
    assert payload_problems(name, shown["payload"]) == []
    assert header_problems(name, shown["headers"]) == []


@pytest.mark.parametrize(("kind", "name"), MESSAGES)
def test_decoding_and_encoding_gives_the_same_bytes(kind: type[Struct], name: str):
    data = msgspec.json.format(example_file(name), indent=-1)

    assert data == codec.encode(EXAMPLES[kind])
    assert codec.encode(codec.decode(data, kind, name)) == data


@pytest.mark.parametrize(("kind", "name"), MESSAGES)
def test_fields_of_a_later_version_do_not_disturb(kind: type[Struct], name: str):
    later = _extended(EXAMPLES[kind], json.loads(example_file(name)))

    decoded = codec.decode(json.dumps(later).encode(), kind, name)

    assert problems(name, later) == []
    assert _without_raw(decoded) == _without_raw(EXAMPLES[kind])


@pytest.mark.parametrize(("name", "field"), REQUIRING)
def test_the_schema_misses_a_required_field(name: str, field: str):
    example = json.loads(example_file(name))
    del example[field]

    assert problems(name, example)
    assert payload_problems(name, example)


@pytest.mark.parametrize(("name", "field"), REQUIRING)
def test_the_schema_refuses_a_required_field_of_another_type(name: str, field: str):
    example = json.loads(example_file(name))
    example[field] = 1.5

    assert problems(name, example)
    assert payload_problems(name, example)


@pytest.mark.parametrize("value", [None, 17, "done", [], {"no": "report"}])
def test_whatever_a_model_writes_may_be_submitted(value: Any):
    submitted = {**json.loads(example_file("report_submitted.v1")), "report": value}

    assert problems("report_submitted.v1", submitted) == []


@pytest.mark.parametrize(
    ("field", "value"),
    [("session", "a.b"), ("runner", "*"), ("pool", ""), ("turn", 0), ("attempt", -1), ("attempt", 2**31)],
)
def test_what_a_service_would_refuse_is_refused_by_the_schema(field: str, value: object):
    submitted = {**json.loads(example_file("report_submitted.v1")), field: value}

    assert problems("report_submitted.v1", submitted)


def _extended(value: Any, plain: Any) -> Any:
    """A message's plain form with an unknown field in each of its objects, as a later version may have."""
    if isinstance(value, tuple):
        return [_extended(part, plain_part) for part, plain_part in zip(value, plain, strict=True)]
    if not isinstance(value, Struct):
        return plain
    # The tag of a union's member is in its plain form only.
    known = {name: _extended(getattr(value, name, part), part) for name, part in plain.items()}
    return {**known, "of_a_later_version": {"deep": [1]}}


def _without_raw(value: Any) -> Any:
    """A message without its raw JSON, whose white space is another one here."""
    if isinstance(value, Struct):
        return {name: _without_raw(getattr(value, name)) for name in value.__struct_fields__}
    if isinstance(value, tuple):
        return [_without_raw(part) for part in value]
    return None if isinstance(value, Raw) else value
