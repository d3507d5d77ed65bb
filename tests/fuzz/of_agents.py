"""Targets: what agents' programs print and hand to hooks, and what the bridges wrote of it."""

from pathlib import Path
from typing import Final

from mcp_types import JSONRPCError, jsonrpc_message_adapter
from pydantic import ValidationError

from tests.fuzz.target import check_sentence, directory
from turngate.bridges import conclusions, toollog
from turngate.bridges.files import LEDGER, SessionFiles
from turngate.bridges.hook.decode import Kind, NotAnEvent, decode
from turngate.bridges.hook.records import directories_of, record, session_of
from turngate.bridges.mcp.lines import read_again
from turngate.bridges.places import Places
from turngate.runner.adapters.streams import PROGRESS_MAX, READERS
from turngate_contracts import codec
from turngate_contracts.ids import is_id
from turngate_protocol.esm.evidence import ToolEvent

_WORKING: Final = Path("/tmp")


def hook(data: bytes) -> None:
    """An event of an agent's program is read, belongs to a session, and its tool is written down in one line."""
    try:
        event = decode(data)
    except NotAnEvent as error:
        check_sentence(str(error))
        return
    root = directory("hook")
    directories = directories_of(event, {}, _WORKING)
    assert is_id(session_of(event, "", {}, Places(root), directories))
    if event.kind is Kind.TOOL:
        (root / toollog.LOG).unlink(missing_ok=True)
        record(event, root, 1.0)
        uses, _end = toollog.read(root)
        assert len(uses) <= 1
        assert (not uses) == (toollog.LOG not in {path.name for path in root.iterdir()})
    if event.kind is Kind.SUBAGENT_STOP:
        conclusions.of_agent(root, event.agent)


def mcp_line(data: bytes) -> None:
    """A line of an MCP client that its SDK can't read is repaired, answered or dropped; each answer can be sent."""
    try:
        jsonrpc_message_adapter.validate_json(data.decode("utf-8", "replace"), by_name=False)
    except ValidationError as error:
        again = read_again(error)
        if again is not None:
            message = again if isinstance(again, JSONRPCError) else again.message
            message.model_dump_json(by_alias=True, exclude_unset=True).encode()


def agent_stream(data: bytes) -> None:
    """What an agent prints gives short lines of progress and an end that can be sent, in whichever form it is read."""
    for make in READERS.values():
        reader = make()
        for line in data.split(b"\n"):
            for said in reader.feed(line):
                assert isinstance(said, ToolEvent) or len(said) <= PROGRESS_MAX
                codec.encode(said)
        codec.encode(reader.end())


def bridge_files(data: bytes) -> None:
    """Files of a session that hold anything at all, as after a full disk, hold nothing or what can be used."""
    root = directory("files")
    for name in (toollog.LOG, LEDGER, conclusions.FILE):
        (root / name).write_bytes(data)
    toollog.seen(root, 0)
    codec.encode(SessionFiles(root).load())
    for agent in conclusions.agents(root):
        conclusions.of_agent(root, agent)
