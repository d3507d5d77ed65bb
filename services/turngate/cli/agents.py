"""What `turngate mcp` and `turngate hook` share: who they act as, and the variables that an agent's start may set."""

import os
from typing import TYPE_CHECKING, Final

from turngate.cli.connected import default_identity, id_of

if TYPE_CHECKING:
    from turngate.settings import Settings

TASK_VARIABLE: Final = "TURNGATE_TASK"
PARENT_VARIABLE: Final = "TURNGATE_PARENT"
RUN_VARIABLE: Final = "TURNGATE_RUN"


def identity_of(settings: "Settings") -> str:
    """Return the runner that both act as: the configured one, else its key's, else one named after the user."""
    return settings.identity or settings.login().identity() or id_of(f"mcp-{default_identity(os.environ)}", "mcp")
