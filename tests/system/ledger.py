"""What clients sent and what they were told: the other side of every account that the tests of faults settle.

Each message is written down before it is sent, so that whatever a server holds can be traced to it.
"""

from msgspec import Struct

from tests.system.patience import PATIENCE_MS, patiently
from turngate.runner import TurnClient
from turngate_contracts.messages import AnswerRecorded, EndingVerdict, PromptQueued, TurnDismissed, Verdict
from turngate_protocol.report.answering import Pick
from turngate_protocol.report.session import Prompt
from turngate_protocol.report.turn import Attempt, TurnEnd

Number = tuple[str, int, int]
"""A session, a turn, and an attempt or an ending of it."""


class Reported(Struct):
    """An attempt to report, and its verdict once it is known."""

    client: TurnClient
    sent: Attempt
    verdict: Verdict | None = None


class Ending(Struct):
    """An ending of a turn, and its outcome once it is known."""

    client: TurnClient
    sent: TurnEnd
    outcome: EndingVerdict | None = None


class Ledger:
    """Everything that the clients of one test sent and were told."""

    def __init__(self) -> None:
        self.reports: dict[Number, Reported] = {}
        self.endings: dict[Number, Ending] = {}
        self.answers: dict[tuple[str, int, str], Pick] = {}
        self.dismissals: dict[tuple[str, int, str], str] = {}
        self.prompts: dict[str, Prompt] = {}
        self.expected_prompts: set[str] = set()
        """The ids of prompts that pools must get: answers that dispatch, and prompts of services."""
        self.verdicts = 0

    async def report(
        self, client: TurnClient, session: str, turn: int, attempt: int, report: bytes, *, mutated: bool = True
    ) -> Verdict:
        """Submit an attempt and write down its verdict."""
        sent = Attempt(session, client.pool, client.identity, turn, attempt, report, mutated)
        entry = self.reports[session, turn, attempt] = Reported(client, sent)
        entry.verdict = verdict = await submit(client, sent)
        self.verdicts += 1
        return verdict

    async def end(
        self, client: TurnClient, session: str, turn: int, ending: int = 1, *, mutated: bool = True
    ) -> EndingVerdict:
        """End a turn and write down the outcome."""
        sent = TurnEnd(session, client.pool, client.identity, turn, ending, mutated)
        entry = self.endings[session, turn, ending] = Ending(client, sent)
        entry.outcome = outcome = await client.end_turn(
            session, turn, ending=ending, mutated=mutated, timeout_ms=PATIENCE_MS
        )
        return outcome

    async def answer(self, person: TurnClient, session: str, turn: int, number: int) -> AnswerRecorded:
        """Answer a card and write down the prompt that must follow, if any."""
        op = f"op-{person.identity}-{session}-{turn}"
        self.answers[session, turn, person.identity] = Pick(turn, person.identity, number, op=op)
        recorded = await person.answer(session, turn, number, op=op, timeout_ms=PATIENCE_MS)
        if recorded.answer.prompt:
            self.expected_prompts.add(recorded.answer.prompt)
        return recorded

    async def dismiss(self, person: TurnClient, session: str, turn: int) -> TurnDismissed:
        """Close a card."""
        op = self.dismissals[session, turn, person.identity] = f"op-{person.identity}-{session}-{turn}"
        return await person.dismiss(session, turn, op=op, timeout_ms=PATIENCE_MS)

    async def prompt(self, client: TurnClient, session: str, prompt: str, text: str) -> PromptQueued:
        """Have a service's prompt started in a session."""
        self.prompts[prompt] = Prompt(prompt, session, text, "service", 0, actor=client.identity)
        queued = await patiently(lambda: client.send_prompt(session, prompt, text))
        self.expected_prompts.add(prompt)
        return queued

    @property
    def sessions(self) -> set[str]:
        """Every session that anything was sent for."""
        return {session for session, _, _ in (*self.reports, *self.endings)}


async def submit(client: TurnClient, attempt: Attempt) -> Verdict:
    """Submit an attempt, whatever it takes."""
    return await client.submit_report(
        attempt.session,
        attempt.turn,
        None if attempt.report is None else bytes(attempt.report),
        attempt=attempt.attempt,
        mutated=attempt.mutated,
        used_tools=attempt.used_tools,
        timeout_ms=PATIENCE_MS,
    )
