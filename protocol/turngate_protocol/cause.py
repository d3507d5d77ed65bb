"""Why a revision of a state exists.

Every state that is saved carries its cause, whatever protocol it belongs to, so that a reader of the events learns what
happened without comparing two snapshots. Nothing here decides anything.
"""

from typing import Final

from msgspec import Struct


class Cause(Struct, frozen=True, omit_defaults=True, gc=False):
    """Why a revision exists.

    Attributes:
        type: the kind of event, such as `turn.answered`.
        actor: who caused it: a runner, a person, or `turngate` itself.
        at: when, in ms since the epoch.
        turn: the turn that it is about, if it is about one.
        attempt: the attempt or ending of that turn, if it is about one.
        message: what else names it, such as the id of a prompt or of a question.
    """

    type: str
    actor: str
    at: int
    turn: int = 0
    attempt: int = 0
    message: str = ""


SYSTEM: Final = "turngate"
"""The actor of what no runner and no person caused: a policy's decision, or a reconciler's record."""
