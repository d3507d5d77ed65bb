"""What hangs in a consume loop or in requests while metrics are on: a few additions for each message.

A message's acknowledgement subject says when the stream stored it and how often it was delivered, so that its age when
it is acknowledged costs no request: for an intake message that is the time from the runner's publish to the verdict.
"""

import time
from collections import Counter, defaultdict

from turngate.metrics.histogram import Histogram

_OUTCOMES = {b"+": "acked", b"-": "retried", b"": "dropped"}


class DeliveryWatch:
    """What became of one consume loop's deliveries, and how long that took."""

    __slots__ = ("age", "handling", "outcomes", "redelivered")

    def __init__(self) -> None:
        self.outcomes: Counter[str] = Counter()
        self.redelivered = 0
        self.handling = Histogram()
        self.age = Histogram()

    def ended(self, reply: bytes, word: bytes, took_s: float) -> None:
        """Count a delivery that ended with `word`, `took_s` seconds after it came."""
        parts = reply.split(b".")
        # $JS.ACK.stream.consumer.deliveries.sequence.consumer sequence.time.pending; or with a domain and an account.
        at = 4 if len(parts) == 9 else 6
        if parts[at] != b"1":
            self.redelivered += 1
        self.handling.add(took_s)
        if word == b"+ACK":
            self.outcomes["acked"] += 1
            self.age.add(time.time() - int(parts[at + 3]) * 1e-9)
        else:
            self.outcomes["dead" if word.startswith(b"+TERM") else _OUTCOMES[word[:1]]] += 1


class RequestWatch:
    """How one service's requests were answered, by name, and how long that took."""

    __slots__ = ("answers", "seconds")

    def __init__(self) -> None:
        self.answers: Counter[tuple[str, str]] = Counter()
        self.seconds: defaultdict[str, Histogram] = defaultdict(Histogram)

    def answered(self, name: str, code: str, took_s: float) -> None:
        """Count an answer: its error code, or `ok`."""
        self.answers[name, code] += 1
        self.seconds[name].add(took_s)
