"""What a validation process counts; read by `doctor`, the micro service's statistics and the demo."""

from collections import Counter

from turngate_contracts.messages import Verdict


class Counters:
    """Counts since the process started."""

    def __init__(self) -> None:
        self.verdicts: Counter[str] = Counter()
        self.problems: Counter[str] = Counter()
        self.endings: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self.requests: Counter[str] = Counter()
        self.questions: Counter[str] = Counter()
        self.repeats = 0

    def count_verdict(self, verdict: Verdict) -> None:
        """Count a new verdict and the codes of its problems."""
        self.verdicts[verdict.outcome.value] += 1
        for problem in verdict.problems:
            self.problems[problem.code] += 1

    def snapshot(self) -> dict[str, object]:
        """Return the counts as plain values."""
        return {
            "verdicts": dict(self.verdicts),
            "problems": dict(self.problems),
            "endings": dict(self.endings),
            "refused": dict(self.refused),
            "requests": dict(self.requests),
            "questions": dict(self.questions),
            "repeats": self.repeats,
        }
