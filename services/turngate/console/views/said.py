"""What running agents say: the last line of each, which a browser then keeps up to date by itself."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from msgspec import Struct

from turngate.console.views.texts import one_line
from turngate_contracts.progress import RoleProgressed
from turngate_protocol.esm.activity import Activity, ActivityKind

News = Mapping[str, RoleProgressed]
"""The last lines, by their sessions."""
SILENCE: Final[News] = MappingProxyType({})


class Said(Struct, frozen=True):
    """The place of an agent's last line: whose, of which role run (any, where empty), and what it says so far."""

    session: str
    role_run: str
    line: str


def of_run(session: str, activity: Activity, news: News) -> Said | None:
    """Return the place for what the agent of a session says, or None where none is at work."""
    if activity.kind is not ActivityKind.RUNNING:
        return None
    found = news.get(session)
    line = found.progress if found and found.role_run == activity.role_run_id else ""
    return Said(session, activity.role_run_id, one_line(line))


def of_session(session: str, news: News) -> Said:
    """Return the place for what the agent of a session says, whichever role run it is at."""
    found = news.get(session)
    return Said(session, "", one_line(found.progress) if found else "")
