"""Role runs that wait in vain: offered to a pool in which no live runner takes the role.

They are found by what is offered, so that looking costs what waits in vain and not what there is of objectives.
"""

from collections.abc import Iterable
from typing import Final

from turngate.jetstream.direct import MOST_KEYS, read_newest, read_subjects
from turngate.jetstream.request import Requester
from turngate.supervisor.presence import takers
from turngate_contracts import codec
from turngate_contracts.beats import RunnerPresence
from turngate_contracts.errors import InvalidMessage
from turngate_contracts.esm import RoleOffer
from turngate_contracts.subjects import Subjects

MOST: Final = MOST_KEYS
"""Offers that are looked at; where more wait in vain, starting a runner for these shows the others."""


async def unattended(requester: Requester, subjects: Subjects, alive: list[RunnerPresence]) -> list[str]:
    """Return the sessions whose role is offered while none of these runners takes it, sorted.

    Raises:
        Unavailable: the stream did not answer.
    """
    stream = subjects.stream("work")
    offered = await read_subjects(requester, stream, subjects.all_role_offers())
    found = await read_newest(requester, stream, list(_in_vain(offered, alive))[:MOST])
    sessions = set()
    for stored in found:
        try:
            sessions.add(codec.decode(stored.body, RoleOffer, "a RoleOffer").session)
        except InvalidMessage:
            continue  # a runner that takes it has it buried
    return sorted(sessions)


def _in_vain(offered: Iterable[str], alive: list[RunnerPresence]) -> Iterable[str]:
    taken: dict[tuple[str, str], bool] = {}
    for subject in offered:
        _namespace, _work, pool, _kind, role, _run = subject.split(".")
        place = (pool, role)
        if place not in taken:
            taken[place] = takers(alive, pool, role) > 0
        if not taken[place]:
            yield subject
