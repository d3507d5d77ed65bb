"""The turns of one session over the runner's SDK: reports and endings of agents that count nothing.

Every step asks the services first, gives the numbers under the session's lock, and sends. Where somebody else was
faster, which the refusal says, it asks again. Killed anywhere, the numbers in the ledger are at worst too high, and a
repeat finds the verdict that there is.
"""

import hashlib
from collections.abc import Callable
from functools import partial
from typing import Final

from msgspec.structs import replace

from turngate.bridges.counting import (
    LastReport,
    Ledger,
    TurnExhausted,
    current_turn,
    note_ending,
    note_verdict,
    place_ending,
    place_report,
    reconcile,
)
from turngate.bridges.files import SessionFiles
from turngate.bridges.toollog import Seen
from turngate.runner import TurnClient
from turngate_contracts import messages as m
from turngate_contracts.errors import ErrorCode, Refusal
from turngate_protocol.report.session import Turn

TIMEOUT_MS: Final = 15_000
"""How long a verdict may take before the agent is told that there is none yet."""
TRIES: Final = 20
"""How often numbers are given anew when other clients of the session take them."""

OVERTAKEN: Final = frozenset({ErrorCode.ATTEMPT_CONFLICT, ErrorCode.SUPERSEDED, ErrorCode.TURN_DECIDED})
"""The refusals that mean that another client of the session was faster: ask what is known, and count again."""


class Turns:
    """The turns of one session, for one connection of an agent.

    Args:
        client: the runner's client.
        session: the session's id.
        files: what is remembered of it.
        by: what tells this connection from others.
    """

    def __init__(self, client: TurnClient, session: str, files: SessionFiles, by: str) -> None:
        self._client = client
        self._session = session
        self._files = files
        self._by = by

    async def report(self, report: bytes) -> m.Verdict:
        """Submit a report, or the repeat of one, and return its verdict.

        Raises:
            Refusal: the gate's, such as pool_mismatch; turn_decided for a turn that used up its repairs.
            Unavailable, PayloadTooLarge, InvalidMessage: it was not judged; sending it again is fine.
            OSError: the session's files can't be used.
        """
        digest = hashlib.sha256(report).hexdigest()[:32]
        left = TRIES
        while True:
            left -= 1
            placed, seen = self._files.change(partial(self._place, digest, await self.known()))
            try:
                verdict = await self._client.submit_report(
                    self._session,
                    placed.turn,
                    report,
                    attempt=placed.attempt,
                    mutated=placed.mutated,
                    used_tools=placed.used_tools,
                    timeout_ms=TIMEOUT_MS,
                )
            except Refusal as error:
                if error.code not in OVERTAKEN or not left:
                    raise
                self._note(partial(_forgotten, placed=placed))
            else:
                self._note(partial(note_verdict, placed=placed, outcome=verdict.outcome, end=seen.end))
                return verdict

    async def end(self) -> m.EndingVerdict:
        """Say that the agent stopped, and return what follows; errors as for `report`."""
        left = TRIES
        while True:
            left -= 1
            (turn, ending), seen = self._files.change(partial(_ending, await self.known()))
            try:
                ended = await self._client.end_turn(
                    self._session,
                    turn,
                    ending=ending,
                    mutated=seen.mutated,
                    used_tools=seen.used_tools,
                    timeout_ms=TIMEOUT_MS,
                )
            except Refusal as error:
                if error.code not in OVERTAKEN or not left:
                    raise
            else:
                self._note(partial(note_ending, turn=turn, outcome=ended.outcome, end=seen.end))
                return ended

    async def current(self) -> int:
        """Return the turn that a call belongs to that is made now; errors as for `report`."""
        return current_turn(reconcile(self._files.load(), await self.known()))

    async def known(self) -> Turn | None:
        """Return the session's newest turn as the services have it; None when they know nothing of the session."""
        try:
            return (await self._client.get(self._session)).state.current
        except Refusal as error:
            if error.code is not ErrorCode.NOT_FOUND:
                raise
            return None

    def _place(self, digest: str, known: Turn | None, ledger: Ledger, seen: Seen) -> tuple[Ledger, LastReport]:
        try:
            return place_report(reconcile(ledger, known), digest, self._by, seen)
        except TurnExhausted:
            raise Refusal(
                ErrorCode.TURN_DECIDED,
                f"turn {ledger.turn} used up its repairs: report no more, and end the turn with a summary in prose",
                turn=ledger.turn,
            ) from None

    def _note(self, change: Callable[[Ledger], Ledger]) -> None:
        self._files.change(lambda ledger, _seen: (change(ledger), None))


def _ending(known: Turn | None, ledger: Ledger, seen: Seen) -> tuple[Ledger, tuple[int, int]]:
    ledger, turn, ending = place_ending(reconcile(ledger, known), seen)
    return ledger, (turn, ending)


def _forgotten(ledger: Ledger, placed: LastReport) -> Ledger:
    """Take back that an attempt is a repeat of itself: it will get other numbers."""
    return replace(ledger, last=None) if ledger.last == placed else ledger
