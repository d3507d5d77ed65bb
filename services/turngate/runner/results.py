"""The result of a role run on its way into the stream: made sendable, published until it is stored.

An answer that is too long for a report, or for the server, is cut rather than lost: what is judged then is an answer
without a whole report, which the next run learns of. Publishing the same result again does no harm.
"""

import asyncio
import logging
from typing import Final

from msgspec.structs import replace

from turngate import tracing
from turngate.jetstream.request import JetStreamError
from turngate.runner.adapters.base import RoleResult
from turngate.runner.client import TurnClient
from turngate.runner.role_run import RoleRun, sendable
from turngate_contracts import codec
from turngate_contracts.errors import Unavailable
from turngate_contracts.esm import RoleEnded
from turngate_contracts.headers import SCHEMA, block
from turngate_contracts.messages import SCHEMAS
from turngate_protocol.esm.evidence import Evidence
from turngate_protocol.esm.role_reports import RESPONSE_BYTES
from turngate_protocol.text import cut_bytes

log = logging.getLogger(__name__)

RETRY_S: Final = 0.2
LAST_RETRY_S: Final = 5.0
TOOL_NAMES: Final = 64
"""Most tools that the evidence names; the counts are of all."""
NAME_CHARACTERS: Final = 64
MESSAGE_BYTES: Final = 8 * 1024


def result_of(run: RoleRun, runner: str, result: RoleResult) -> RoleEnded:
    """Return what is published about a role run that ended."""
    offer = run.offer
    evidence = run.context.evidence() if run.context else Evidence()
    return RoleEnded(
        offer.session,
        runner,
        offer.role_run,
        offer.generation,
        run.claim,
        # One byte more than a report may have: that it was too long is to be seen.
        cut_bytes(sendable(result.response), RESPONSE_BYTES + 1),
        result.failure,
        cut_bytes(sendable(result.message), MESSAGE_BYTES),
        result.tokens,
        run.duration_ms if result.duration_ms is None else result.duration_ms,
        _bounded(evidence),
    )


async def publish_result(client: TurnClient, ended: RoleEnded) -> None:
    """Publish a result until it is stored; only a cancellation ends it before."""
    subject = client.subjects.esm_result(client.identity, ended.session)
    body = _fitting(ended, client.connection.body_limit)
    head = block({SCHEMA: SCHEMAS[RoleEnded], **tracing.headers()})
    delay = RETRY_S
    while True:
        try:
            await client.publish(subject, body, head)
        except (Unavailable, JetStreamError) as error:
            log.warning("the result of %s is not stored yet: %s", ended.role_run, error)
            await asyncio.sleep(delay)
            delay = min(delay * 2, LAST_RETRY_S)
            continue
        return


def _fitting(ended: RoleEnded, limit: int) -> bytes:
    body = codec.encode(ended)
    while len(body) > limit and ended.response:
        # JSON may make six bytes of one.
        ended = replace(ended, response=cut_bytes(ended.response, len(ended.response.encode()) // 2))
        body = codec.encode(ended)
    return body


def _bounded(evidence: Evidence) -> Evidence:
    names = {sendable(name)[:NAME_CHARACTERS]: count for name, count in evidence.tool_names.items()}
    kept = sorted(names, key=lambda name: -names[name])[:TOOL_NAMES]
    return Evidence(evidence.tool_calls, {name: names[name] for name in kept}, evidence.tool_errors)
