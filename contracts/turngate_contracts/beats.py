"""The messages of who is alive: what runners say with each beat and are told for it, and who was heard of lately.

As those of `messages`: frozen, growing only by fields with defaults, times in ms since the epoch. As those of `esm`, a
beat names no runner: that stands in the subject that it may publish on.
"""

from typing import Final

from msgspec import Struct

from turngate_protocol.esm.objective import Role
from turngate_protocol.esm.steering import BeatAction

MAX_HELD: Final = 256
"""Most role runs that one beat may speak of."""
MAX_PROGRESS: Final = 500
"""Longest line of progress, in characters; what is longer is cut."""


class HeldRole(Struct, frozen=True, omit_defaults=True):
    """A role run that a runner holds, and the objective's version that its agent knows; `ended` once it is reported."""

    session: str
    role_run: str
    role: Role
    generation: int
    claim: str
    since: int = 0
    version: int = 0
    progress: str = ""
    tool_calls: int = 0
    ended: bool = False


class Beat(Struct, frozen=True, omit_defaults=True):
    """A runner is alive and holds these role runs. `incarnation` tells one process of its name from the next."""

    incarnation: str
    pools: tuple[str, ...]
    roles: tuple[Role, ...]
    slots: int = 1
    held: tuple[HeldRole, ...] = ()
    started_at: int = 0
    draining: bool = False


class HeldAnswer(Struct, frozen=True, omit_defaults=True):
    """What to do about one of them: go on, stop (`message` says why), or tell the agent `message`.

    `version` is to be sent with the next beat.
    """

    role_run: str
    claim: str
    action: BeatAction
    message: str = ""
    version: int = 0


class BeatAnswer(Struct, frozen=True):
    """One answer for each role run of the beat, in their order."""

    answers: tuple[HeldAnswer, ...]


class RunnerPresence(Struct, frozen=True, omit_defaults=True):
    """A runner that was heard of lately, and what it holds; `at` is when."""

    runner: str
    at: int
    incarnation: str
    pools: tuple[str, ...]
    roles: tuple[Role, ...]
    slots: int = 1
    held: tuple[HeldRole, ...] = ()
    started_at: int = 0
    draining: bool = False


class ListRunners(Struct, frozen=True, omit_defaults=True):
    """Ask who is alive, by name; `cursor` is the last page's, `pool` one pool only."""

    cursor: str = ""
    limit: int = 100
    pool: str = ""


class RunnersPage(Struct, frozen=True, omit_defaults=True):
    """A page of runners. Ask again with `cursor` while `more`."""

    runners: tuple[RunnerPresence, ...]
    cursor: str = ""
    more: bool = False


BEAT_SCHEMAS: Final[dict[type[Struct], str]] = {
    Beat: "beat.v1",
    BeatAnswer: "beat_answer.v1",
    RunnerPresence: "runner_presence.v1",
    ListRunners: "list_runners.v1",
    RunnersPage: "runners_page.v1",
}
"""The name and version of every message of who is alive; `esm.ESM_SCHEMAS` holds them too."""
