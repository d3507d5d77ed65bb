"""The consumers of pools: made when the first runner joins, shared by all of them, and bounded in number.

Where a runner's identity names its pools, permissions let it join no other. The bound is for servers without
identities, where anybody could name new pools for ever.
"""

from collections.abc import Iterable
from typing import Final

from turngate.jetstream.provision import (
    CONSUMER_NOT_FOUND,
    STREAM_NOT_FOUND,
    TopologyMissing,
    ensure_consumer,
)
from turngate.jetstream.request import JetStreamError, Requester
from turngate_contracts.errors import ErrorCode, TurngateError
from turngate_contracts.topology import Topology

API_TIMEOUT_MS: Final = 15_000
MAX_CONSUMERS: Final = 1_000
"""Most consumers of pools; a pool has one for prompts and one for each role that its runners take."""


class TooManyPools(TurngateError):
    """A pool that can't be made any more."""

    code = ErrorCode.OVERLOADED

    def __init__(self, pool: str, stream: str, limit: int) -> None:
        super().__init__(
            f"pool {pool} can't be made: {stream} has {limit} consumers, which is the most; join a pool that exists,"
            " or delete consumers of pools that nobody uses",
            pool=pool,
            limit=limit,
        )


async def ensure_pool(
    requester: Requester, topology: Topology, pool: str, roles: Iterable[str], *, limit: int = MAX_CONSUMERS
) -> None:
    """Make the consumers of a pool that are missing.

    Raises:
        TooManyPools: there are too many consumers already.
        TopologyMissing, TopologyStuck, Unavailable: as for `ensure_consumer`.
    """
    for stream, config in topology.pool_consumers(pool, roles):
        if not await _exists(requester, stream, config["durable_name"]):
            info = await requester.api(f"STREAM.INFO.{stream}", timeout_ms=API_TIMEOUT_MS)
            if int(info["state"]["consumer_count"]) >= limit:
                raise TooManyPools(pool, stream, limit)
        await ensure_consumer(requester, stream, config)


async def _exists(requester: Requester, stream: str, consumer: str) -> bool:
    try:
        await requester.api(f"CONSUMER.INFO.{stream}.{consumer}", timeout_ms=API_TIMEOUT_MS)
    except JetStreamError as error:
        if error.err_code == CONSUMER_NOT_FOUND:
            return False
        if error.err_code == STREAM_NOT_FOUND:
            raise TopologyMissing(stream) from None
        raise
    return True
