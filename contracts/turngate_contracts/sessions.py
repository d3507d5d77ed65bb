"""The messages of the list of sessions: what a person's client shows of all of them before it looks at one.

As those of `messages`: frozen, growing only by fields with defaults, times in ms since the epoch.
"""

from typing import Final

from msgspec import Struct

from turngate_contracts.rows import Caller, Request
from turngate_contracts.topology import VALIDATION
from turngate_protocol.report.session import Phase

MAX_SEARCH: Final = 200
"""Longest text that sessions are searched for, in characters."""


class ListSessions(Struct, frozen=True, omit_defaults=True):
    """Ask for sessions, the last changed first; `cursor` is the last page's, `pool` one pool only.

    `text`: only those that have it in their name or in the headline of their current report, in whatever case.
    """

    cursor: int = 0
    limit: int = 50
    pool: str = ""
    text: str = ""


class SessionEntry(Struct, frozen=True, omit_defaults=True):
    """What a list shows of a session: its current turn, and what happened last.

    Attributes:
        session: the session.
        pool: its pool.
        revision: the state that this was read from.
        at: when it last changed.
        event: what happened then, such as `turn.answered`.
        actor: who did it.
        turn: the current turn.
        phase: where that stands.
        runner: the runner of the turn.
        title: the headline of its report, in the model's words; hostile text.
        waiting: whether its card waits for a person.
        options: how many options the card offers.
        rejections: how often a report of the turn was rejected.
        held: how many prompts wait behind the card.
        answered_by: who answered the card.
    """

    session: str
    pool: str
    revision: int
    at: int
    event: str
    turn: int
    phase: Phase
    runner: str = ""
    actor: str = ""
    title: str = ""
    waiting: bool = False
    options: int = 0
    rejections: int = 0
    held: int = 0
    answered_by: str = ""


class SessionsPage(Struct, frozen=True, omit_defaults=True):
    """A page of sessions. Ask again with `cursor` while `more`, also after a page without entries."""

    entries: tuple[SessionEntry, ...]
    cursor: int = 0
    more: bool = False


SESSION_REQUESTS: Final = (
    Request(
        "turn.list",
        ListSessions,
        SessionsPage,
        VALIDATION,
        (Caller.PERSON, Caller.SERVICE),
        "List sessions, the last changed first, a page at a time.",
    ),
)
"""What people ask about all sessions."""

SESSION_SCHEMAS: Final[dict[type[Struct], str]] = {
    ListSessions: "list_sessions.v1",
    SessionsPage: "sessions_page.v1",
}
"""The name and version of every message of the list of sessions; `messages.SCHEMAS` holds them too."""
