"""A namespace as topology version 2 made it: the turns had one subject a key, their reconciler got each revision."""

from typing import Any, Final

from turngate.jetstream.request import Requester
from turngate_contracts import headers as h
from turngate_contracts.subjects import Subjects
from turngate_contracts.topology import TURNS_RECONCILER, VERSION_KEY, Topology

VERSION: Final = 2


def streams(topology: Topology) -> list[dict[str, Any]]:
    """Return the streams of a topology as version 2 had them."""
    return [_older(topology.subjects, config) for config in topology.streams()]


def _older(subjects: Subjects, config: dict[str, Any]) -> dict[str, Any]:
    older = {**config, "metadata": {VERSION_KEY: str(VERSION)}}
    bucket, one_subject = subjects.bucket_stream("turns"), subjects.unsplit("turns", ">")
    if config["name"] == bucket:
        older["subjects"] = [one_subject]
    older["sources"] = [
        {"name": bucket, "subject_transforms": [{"src": one_subject, "dest": subjects.event("turns", ">")}]}
        if source["name"] == bucket
        else source
        for source in config.get("sources", [])
    ]
    return older


async def make(requester: Requester, topology: Topology, **changes: Any) -> None:
    """Make the streams and consumers; `changes` are of the turns' reconciler."""
    for config in streams(topology):
        await requester.api(f"STREAM.CREATE.{config['name']}", config)
    for stream, config in topology.consumers():
        made = dict(config)
        if config["durable_name"] == TURNS_RECONCILER:
            made = {**{name: made[name] for name in made if name != "filter_subject"}, **changes}
        request = {"stream_name": stream, "config": made}
        await requester.api(f"CONSUMER.DURABLE.CREATE.{stream}.{made['durable_name']}", request)


async def save(
    requester: Requester, subjects: Subjects, key: str, value: bytes, revision: int = 0, *, wants: bool = False
) -> int:
    """Save a revision as a process of version 2 did, and return its number."""
    fields = {
        h.SCHEMA: "count.v1",
        h.EXPECTED_SEQUENCE: str(revision),
        **({h.WANTS: "1"} if wants else {}),
        "ce-id": f"{key}.{revision}",
        "ce-type": "turngate.count.changed",
        "ce-subject": key,
        "ce-time": "2023-11-14T22:13:20.123Z",
        "ce-specversion": "1.0",
        "ce-source": f"/turngate/{subjects.namespace}/turns",
        "content-type": "application/json",
    }
    return (await requester.publish(subjects.unsplit("turns", key), value, h.block(fields))).seq
