"""What has to be done before a stream gets a tighter limit, so that the limit itself throws nothing away.

JetStream applies a new limit at once, to what is stored as well: the oldest messages of a subject with too many are
gone, and so is every state that is older than the new age, also one that still waits for a person.
"""

import logging
from typing import Any

from turngate.clock import system_clock
from turngate.jetstream.request import Requester
from turngate.jetstream.retention import BUCKETS, Retention
from turngate_contracts.topology import Topology

log = logging.getLogger(__name__)

API_TIMEOUT_MS = 15_000


async def before_tightening(
    requester: Requester, topology: Topology, found: dict[str, Any], wanted: dict[str, Any]
) -> dict[str, Any]:
    """Make room for a stream's new limits, and return what of them must stay wider for now.

    A work queue with a backlog keeps a limit above it; provisioning again, once it is worked off, makes it what is
    wanted. Open states that are older than the new age are saved again.

    Args:
        requester: the connection's requests.
        topology: what is wanted.
        found: the stream's configuration on the server.
        wanted: the one that it is to get.

    Raises:
        Unavailable, JetStreamError: the server did not answer, or refused; nothing has changed yet.
    """
    for bucket in BUCKETS:
        if wanted["name"] == topology.subjects.bucket_stream(bucket) and _is_tighter(found, wanted, "max_age"):
            await Retention(requester, topology, system_clock()).sweep_bucket(bucket)
    limit = int(wanted.get("max_msgs_per_subject", -1))
    if wanted["retention"] != "workqueue" or not _is_tighter(found, wanted, "max_msgs_per_subject"):
        return {}
    most = await _most_of_one_subject(requester, wanted["name"])
    # Runners may go on publishing in this instant: half of the limit must be free.
    if most * 2 <= limit:
        return {}
    log.warning("%s has %d messages of one subject; its limit stays above that for now", wanted["name"], most)
    return {"max_msgs_per_subject": max(2 * most, limit)}


def _is_tighter(found: dict[str, Any], wanted: dict[str, Any], field: str) -> bool:
    before, after = int(found.get(field) or 0), int(wanted.get(field) or 0)
    return after > 0 and (before <= 0 or after < before)


async def _most_of_one_subject(requester: Requester, stream: str) -> int:
    most, seen, total = 0, 0, 1
    while seen < total:
        request = {"subjects_filter": ">", "offset": seen}
        answer = await requester.api(f"STREAM.INFO.{stream}", request, timeout_ms=API_TIMEOUT_MS)
        page = answer["state"].get("subjects") or {}
        total = int(answer.get("total", 0))
        if not page:
            break
        seen += len(page)
        most = max(most, *page.values())
    return most
