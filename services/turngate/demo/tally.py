"""What the demo's runners saw, held against what the system's state says: each attempt has exactly one verdict."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from turngate.runner import TurnClient
from turngate_contracts.errors import Refusal
from turngate_protocol.report.session import SessionTurns

_Attempt = tuple[str, int, int]


class Tally:
    """Counts the facts that runners print."""

    def __init__(self) -> None:
        self.verdicts: dict[_Attempt, list[str]] = {}
        self.outcomes: Counter[str] = Counter()
        self.codes: Counter[str] = Counter()
        self.endings: Counter[str] = Counter()
        self.buried = 0
        self.latencies_ms: list[float] = []
        self.turns: set[tuple[str, int]] = set()
        self.stories_done: set[str] = set()
        self.prompts_done: Counter[str] = Counter()
        self.errors: list[str] = []

    def add(self, fact: Mapping[str, Any]) -> None:
        """Count one fact."""
        kind = fact["kind"]
        if kind in ("verdict", "ending"):
            self.turns.add((fact["session"], fact["turn"]))
        if kind == "verdict":
            self.verdicts.setdefault((fact["session"], fact["turn"], fact["attempt"]), []).append(fact["outcome"])
            self.outcomes[fact["outcome"]] += 1
            self.codes.update(fact["codes"])
            self.buried += fact["buried"]
            self.latencies_ms.append(fact["ms"])
        elif kind == "ending":
            self.endings[fact["outcome"]] += 1
        elif kind == "story_done":
            self.stories_done.add(fact["session"])
        elif kind == "prompt_done":
            self.prompts_done[fact["prompt"]] += 1
        else:
            self.errors.append(str(fact.get("message", fact)))

    async def disagreements(self, client: TurnClient) -> list[str]:
        """Compare every verdict with the state, count prompts, and return what is wrong; nothing is what should be."""
        found = [f"prompt {name} was done {count} times" for name, count in self.prompts_done.items() if count > 1]
        in_state = 0
        for session in sorted({attempt[0] for attempt in self.verdicts}):
            state = (await client.get(session)).state
            in_state += _count(state)
        if in_state != len(self.verdicts):
            found.append(f"the state holds {in_state} verdicts, the runners saw {len(self.verdicts)}")
        for (session, turn, attempt), outcomes in sorted(self.verdicts.items()):
            name = f"{session}, turn {turn}, attempt {attempt}"
            try:
                verdict = (await client.get(session, turn, attempt=attempt)).verdict
            except Refusal as error:
                found.append(f"{name}: {error}")
                continue
            if verdict is None:
                found.append(f"{name}: the runner saw {outcomes}, the state has none")
            elif outcomes != [verdict.outcome.value]:
                found.append(f"{name}: the runner saw {outcomes}, the state has {verdict.outcome.value}")
        return found

    def percentile_ms(self, share: float) -> float:
        """Return the latency that this share of verdicts did not exceed, in ms; 0 without verdicts."""
        ordered = sorted(self.latencies_ms)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0

    def summary(self, seconds: float, answered: int) -> dict[str, Any]:
        """Return the end table as plain values."""
        return {
            "seconds": round(seconds, 1),
            "sessions": len({session for session, _ in self.turns}),
            "turns": len(self.turns),
            "attempts": len(self.verdicts),
            "verdicts": dict(sorted(self.outcomes.items())),
            "endings": dict(sorted(self.endings.items())),
            "buried_proposals": self.buried,
            "cards_answered": answered,
            "prompts_done": len(self.prompts_done),
            "rejections_by_code": dict(self.codes.most_common()),
            "latency_ms": {
                name: round(self.percentile_ms(share), 2)
                for name, share in (("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("max", 1.0))
            },
        }


def _count(state: SessionTurns) -> int:
    return len(state.current.attempts) + sum(len(past.attempts) for past in state.history)
