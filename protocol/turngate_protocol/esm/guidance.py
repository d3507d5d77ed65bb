"""The guidance queue: what a person says to whoever works on the objective next.

A text waits until a role run that carried it was applied, and only then is consumed: guidance added while a role runs
waits for the next one, guidance carried by a run that failed is carried again. The queue belongs to the session, so it
survives an edit, a clear and a new objective. Nothing here reads or rewrites what a person wrote.
"""

from collections.abc import Collection
from typing import Final

from msgspec import Struct

from turngate_protocol.esm.errors import InvalidArgumentError, NotFoundError
from turngate_protocol.esm.objective import Objective
from turngate_protocol.esm.texts import required
from turngate_protocol.text import byte_length

GUIDANCE_BYTES: Final = 16 * 1024
"""Longest guidance, in UTF-8 bytes."""

PENDING_BYTES: Final = 128 * 1024
"""Most bytes of guidance that may wait in a session."""

LISTED: Final = 100
"""How many waiting texts are listed, and carried by one role run."""


class Guidance(Struct, frozen=True, omit_defaults=True):
    """One text of a person that waits for a role run.

    Attributes:
        id: its id, unique in the session.
        text: what the person wrote, without the white space around it.
        version: the version of the objective that the person saw.
        added_at: when, in milliseconds since the epoch.
    """

    id: str
    text: str
    version: int = 0
    added_at: int = 0


def add_guidance(
    queue: tuple[Guidance, ...], objective: Objective | None, guidance_id: str, text: str, *, now: int
) -> tuple[Guidance, ...]:
    """Return `queue` with one more text at its end, stamped with the version of `objective`.

    Args:
        queue: what waits.
        objective: the objective of the session, in whatever status.
        guidance_id: the id of the new entry.
        text: what the person wrote; 1 to 16,384 UTF-8 bytes.
        now: milliseconds since the epoch.

    Raises:
        InvalidArgumentError: the text is blank or too long, can't be sent, or the queue is full.
        NotFoundError: there is no objective.
    """
    text = required("text", text, "write what should be considered", GUIDANCE_BYTES)
    if objective is None:
        raise NotFoundError
    if byte_length(text) + sum(byte_length(g.text) for g in queue) > PENDING_BYTES:
        raise InvalidArgumentError("text", text, f"at most {PENDING_BYTES} bytes may wait, let a run take them first")
    return (*queue, Guidance(guidance_id, text, objective.version, now))


def pending_guidance(queue: tuple[Guidance, ...]) -> tuple[Guidance, ...]:
    """Return what waits, oldest first, at most 100."""
    return queue[:LISTED]


def consume_guidance(queue: tuple[Guidance, ...], ids: Collection[str]) -> tuple[Guidance, ...]:
    """Return `queue` without the entries of `ids`; an id that does not wait is ignored."""
    return tuple(g for g in queue if g.id not in ids) if ids else queue
