"""The TypeScript SDK's client, in a node process, uses `turngate mcp` over stdio and over HTTP.

It needs Node and the package of tests/system/package.json, outside of the tree so that nothing is left in it:

    npm install --prefix build/node @modelcontextprotocol/sdk@VERSION

Where either is missing the tests are skipped and say so; with CI=true in the environment they fail.
"""

import asyncio
import json
import os
import shutil
from pathlib import Path
from typing import Any, Final

import pytest

from tests.running import System
from tests.services.bridges.agent import BAD, GOOD, QUESTION, SESSION, options_for, question_of
from tests.services.bridges.test_http import TOKEN, serving
from tests.services.cli.shell import COMMAND, environment

HERE: Final = Path(__file__).parent
INSTALLED: Final = HERE.parents[1] / "build" / "node"
ANSWER_S: Final = 60


@pytest.fixture(scope="module")
def node() -> str:
    """Node, with the package in its pinned version; else the test ends here."""
    found = shutil.which("node")
    missing = "" if found else "node is not installed"
    for name, version in json.loads((HERE / "package.json").read_text())["dependencies"].items():
        manifest = INSTALLED / "node_modules" / name / "package.json"
        if not manifest.exists() or json.loads(manifest.read_text())["version"] != version:
            missing = missing or f"run `npm install --prefix build/node {name}@{version}`"
    if found is None or missing:
        ended = f"the TypeScript client was not run: {missing}"
        if os.environ.get("CI") == "true":
            pytest.fail(ended)
        pytest.skip(ended)
    return found


async def played(node: str, plan: dict[str, Any]) -> list[dict[str, Any]]:
    """Run the client and return what it printed."""
    process = await asyncio.create_subprocess_exec(
        node,
        str(HERE / "mcp_client.mjs"),
        str(INSTALLED),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        out, err = await asyncio.wait_for(process.communicate(json.dumps(plan).encode()), ANSWER_S)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 0, err.decode()
    return [json.loads(line) for line in out.splitlines()]


async def test_over_stdio_it_reports_repairs_and_is_answered(node, system: System, tmp_path):
    person = await system.client("alice")
    variables = {
        "TURNGATE_NATS_URL": system.settings.nats_url,
        "TURNGATE_NAMESPACE": system.settings.namespace,
        "TURNGATE_POOL": "pool-1",
        "TURNGATE_SESSION": SESSION,
        "TURNGATE_AGENTS_DIR": str(tmp_path / "agents"),
    }
    calls = [
        {"name": "Report", "arguments": BAD},
        {"name": "ask_user_text", "arguments": {"question": "Shall I go on?"}},
        {"name": "Report", "arguments": GOOD},
        {"name": "nope", "arguments": {}},
    ]
    stdio = {"command": COMMAND[0], "args": [*COMMAND[1:], "mcp"], "env": environment(variables)}

    playing = asyncio.create_task(played(node, {"stdio": stdio, "calls": calls}))
    await person.questions.resolve(SESSION, await question_of(person), chat="yes")
    listed, rejected, answered, accepted, unknown = await playing

    assert listed["tools"] == ["Report", "ask_user", "ask_user_text", "conclude"]
    assert rejected["isError"]
    assert rejected["text"].startswith("REPORT_REJECTED: 2 problems")
    assert answered == {"text": '{"chat":"yes"}', "isError": False}
    assert not accepted["isError"]
    assert (unknown["code"], "there is no tool 'nope'" in unknown["message"]) == (-32602, True)


async def test_over_http_its_person_answers_in_the_client(node, system: System, tmp_path):
    async with serving(options_for(system.settings, tmp_path)) as served:
        http = {"url": served.url, "headers": {"authorization": f"Bearer {TOKEN}"}}
        listed, form, answered = await played(
            node, {"http": http, "elicit": {"q1": "Postgres"}, "calls": [{"name": "ask_user", "arguments": QUESTION}]}
        )

    assert "Report" in listed["tools"]
    assert form == {"form": "Store: Where should sessions be kept?"}
    assert answered == {"text": '{"answers":[{"selections":["Postgres"]}]}', "isError": False}
