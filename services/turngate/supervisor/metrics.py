"""What a supervisor process counts, by code; its tests read it."""

from collections import Counter, defaultdict

from turngate.metrics.histogram import LONG_SECONDS, Histogram


class Counters:
    """Counts since the process started."""

    def __init__(self) -> None:
        self.causes: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self.requests: Counter[str] = Counter()
        self.effects: Counter[str] = Counter()
        self.verdicts: Counter[tuple[str, str]] = Counter()
        self.ignored: Counter[str] = Counter()
        self.role_times: defaultdict[str, Histogram] = defaultdict(lambda: Histogram(LONG_SECONDS))
