"""What a validation process counts, by code; its tests read it."""

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
        self.verdicts[verdict.outcome] += 1
        for problem in verdict.problems:
            self.problems[problem.code] += 1
