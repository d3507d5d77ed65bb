"""What one dead-letter process counts."""

from collections import Counter

from msgspec import Struct, field


class Counters(Struct):
    """Counts since the process began.

    Attributes:
        decided: what people decided about letters: retried, retrying, dropped.
        finished: retries that went out after they had been left unfinished.
    """

    decided: Counter[str] = field(default_factory=Counter)
    finished: int = 0
