"""What waits for a person, as the inbox lists it over all sessions and kinds.

An entry is derived from a session's state, which stays the truth: it holds what a list shows and what leads to the
thing itself. Each protocol makes its own entries; nothing here decides anything.
"""

from msgspec import Struct


class InboxEntry(Struct, frozen=True, omit_defaults=True):
    """What waits for a person in a session.

    Attributes:
        kind: what it is: `card` or `question`.
        session: the session that waits.
        pool: the pool of the session.
        since: since when, in ms since the epoch.
        title: what it is about, in the model's words; hostile text.
        turn: the turn that it belongs to; 0 for none.
        options: how many options a card offers.
        request_id: the id of a question's request.
        questions: how many questions it asks.
        runner: the runner that asked it.
        expires_at: when its policy decides it, in ms since the epoch; 0 for never.
        parent_session: the session that delegated this one.
        task: the task of that session.
    """

    kind: str
    session: str
    pool: str
    since: int
    title: str
    turn: int = 0
    options: int = 0
    request_id: str = ""
    questions: int = 0
    runner: str = ""
    expires_at: int = 0
    parent_session: str = ""
    task: str = ""
