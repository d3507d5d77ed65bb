"""Offering a role run to a pool: one message on the role run's own subject, the newest one, once.

The stream refuses a second message on a subject, with the same error as when it is full; only the subject's own message
tells which. An offer names the change of the state that wants it. One that is older may have been taken and given back,
so it is replaced; one that is as new, or newer, is the same offer. An offer leaves by itself after a while, and the
watchdog has it made again as long as it is wanted.
"""

from typing import Final

from turngate.jetstream.connect import parse_headers
from turngate.jetstream.request import STREAM_LIMIT, JetStreamError, Requester
from turngate_contracts import codec
from turngate_contracts.errors import ErrorCode, Refusal
from turngate_contracts.esm import RoleOffer
from turngate_contracts.headers import MESSAGE_TTL, SCHEMA, block
from turngate_contracts.messages import SCHEMAS
from turngate_contracts.subjects import Subjects
from turngate_protocol.esm.state import Policy

_LIVES: Final = 4
"""How many times longer than until it is made again an offer lives."""
_LEAST_S: Final = 60
_TRIES: Final = 5


class Offers:
    """Offers role runs of one namespace."""

    def __init__(self, requester: Requester, subjects: Subjects, policy: Policy) -> None:
        self._requester = requester
        self._subjects = subjects
        self._stream = subjects.stream("work")
        ttl_s = max(_LEAST_S, policy.redispatch_ms * _LIVES // 1000)
        self._head = block({SCHEMA: SCHEMAS[RoleOffer], MESSAGE_TTL: f"{ttl_s}s"})

    async def make(self, offer: RoleOffer) -> bool:
        """Offer a role run, and say whether that was news: False when the same offer was there.

        Raises:
            Refusal: the stream is full.
            Unavailable: it may be offered or not; offer it again.
        """
        subject = self._subjects.role_offer(offer.pool, offer.role.value, offer.role_run)
        body = codec.encode(offer)
        for _ in range(_TRIES):
            try:
                await self._requester.publish(subject, body, self._head)
            except JetStreamError as error:
                if error.err_code != STREAM_LIMIT:
                    raise
            else:
                return True
            sequence, there = await self._there(subject)
            if there is not None and there.revision >= offer.revision:
                return False
            if sequence:
                await self._withdraw(subject, sequence)
        raise Refusal(ErrorCode.OVERLOADED, f"{self._stream} is full; role run {offer.role_run} waits")

    async def _there(self, subject: str) -> tuple[int, RoleOffer | None]:
        reply = await self._requester.request(f"$JS.API.DIRECT.GET.{self._stream}.{subject}")
        status, fields = parse_headers(reply.head)
        if status == 404:
            return 0, None
        try:
            offer = codec.decode(reply.body, RoleOffer, "a RoleOffer")
        except ValueError:
            offer = None
        return int(fields.get("Nats-Sequence", "0")), offer

    async def _withdraw(self, subject: str, sequence: int) -> None:
        # Up to that one only: a newer offer that came in between stays.
        await self._requester.api(f"STREAM.PURGE.{self._stream}", {"filter": subject, "seq": sequence + 1})
