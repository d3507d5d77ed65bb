"""Reports that the tests of the command line hand in."""

import json
from typing import Any

ESCAPES = "\x1b[31mred\x1b[0m\u202eback\x9b2J\x07"
"""What a hostile model writes to harm a terminal."""


def asking(headline: str = "Two migrations are ready") -> dict[str, Any]:
    """A report that is accepted and waits for an answer."""
    return {
        "task_status": "needs_action",
        "headline": headline,
        "blocks": [
            {
                "type": "decision",
                "id": "order",
                "summary": "Which migration first?",
                "options": [
                    {"id": "first", "label": "Run 31 first", "effect": "dispatch", "instruction": "Run migration 31."},
                    {"id": "edit", "label": "Let me write", "effect": "collect"},
                    {"id": "stop", "label": "Stop here", "effect": "resolve"},
                ],
                "response_type": "single",
                "recommendation": "first",
                "recommendation_reason": "It is smaller.",
            },
            {"type": "verification", "id": "tests", "summary": "All pass", "status": "passed", "details": "63 tests"},
            {
                "type": "verification",
                "id": "e2e",
                "summary": "Skipped",
                "status": "not_run",
                "limitation": "No browser",
            },
        ],
    }


def done() -> dict[str, Any]:
    """A report that is accepted and asks nothing."""
    return {
        "task_status": "completed",
        "headline": "It works",
        "blocks": [{"type": "verification", "id": "tests", "summary": "All pass", "status": "passed"}],
    }


def encoded(report: dict[str, Any]) -> bytes:
    return json.dumps(report).encode()
