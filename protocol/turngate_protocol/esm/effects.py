"""What a state can want from the world: each idempotent, each safe to do again after a crash.

The machine returns them as data; a reconciler performs them in the order in which they come and only then forgets the
revision. Nothing here does anything.
"""

from msgspec import Struct

from turngate_protocol.esm.inputs import TimerKind
from turngate_protocol.esm.objective import Role
from turngate_protocol.esm.state import HaltReason


class CancelRole(Struct, frozen=True):
    """Tell a runner to stop a role run that was given up: a nudge, the answer to its next beat is the truth."""

    session_id: str
    role_run_id: str
    generation: int
    claim_id: str
    runner: str
    reason: str


class OpenInbox(Struct, frozen=True):
    """Show a person that the objective waits for them: why, what to know, since when (milliseconds since the epoch)."""

    session_id: str
    reason: HaltReason
    message: str
    since: int


class CloseInbox(Struct, frozen=True):
    """Take back the inbox entry, if there is one."""

    session_id: str


class SetTimer(Struct, frozen=True):
    """Send a `Timer` of this kind and generation back at `at` (milliseconds since the epoch), instead of any before it.

    A time that has passed means at once.
    """

    session_id: str
    kind: TimerKind
    generation: int
    at: int


class DispatchRole(Struct, frozen=True):
    """Offer a role run to the runners of a pool, once: a second offer of the same role run in the pool is the same one.

    The offer is a ticket and carries no prompt. Who claims it gets the request, built from the state at that moment.

    Attributes:
        session_id: the session.
        role_run_id: the role run; people may give runs of several sessions the same id.
        role: its role.
        generation: its generation.
        pool: the preferred pool, empty for the session's own.
        wanted_at: since when it is wanted, in milliseconds since the epoch.
    """

    session_id: str
    role_run_id: str
    role: Role
    generation: int
    pool: str
    wanted_at: int


Effect = CancelRole | OpenInbox | CloseInbox | SetTimer | DispatchRole
