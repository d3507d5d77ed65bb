"""Offering a role run to a pool: one message on the role run's own subject, the newest one, once.

The stream refuses a second message on a subject, with the same error as when it is full; only the subject's own message
tells which. An offer names the change of the state that wants it. One that is older may have been taken and given back,
so it is replaced; one that is as new, or newer, is the same offer. An offer leaves by itself after a while, and the
watchdog has it made again as long as it is wanted.

Role runs are named after runs, and people may give runs of two sessions the same id. Where the subject is taken by
another session's offer, a role run is offered on a subject that is made of its session too; runners read the offer.

Whoever saves a state that wants a role run nudges: the offer goes out at once, and the reconciler, which would make it
some milliseconds later, finds it there. A nudge that is lost costs those milliseconds and nothing else.
"""

import hashlib
import logging
from typing import Final

from turngate import tracing
from turngate.jetstream.connect import parse_headers
from turngate.jetstream.request import STREAM_LIMIT, JetStreamError, PubAck, Requester
from turngate_contracts import codec
from turngate_contracts.errors import ErrorCode, Refusal
from turngate_contracts.esm import RoleOffer
from turngate_contracts.headers import MESSAGE_TTL, SCHEMA, block
from turngate_contracts.messages import SCHEMAS
from turngate_contracts.subjects import Subjects
from turngate_protocol.esm.continuation import wants
from turngate_protocol.esm.effects import DispatchRole
from turngate_protocol.esm.state import EsmState, Policy

log = logging.getLogger(__name__)

_LIVES: Final = 4
"""How many times longer than until it is made again an offer lives."""
_LEAST_S: Final = 60
_TRIES: Final = 5
_REMEMBERED: Final = 4_096
"""Offers of this process that are known to be stored; for another one the stream is asked."""


class Offers:
    """Offers role runs of one namespace; `default_pool` takes those of sessions that prefer none."""

    def __init__(self, requester: Requester, subjects: Subjects, policy: Policy, default_pool: str) -> None:
        self._requester = requester
        self._subjects = subjects
        self._default_pool = default_pool
        self._stored: dict[tuple[str, str], int] = {}
        self._stream = subjects.stream("work")
        ttl_s = max(_LEAST_S, policy.redispatch_ms * _LIVES // 1000)
        fields = {SCHEMA: SCHEMAS[RoleOffer], MESSAGE_TTL: f"{ttl_s}s"}
        self._head = block(fields)
        self._fields = fields

    def nudge(self, state: EsmState) -> None:
        """Offer the role run that a state wants that was just saved, if it wants one and that is possible now."""
        for effect in wants(state):
            if isinstance(effect, DispatchRole):
                self._nudge(self.of(effect, state))

    def of(self, effect: DispatchRole, state: EsmState) -> RoleOffer:
        """Return the offer that a state wants."""
        return RoleOffer(
            effect.session_id,
            effect.role_run_id,
            effect.role,
            effect.generation,
            effect.pool or self._default_pool,
            effect.wanted_at,
            state.revision,
        )

    async def make(self, offer: RoleOffer) -> bool:
        """Offer a role run, and say whether that was news: False when the same offer was there.

        Raises:
            Refusal: the stream is full.
            Unavailable: it may be offered or not; offer it again.
        """
        subject = self._subject(offer)
        if self._stored.pop((offer.session, subject), -1) >= offer.revision:
            return False
        body = codec.encode(offer)
        for _ in range(_TRIES):
            # Asked first: nearly always a nudge was faster, and a refusal would be followed by the same question.
            sequence, there = await self._there(subject)
            if there is not None and there.session != offer.session:
                subject = self._subject(offer, hashlib.sha256(f"{offer.session}.{offer.role_run}".encode()).hexdigest())
                sequence, there = await self._there(subject)
            if there is not None and there.revision >= offer.revision:
                return False
            if sequence:
                await self._withdraw(subject, sequence)
            try:
                await self._requester.publish(subject, body, self._traced_head())
            except JetStreamError as error:
                if error.err_code != STREAM_LIMIT:
                    raise
            else:
                return True
        raise Refusal(ErrorCode.OVERLOADED, f"{self._stream} is full; role run {offer.role_run} waits")

    def _nudge(self, offer: RoleOffer) -> None:
        subject = self._subject(offer)

        def on_ack(ack: PubAck | Exception) -> None:
            if isinstance(ack, PubAck):
                self._stored[offer.session, subject] = offer.revision
                while len(self._stored) > _REMEMBERED:
                    del self._stored[next(iter(self._stored))]
            else:
                log.debug("role run %s was not offered at once: %s", offer.role_run, ack)

        self._requester.publish_nowait(subject, codec.encode(offer), on_ack, self._traced_head())

    def _traced_head(self) -> bytes:
        return block(self._fields | tracing.headers()) if tracing.current() else self._head

    def _subject(self, offer: RoleOffer, name: str = "") -> str:
        return self._subjects.role_offer(offer.pool, offer.role.value, name or offer.role_run)

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
