"""A tighter limit throws nothing away: a queue with a backlog keeps room for it until it is worked off."""

from typing import Any

from turngate.jetstream.provision import provision
from turngate.jetstream.request import Requester
from turngate_contracts.subjects import Subjects
from turngate_contracts.topology import QUEUED_PER_SUBJECT, Durability, Topology


async def test_a_backlog_survives_the_limit_of_messages_per_session(requester: Requester, subjects: Subjects) -> None:
    topology = Topology(subjects, Durability.RELAXED)
    stream = subjects.stream("turns")
    wanted = next(each for each in topology.streams() if each["name"] == stream)
    unlimited = {**wanted, "max_msgs_per_subject": -1, "discard_new_per_subject": False}
    await requester.api(f"STREAM.CREATE.{stream}", unlimited)
    backlog = QUEUED_PER_SUBJECT + 44
    for _ in range(backlog):
        await requester.publish(subjects.turn_report("pool-1", "runner-1", "s1"), b"{}")

    await provision(requester, topology)

    state, config = await _info(requester, stream)
    assert (state["messages"], config["max_msgs_per_subject"]) == (backlog, 2 * backlog)
    await requester.api(f"STREAM.PURGE.{stream}", {"keep": 3})
    await provision(requester, topology)
    state, config = await _info(requester, stream)
    assert (state["messages"], config["max_msgs_per_subject"]) == (3, QUEUED_PER_SUBJECT)


async def _info(requester: Requester, stream: str) -> tuple[dict[str, Any], dict[str, Any]]:
    info = await requester.api(f"STREAM.INFO.{stream}")
    return info["state"], info["config"]
