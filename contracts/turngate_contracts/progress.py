"""What an agent says while it works: news for whoever watches, kept for minutes, part of no state.

A supervisor publishes it from the beats of runners that hold the role run, so a line belongs to a role run that is
really under way. Lines are coalesced: of those that come at once only the last is told. One that is lost is no loss.
"""

from typing import Final

from msgspec import Struct

from turngate_protocol.esm.objective import Role

PROGRESSED: Final = "role.progressed"
"""The `ce-type` of progress without its `turngate.`."""


class RoleProgressed(Struct, frozen=True, omit_defaults=True):
    """The last line that a running agent said, and how many tool calls its runner has seen; it was told `at`."""

    session: str
    role_run: str
    role: Role
    runner: str
    at: int
    progress: str = ""
    tool_calls: int = 0
    since: int = 0


PROGRESS_SCHEMAS: Final[dict[type[Struct], str]] = {RoleProgressed: "role_progressed.v1"}
"""The name and version of the message; `messages.SCHEMAS` holds it too."""
