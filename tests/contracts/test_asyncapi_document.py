"""The document passes the AsyncAPI initiative's own validator, which needs Node and its package.

    npm install --prefix build/node @asyncapi/parser@VERSION      with the version in tests/contracts/package.json

Where either is missing the tests are skipped and say so; with CI=true in the environment they fail.
"""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.contracts.conforming import CONTRACTS
from turngate_contracts.asyncapi import document

HERE = Path(__file__).parent
INSTALLED = HERE.parents[1] / "build" / "node"
PINNED = json.loads((HERE / "package.json").read_text())["dependencies"]


@pytest.fixture(scope="module")
def node() -> str:
    """Node, with the validator installed in the pinned version; else the test ends here."""
    found = shutil.which("node")
    missing = "" if found else "node is not installed"
    for name, version in PINNED.items():
        manifest = INSTALLED / "node_modules" / name / "package.json"
        if not manifest.exists() or json.loads(manifest.read_text())["version"] != version:
            missing = missing or f"run `npm install --prefix build/node {name}@{version}`"
    if found is None or missing:
        ended = f"the AsyncAPI document was not validated: {missing}"
        if os.environ.get("CI") == "true":
            pytest.fail(ended)
        pytest.skip(ended)
    return found


def validate(node: str, path: Path) -> "subprocess.CompletedProcess[str]":
    script = HERE / "asyncapi_validate.mjs"
    return subprocess.run([node, script, INSTALLED, path], capture_output=True, text=True, timeout=90)


def test_the_document_is_valid_asyncapi(node: str):
    done = validate(node, CONTRACTS / "asyncapi.yaml")

    assert done.returncode == 0, done.stdout + done.stderr
    counts = [len(part) for part in (document()["channels"], document()["operations"])]
    assert done.stdout.startswith(f"AsyncAPI 3.0.0: {counts[0]} channels, {counts[1]} operations")


def test_the_validator_would_notice_a_mistake(node: str, tmp_path: Path):
    broken = document()
    broken["operations"]["answer_turn_get"]["reply"]["messages"][0] = {"$ref": "#/channels/turn.report/messages/none"}
    del broken["channels"]["turn.report"]["parameters"]["runner"]
    path = tmp_path / "broken.json"
    path.write_text(json.dumps(broken))

    done = validate(node, path)

    assert done.returncode == 1
    assert "runner" in done.stdout
    assert "answer_turn_get" in done.stdout
