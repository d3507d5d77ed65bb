"""The files in `contracts/` are what the package says; `make contracts` writes them anew."""

import json
import re

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from tests.contracts.conforming import CONTRACTS, asyncapi, follow, schema_file
from turngate_contracts.asyncapi import document
from turngate_contracts.documents import FOLDERS, files
from turngate_contracts.json_schemas import DIALECT
from turngate_contracts.messages import SCHEMAS

NAMES = tuple(SCHEMAS.values())
FILES = files()


@pytest.mark.parametrize("path", sorted(FILES))
def test_the_file_is_in_step_with_the_package(path: str):
    assert (CONTRACTS / path).read_text(encoding="utf-8") == FILES[path], "run `make contracts`"


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_folder_holds_one_file_for_each_message_and_nothing_else(folder: str):
    assert sorted(path.name for path in (CONTRACTS / folder).iterdir()) == sorted(f"{name}.json" for name in NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_schema_is_valid_and_refers_to_nothing_outside_of_itself(name: str):
    schema = schema_file(name)

    Draft202012Validator.check_schema(schema)

    assert schema["$schema"] == DIALECT
    assert schema["$id"] == f"urn:turngate:{name}"
    refs = set(re.findall(r'"\$ref": "([^"]+)"', json.dumps(schema)))
    assert refs <= {f"#/$defs/{defined}" for defined in schema.get("$defs", {})}


@pytest.mark.parametrize("name", NAMES)
def test_each_message_is_in_the_document_and_on_a_channel(name: str):
    message = asyncapi()["components"]["messages"][name]

    assert message["name"] == name
    assert message["summary"]
    assert any(name in channel["messages"] for channel in asyncapi()["channels"].values())


def test_no_two_messages_share_a_name():
    assert len(set(NAMES)) == len(SCHEMAS)


def test_every_name_carries_a_version():
    assert [name for name in NAMES if not re.fullmatch(r"[a-z]+(_[a-z]+)*\.v[1-9][0-9]*", name)] == []


def test_every_channel_but_those_of_replies_has_an_operation():
    used = {operation["channel"]["$ref"] for operation in asyncapi()["operations"].values()}

    channels = {name for name, channel in asyncapi()["channels"].items() if channel["address"] is not None}

    assert used == {f"#/channels/{name}" for name in channels}


def test_every_request_s_reply_goes_to_the_subject_that_the_request_names():
    for operation in asyncapi()["operations"].values():
        if "reply" in operation:
            assert operation["reply"]["address"]["location"].startswith("$message.header#/")
            assert follow(operation["reply"]["channel"]["$ref"])["address"] is None


def test_every_reference_of_the_document_leads_somewhere():
    for ref in set(re.findall(r'"\$ref": "([^"]+)"', json.dumps(asyncapi()))):
        assert follow(ref) is not None


def test_yaml_loses_nothing_of_the_document():
    assert asyncapi() == json.loads(json.dumps(document()))
