"""Hook events of six command lines are read as one kind of event, and what they say of tools is written down."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.services.bridges.events import claude, codex, cursor, gemini, goose
from tests.services.cli.shell import environment
from turngate.bridges import conclusions, toollog
from turngate.bridges.hook.decode import MAX_BYTES, Dialect, HookEvent, Kind, NotAnEvent, decode
from turngate.bridges.hook.records import only_looks, own_tool, record, session_of
from turngate.bridges.names import NotASession, session_of_directory
from turngate.bridges.places import Places
from turngate.cli.main import main

TOOLS: list[tuple[str, bytes, str, bool]] = [
    ("claude", claude("PostToolUse", tool_name="Edit", tool_input={}, tool_response={"success": True}), "Edit", True),
    ("claude failed", claude("PostToolUseFailure", tool_name="Bash", error="exit 1"), "Bash", False),
    ("codex", codex("PostToolUse", tool_name="apply_patch", tool_input={}, tool_response="ok"), "apply_patch", True),
    ("gemini", gemini("AfterTool", tool_name="replace", tool_input={}, tool_response={}), "replace", True),
    ("gemini failed", gemini("AfterTool", tool_name="replace", tool_response={"error": {"m": 1}}), "replace", False),
    ("cursor edit", cursor("afterFileEdit", file_path="/srv/web/a.py", edits=[]), "edit_file", True),
    ("cursor shell", cursor("afterShellExecution", command="make", output=""), "shell", True),
    ("cursor mcp", cursor("afterMCPExecution", tool_name="query", tool_input='{"a":1}'), "query", True),
    ("goose", goose("PostToolUse", tool_name="developer__shell", working_dir="/srv/web"), "developer__shell", True),
    ("goose failed", goose("PostToolUseFailure", tool_name="developer__edit"), "developer__edit", False),
]
STOPS: list[tuple[str, bytes, Dialect]] = [
    ("claude", claude("Stop", stop_hook_active=False, last_assistant_message="Done"), Dialect.EXIT),
    ("codex", codex("Stop", stop_hook_active=False, last_assistant_message=None), Dialect.EXIT),
    ("gemini", gemini("AfterAgent", prompt="p", prompt_response="Done", stop_hook_active=False), Dialect.EXIT),
    ("cursor", cursor("stop", status="completed", loop_count=0), Dialect.CURSOR),
    ("goose", goose("Stop", last_assistant_message="Done"), Dialect.EXIT),
]


@pytest.mark.parametrize(("event", "tool", "ok"), [case[1:] for case in TOOLS], ids=[case[0] for case in TOOLS])
def test_a_used_tool_is_told_with_its_name_and_whether_it_worked(event, tool, ok):
    found = decode(event)

    assert (found.kind, found.tool, found.ok) == (Kind.TOOL, tool, ok)


@pytest.mark.parametrize(("event", "dialect"), [case[1:] for case in STOPS], ids=[case[0] for case in STOPS])
def test_a_stop_is_told_with_how_to_answer_it(event, dialect):
    found = decode(event)

    assert (found.kind, found.dialect, found.again) == (Kind.STOP, dialect, False)
    assert found.session


@pytest.mark.parametrize(
    "event", [claude("Stop", stop_hook_active=True), cursor("stop", status="completed", loop_count=1)]
)
def test_a_stop_after_a_hook_sent_the_agent_on_is_known(event):
    assert decode(event).again


@pytest.mark.parametrize("status", ["aborted", "error"])
def test_an_agent_that_was_interrupted_is_not_sent_on(status):
    assert decode(cursor("stop", status=status, loop_count=0)).interrupted


def test_a_subagent_s_stop_names_the_subagent():
    found = decode(claude("SubagentStop", agent_id="a1b2", agent_type="Explore", stop_hook_active=False))

    assert (found.kind, found.agent) == (Kind.SUBAGENT_STOP, "a1b2")


@pytest.mark.parametrize(
    "event",
    [claude("PreCompact", trigger="auto"), claude("SomethingNew", shape={"a": [1]}), gemini("BeforeModel")],
)
def test_events_that_are_none_of_ours_and_those_of_later_versions_are_let_be(event):
    assert decode(event).kind is Kind.OTHER


def test_fields_that_a_version_adds_or_leaves_out_change_nothing():
    event = json.dumps({"hook_event_name": "PostToolUse", "tool_name": "Edit", "brand_new": {"x": 1}}).encode()

    assert decode(event) == HookEvent(Kind.TOOL, "PostToolUse", tool="Edit")


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "holds no JSON"),
        (b"not json", "holds no JSON"),
        (b"\xff\xfe\x00", "holds no JSON"),
        (b"[" * 100_000, "holds no JSON"),
        (b"[]", "is no object"),
        (b"{}", "has no hook_event_name"),
        (b'{"hook_event_name": 5}', "hook_event_name of the event is no text"),
        (b'{"hook_event_name": "Stop", "session_id": ["x"]}', "session_id of the event is no text"),
        (b'{"hook_event_name": "Stop", "session_id": "a\\u0000b"}', "session_id of the event is no text"),
        (b" " * (MAX_BYTES + 1), "longer than"),
    ],
    ids=["empty", "text", "bytes", "deep", "list", "nameless", "number", "session", "nul", "too long"],
)
def test_what_is_no_event_is_told_as_such(data, problem):
    with pytest.raises(NotAnEvent, match=problem):
        decode(data)


@pytest.mark.parametrize("place", ["/a\0b", "/\ud800", "/" + "a/" * 2_048, 7, ["/a"], None], ids=ascii)
def test_a_directory_that_there_can_not_be_is_left_out_and_the_tool_counts(place):
    odd = json.dumps({"hook_event_name": "afterFileEdit", "conversation_id": "c", "workspace_roots": [place]}).encode()

    assert decode(claude("PostToolUse", tool_name="Edit", cwd=place)).directory == ""
    assert decode(odd).directory == ""


def test_an_event_of_ten_megabytes_is_read():
    event = claude("PostToolUse", tool_name="Read", tool_response={"content": "x" * 10_000_000})

    assert decode(event).tool == "Read"


@pytest.mark.parametrize(
    "tool", ["Report", "mcp__turngate__Report", "turngate_ask_user", "mcp_turngate_conclude", "turngate__get_esm"]
)
def test_the_turn_tools_are_known_by_every_name_that_agents_give_them(tool):
    assert own_tool(tool)


@pytest.mark.parametrize("tool", ["Reporter", "mcp__crash__SendReport", "Edit", ""])
def test_other_tools_are_none_of_them(tool):
    assert not own_tool(tool)


def test_a_tool_that_is_not_known_to_only_look_counts_as_a_change():
    assert only_looks("Read")
    assert not only_looks("Bash")
    assert not only_looks("mcp__docs__search")
    assert only_looks("mcp__docs__search", ["mcp__docs__*"])


def _recorded(tmp_path: Path, *events: bytes) -> list[tuple[str, bool]]:
    for event in events:
        record(decode(event), tmp_path, at=1.0)
    with toollog.locked(tmp_path):
        return [(use.tool, use.mutated) for use in toollog.read(tmp_path)[0]]


def test_evidence_is_written_down_in_order_and_turn_tools_are_none(tmp_path):
    recorded = _recorded(
        tmp_path,
        claude("PostToolUse", tool_name="Read"),
        claude("PostToolUse", tool_name="Edit"),
        claude("PostToolUse", tool_name="mcp__turngate__Report", tool_input={}),
    )

    assert recorded == [("Read", False), ("Edit", True)]


def test_a_torn_line_of_the_log_is_left_out(tmp_path):
    _recorded(tmp_path, claude("PostToolUse", tool_name="Edit"))
    with (tmp_path / toollog.LOG).open("ab") as log:
        log.write(b'{"tool": "Wri\n\xff\n[]\n')

    assert _recorded(tmp_path, claude("PostToolUse", tool_name="Read")) == [("Edit", True), ("Read", False)]


def test_a_line_of_the_log_that_nests_deeper_than_can_be_read_is_left_out(tmp_path):
    (tmp_path / toollog.LOG).write_bytes(b"[" * 4_000 + b"\n")

    assert _recorded(tmp_path, claude("PostToolUse", tool_name="Edit")) == [("Edit", True)]


@pytest.mark.parametrize(
    "kept",
    [
        b'[{"digest": "d", "arguments": {}, "agent": ["a"]}]',
        b'[{"digest": 5, "arguments": {}, "agent": "a"}]',
        b'[{"digest": "d", "arguments": [], "agent": "a"}]',
        b'[{"digest": "d", "arguments": {}}]',
        b"[" * 100_000,
    ],
    ids=lambda kept: kept[:60].decode(),
)
def test_what_is_no_conclusion_does_not_wait(tmp_path, kept):
    (tmp_path / conclusions.FILE).write_bytes(kept)

    assert conclusions.agents(tmp_path) == []
    assert conclusions.of_agent(tmp_path, "a") is None


def test_a_subagent_s_conclusion_is_attributed_to_it_by_its_content(tmp_path):
    made: list[dict[str, Any]] = [{"status": "success", "summary": text} for text in ("one", "two")]
    for arguments in made:
        conclusions.record(tmp_path, arguments)

    tool = {"tool_name": "mcp__turngate__conclude", "tool_input": {"summary": "two", "status": "success"}}
    record(decode(claude("PostToolUse", agent_id="sub-2", **tool)), tmp_path, at=1.0)

    two, one = conclusions.of_agent(tmp_path, "sub-2"), conclusions.of_agent(tmp_path, "sub-1")
    assert two is not None
    assert two["arguments"]["summary"] == "two"
    assert one is not None
    assert one["arguments"]["summary"] == "one"


def _session(event: HookEvent, places: Places, *, flag: str = "", directory: Path, **environment: str) -> str:
    return session_of(event, flag, environment, places, [directory])


def test_a_configured_session_wins_over_everything(tmp_path):
    places, event = Places(tmp_path / "agents"), decode(claude("Stop"))
    places.link(tmp_path, "linked")

    assert _session(event, places, flag="flag", directory=tmp_path, TURNGATE_SESSION="variable") == "flag"
    assert _session(event, places, directory=tmp_path, TURNGATE_SESSION="variable") == "variable"


def test_a_hook_below_a_project_speaks_of_the_session_of_its_mcp_server(tmp_path):
    places, event = Places(tmp_path / "agents"), decode(claude("Stop"))
    below = tmp_path / "web" / "src"
    below.mkdir(parents=True)
    places.link(tmp_path / "web", "web-1")

    assert _session(event, places, directory=below) == "web-1"


def test_the_agent_s_own_session_is_taken_where_the_mcp_server_took_it_too(tmp_path):
    places, event = Places(tmp_path / "agents"), decode(claude("Stop"))
    places.link(tmp_path, "another")
    places.of_session(event.session)

    assert _session(event, places, directory=tmp_path) == event.session


def test_without_any_of_these_it_is_the_agent_s_own_or_the_directory_s(tmp_path):
    places = Places(tmp_path / "agents")
    odd, nameless = HookEvent(Kind.STOP, "Stop", session="a/b c.*>"), HookEvent(Kind.STOP, "Stop")

    mapped = _session(odd, places, directory=tmp_path)

    assert mapped.startswith("a-b-c-")
    assert mapped == _session(odd, places, directory=tmp_path)
    assert mapped != _session(odd._replace(session="a/b c.*"), places, directory=tmp_path)
    assert _session(nameless, places, directory=tmp_path) == session_of_directory(tmp_path)


def test_a_configured_session_that_is_no_id_is_refused(tmp_path):
    with pytest.raises(NotASession, match=r"TURNGATE_SESSION 'a b' is no session id; use 1 to 128"):
        _session(decode(claude("Stop")), Places(tmp_path), directory=tmp_path, TURNGATE_SESSION="a b")


def test_a_hook_whose_standard_input_was_closed_says_so(monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", None)

    assert main(["hook"]) == 1
    assert "standard input holds no JSON" in capsys.readouterr().err


def test_evidence_is_recorded_without_nats_asyncio_or_msgspec(tmp_path):
    code = """if True:
        import sys
        from turngate.cli.main import main
        code = main(["hook"])
        heavy = {"nats", "asyncio", "msgspec", "yaml", "turngate.settings"} & set(sys.modules)
        sys.exit(f"imported {heavy}" if heavy else code)
        """

    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment({"TURNGATE_AGENTS_DIR": str(tmp_path), "TURNGATE_SESSION": "s1"}),
        input=claude("PostToolUse", tool_name="Edit", tool_input={}),
        capture_output=True,
        cwd="/",
        timeout=60,
    )

    assert done.returncode == 0, done.stderr.decode()
    assert (Path(tmp_path) / "sessions" / "s1" / "tools.jsonl").read_bytes().startswith(b'{"tool": "Edit"')
