"""The reports of the walk, as a model writes them."""

from typing import Any

DONE: dict[str, Any] = {
    "task_status": "completed",
    "headline": "The login form now trims the e-mail address",
    "blocks": [
        {
            "type": "change",
            "id": "trim",
            "summary": "White space around the address is removed before it is looked up",
            "related_files": ["src/login.py"],
        },
        {
            "type": "verification",
            "id": "tests",
            "summary": "All 214 tests pass, one of them new",
            "status": "passed",
            "evidence": "pytest: 214 passed",
        },
    ],
}
"""A turn that is finished and says how it was checked."""

UNCHECKED: dict[str, Any] = {**DONE, "blocks": DONE["blocks"][:1]}
"""The same turn without saying how it was checked: it changed files, so that is a problem."""

CARD: dict[str, Any] = {
    "task_status": "needs_action",
    "headline": "The migration is ready; it locks the orders table for a minute",
    "blocks": [
        {"type": "verification", "id": "dry-run", "summary": "A dry run on a copy passed", "status": "passed"},
        {
            "type": "decision",
            "id": "when",
            "summary": "When to run the migration",
            "options": [
                {
                    "id": "now",
                    "label": "Run it now",
                    "effect": "dispatch",
                    "instruction": "Run the migration on production and check the row counts.",
                    "consequence": "Orders can't be placed for about a minute",
                },
                {"id": "word-it", "label": "Tell me what to say", "effect": "collect"},
                {"id": "leave", "label": "Leave it for the weekend", "effect": "resolve"},
            ],
            "recommendation": "leave",
            "recommendation_reason": "Traffic is lowest on Sunday morning",
            "response_type": "single",
        },
    ],
}
"""A turn that stopped where a person must choose."""
