"""The snippets of `docs/agents`: each is right in its language, and the commands in them are ones that there are."""

import json
import re
import shlex
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree as ET

import pytest
import yaml

from turngate.bridges.names import SESSION_VARIABLE
from turngate.bridges.places import DIRECTORY_VARIABLE
from turngate.cli.agents import PARENT_VARIABLE, RUN_VARIABLE, TASK_VARIABLE
from turngate.cli.keys import KEYS
from turngate.cli.main import parser

DOCS = Path(__file__).parents[3] / "docs" / "agents"
AGENTS = ("claude-code", "codex", "opencode", "gemini-cli", "cursor", "goose")
_FENCE = re.compile(r"^```(\w+) ?([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)#]+)\)")


class Snippet(NamedTuple):
    page: str
    language: str
    file: str
    text: str

    def data(self) -> Any:
        if self.language == "json":
            return json.loads(self.text)
        return tomllib.loads(self.text) if self.language == "toml" else yaml.safe_load(self.text)


def snippets() -> list[Snippet]:
    return [
        Snippet(page.stem, *found)
        for page in sorted(DOCS.glob("*.md"))
        for found in _FENCE.findall(page.read_text(encoding="utf-8"))
    ]


CONFIGURATION = [snippet for snippet in snippets() if snippet.language in ("json", "toml", "yaml")]


def commands(data: Any) -> Iterator[list[str]]:
    """Every command line in a configuration, however its program writes one."""
    if isinstance(data, list):
        if data[:1] == ["turngate"]:
            yield data
        for each in data:
            yield from commands(each)
    elif isinstance(data, dict):
        for key in ("command", "cmd"):
            if isinstance(command := data.get(key), str):
                yield [*shlex.split(command), *data.get("args", [])]
        for each in data.values():
            yield from commands(each)


@pytest.mark.parametrize("snippet", CONFIGURATION, ids=lambda snippet: f"{snippet.page} {snippet.file}")
def test_a_configuration_is_right_in_its_language_and_runs_commands_that_there_are(snippet):
    for command in commands(snippet.data()):
        assert command[0] == "turngate"
        assert parser().parse_args(command[1:]).run


@pytest.mark.parametrize("name", AGENTS)
def test_each_agent_gets_the_server_and_the_hook(name):
    page = [snippet for snippet in snippets() if snippet.page == name]
    found = [command for snippet in page if snippet in CONFIGURATION for command in commands(snippet.data())]

    assert ["turngate", "mcp"] in found
    assert ["turngate", "hook"] in found or any('spawn("turngate", ["hook"]' in snippet.text for snippet in page)


def test_codex_passes_on_what_a_secured_server_a_task_and_the_hooks_files_need():
    page = [snippet.data() for snippet in CONFIGURATION if snippet.page == "codex"]
    (passed,) = (data["mcp_servers"]["turngate"]["env_vars"] for data in page if "hooks" in data)

    settings = {KEYS[name].variable for name in ("nats_url", "namespace", "pool", "nats_seed_file", "tls_ca")}
    by_agents = {SESSION_VARIABLE, TASK_VARIABLE, PARENT_VARIABLE, RUN_VARIABLE}
    assert set(passed) == settings | by_agents | {DIRECTORY_VARIABLE, "XDG_STATE_HOME"}


def test_commands_of_the_pages_are_ones_that_there_are():
    lines = [line for snippet in snippets() if snippet.language == "sh" for line in snippet.text.splitlines()]
    ours = [shlex.split(line)[1:] for line in lines if line.startswith("turngate ")]

    assert len(ours) >= 2
    for command in ours:
        assert parser().parse_args(command).run


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_the_plugin_for_opencode_is_a_module_that_tells_the_hook_of_tools_and_stops(tmp_path):
    (plugin,) = (snippet.text for snippet in snippets() if snippet.language == "js")
    (tmp_path / "turngate.mjs").write_text(plugin)
    told = tmp_path / "told"
    hook = tmp_path / "turngate"
    hook.write_text(f'#!/bin/sh\ncat >> {told}; echo >> {told}; echo "report first" >&2; exit 2\n')
    hook.chmod(0o755)
    script = """
        import { Turngate } from "./turngate.mjs";
        const sent = [];
        const client = { session: { promptAsync: async (prompt) => sent.push(prompt) } };
        const plugin = await Turngate({ client, directory: "/srv/web" });
        await plugin["tool.execute.after"]({ tool: "edit", sessionID: "s1" });
        await plugin.event({ event: { type: "message.updated", properties: {} } });
        await plugin.event({ event: { type: "session.idle", properties: { sessionID: "s1" } } });
        console.log(JSON.stringify(sent));
    """

    done = subprocess.run(
        ["node", "--input-type=module", "-e", script],
        cwd=tmp_path,
        env={"PATH": f"{tmp_path}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [
        {"path": {"id": "s1"}, "body": {"parts": [{"type": "text", "text": "report first"}]}}
    ]
    events = [json.loads(line) for line in told.read_text().splitlines()]
    assert [(event["hook_event_name"], event["session_id"]) for event in events] == [
        ("PostToolUse", "s1"),
        ("Stop", "s1"),
    ]


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target in _LINK.findall(page.read_text(encoding="utf-8")):
        assert "://" in target or (page.parent / target).exists(), target


@pytest.mark.parametrize("picture", sorted(DOCS.glob("*.svg")), ids=lambda picture: picture.name)
def test_a_picture_is_small_and_tells_what_it_shows(picture):
    root = ET.fromstring(picture.read_bytes())

    assert picture.stat().st_size < 8 * 1024
    assert [child.tag.rpartition("}")[2] for child in root][:2] == ["title", "desc"]
