"""The table of targets."""

from pathlib import Path
from typing import Final

from tests.fuzz import of_agents, of_browsers, of_models, of_people, of_the_wire
from tests.fuzz.target import Target

CORPUS: Final = Path(__file__).parent / "corpus"

TARGETS: Final = (
    Target("report", of_models.report, is_json=True),
    Target("ask_call", of_models.ask_call, is_json=True),
    Target("conclusion", of_models.conclusion),
    Target("task_finished", of_models.task_finished, is_json=True),
    Target("role_report", of_models.role_report, is_json=True),
    Target("tool_arguments", of_models.tool_arguments, is_json=True),
    Target("form_answer", of_models.form_answer, is_json=True),
    Target("message", of_the_wire.message, is_json=True),
    Target("advisory", of_the_wire.advisory, is_json=True),
    Target("headers", of_the_wire.headers),
    Target("wire", of_the_wire.wire),
    Target("dead_letter", of_the_wire.dead_letter),
    Target("hook", of_agents.hook, is_json=True),
    Target("mcp_line", of_agents.mcp_line, is_json=True),
    Target("agent_stream", of_agents.agent_stream, is_json=True),
    Target("bridge_files", of_agents.bridge_files, is_json=True),
    Target("keyboard", of_people.keyboard, largest=512),
    Target("scenario", of_people.scenario),
    Target("projects", of_people.projects),
    Target("config", of_people.config),
    Target("browser_headers", of_browsers.browser_headers),
    Target("form", of_browsers.form),
    Target("json_request", of_browsers.json_request, is_json=True),
    Target("metrics_request", of_browsers.metrics_request),
)
"""Everything that takes foreign bytes."""

BY_NAME: Final = {target.name: target for target in TARGETS}


EXAMPLES: Final = Path(__file__).parents[2] / "contracts" / "examples"
"""An example of every message; they are not kept twice."""


def folders(name: str) -> list[Path]:
    """Return where the kept inputs of a target are."""
    return [CORPUS / name, *([EXAMPLES] if name == "message" else [])]


def corpus(name: str) -> list[Path]:
    """Return the kept inputs of a target, always in the same order."""
    return sorted(path for folder in folders(name) for path in folder.iterdir())
