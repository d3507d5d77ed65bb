"""The two tools that a model has for its objective: `get_esm` and `update_esm`, as schemas and as functions.

A model may read where its objective stands and claim that it is complete or blocked. Neither claim is the last word: a
claim of completion makes a candidate that is challenged and audited, a blocker counts once a run. The tools stay
visible while the objective is active, paused, blocked or limited. Nothing here is stored; `continuation` records an
update.
"""

from collections.abc import Mapping
from typing import Any, Final

from turngate_protocol.esm.errors import InvalidArgumentError
from turngate_protocol.esm.objective import Objective
from turngate_protocol.esm.present import format_objective
from turngate_protocol.esm.texts import required

GET_ESM: Final[dict[str, Any]] = {
    "name": "get_esm",
    "description": "Read the objective of this session: its status, progress, remaining work and last review.",
    "input_schema": {"type": "object", "properties": {}, "additionalProperties": False},
}
"""The schema of `get_esm`."""

UPDATE_ESM: Final[dict[str, Any]] = {
    "name": "update_esm",
    "description": (
        "Claim that the objective of this session is complete, or that it is blocked. A claim of completion is "
        "challenged by a critic and proven by an audit before it counts. A blocker counts when three runs in a row "
        "report the same one. Do not call it to report progress."
    ),
    "input_schema": {
        "type": "object",
        "properties": {
            "status": {"type": "string", "enum": ["complete", "blocked"], "description": "What you claim."},
            "reason": {
                "type": "string",
                "description": "The evidence that it is complete, or what is needed to go on.",
            },
        },
        "required": ["status", "reason"],
        "additionalProperties": False,
    },
}
"""The schema of `update_esm`."""


def get_esm(objective: Objective | None) -> str:
    """Return what `get_esm` answers."""
    return format_objective(objective)


def update_arguments(arguments: Mapping[str, Any]) -> tuple[str, str]:
    """Return the status and the reason of a call of `update_esm`.

    Raises:
        InvalidArgumentError: the call does not have the shape of the schema.
    """
    for name in arguments:
        if name not in ("status", "reason"):
            raise InvalidArgumentError("argument", str(name), "give a status and a reason and nothing else")
    status, reason = arguments.get("status"), arguments.get("reason")
    if status not in ("complete", "blocked"):
        raise InvalidArgumentError("status", str(status), "use complete or blocked")
    if not isinstance(reason, str):
        raise InvalidArgumentError("reason", str(reason), "write it as a text")
    return str(status), required("reason", reason, f"say why the objective is {status}")


def update_answer(objective: Objective) -> str:
    """Return what `update_esm` answers once the update is recorded."""
    return "Recorded. Finish this run with your report.\n" + format_objective(objective)
