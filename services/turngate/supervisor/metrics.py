"""What a supervisor process counts; read by `doctor`, the micro service's statistics and the demo."""

from collections import Counter


class Counters:
    """Counts since the process started."""

    def __init__(self) -> None:
        self.causes: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self.requests: Counter[str] = Counter()
        self.effects: Counter[str] = Counter()
        self.verdicts: Counter[str] = Counter()
        self.ignored: Counter[str] = Counter()

    def snapshot(self) -> dict[str, object]:
        """Return the counts as plain values."""
        return {
            "causes": dict(self.causes),
            "refused": dict(self.refused),
            "requests": dict(self.requests),
            "effects": dict(self.effects),
            "verdicts": dict(self.verdicts),
            "ignored": dict(self.ignored),
        }
