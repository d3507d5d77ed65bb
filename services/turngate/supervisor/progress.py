"""What running agents say, told to whoever watches: from the beats of runners that hold their role runs.

Only what is new is told, and of each role run at most once a second, whatever its runner sends: what comes in between
is told with a later beat, if it is still the last word. What is told leaves the events by itself, so it can't push the
history out. Nothing here is the truth of anything, so what can't be stored is not told again.
"""

import logging
from typing import Final

from msgspec import Struct

from turngate.jetstream.request import PubAck, Requester
from turngate.jetstream.store import rfc3339
from turngate_contracts import codec
from turngate_contracts import headers as h
from turngate_contracts.beats import MAX_PROGRESS, HeldRole
from turngate_contracts.messages import SCHEMAS
from turngate_contracts.progress import PROGRESSED, RoleProgressed
from turngate_contracts.subjects import Subjects
from turngate_protocol.esm.objective import counter

log = logging.getLogger(__name__)

LEAST_MS: Final = 1_000
"""Least time between two lines of one role run."""
KEPT_S: Final = 600
"""How long a line stays among the events."""
_REMEMBERED: Final = 4_096
"""Role runs of which it is known what was last told; of an older one the same may be told once more."""


class _Told(Struct, frozen=True):
    progress: str
    tool_calls: int
    at: int


class ProgressNews:
    """Tells of one process's beats."""

    def __init__(self, requester: Requester, subjects: Subjects) -> None:
        self._requester = requester
        self._subjects = subjects
        self._source = f"/turngate/{subjects.namespace}/progress"
        self._told: dict[str, _Told] = {}

    def tell(self, runner: str, held: HeldRole, now: int) -> None:
        """Tell what the agent of a role run says, which this runner holds, if that is news and it is time."""
        line = held.progress[:MAX_PROGRESS]
        before = self._told.get(held.claim)
        if before is None and not line and not held.tool_calls:
            return
        if before is not None:
            if (before.progress, before.tool_calls) == (line, held.tool_calls) or abs(now - before.at) < LEAST_MS:
                return
            del self._told[held.claim]
        self._told[held.claim] = _Told(line, held.tool_calls, now)
        if len(self._told) > _REMEMBERED:
            del self._told[next(iter(self._told))]
        news = RoleProgressed(
            held.session, held.role_run, held.role, runner, now, line, counter(held.tool_calls), counter(held.since)
        )
        subject = self._subjects.progress(held.session)
        self._requester.publish_nowait(subject, codec.encode(news), _on_ack, self._head(news))

    def _head(self, news: RoleProgressed) -> bytes:
        return h.block(
            {
                h.SCHEMA: SCHEMAS[RoleProgressed],
                h.MESSAGE_TTL: f"{KEPT_S}s",
                "ce-specversion": "1.0",
                "ce-id": f"{news.role_run}.{news.at}",
                "ce-source": self._source,
                "ce-type": f"turngate.{PROGRESSED}",
                "ce-subject": news.session,
                "ce-time": rfc3339(news.at),
                "content-type": "application/json",
            }
        )


def _on_ack(ack: PubAck | Exception) -> None:
    if isinstance(ack, Exception):
        log.debug("progress was not told: %s", ack)
