"""What a server refuses to a connection: single operations by its permissions, or the identity as a whole."""

import logging
import re
from collections.abc import Callable
from typing import Final

from turngate.jetstream._connect_errors import REFUSED_IDENTITY

log = logging.getLogger(__name__)

_SUBSCRIPTION: Final = re.compile(r'permissions violation for subscription to "([^"]+)"')
_PUBLISH: Final = re.compile(r'permissions violation for publish to "(.+)"')
_KEPT: Final = 20
_ASKED_AGAIN: Final = (
    "it was revoked, or that server does not know it; it is asked again until it lets it in, or until this process ends"
)


class Refusals:
    """What was refused so far.

    Attributes:
        identity: the server's words, while it does not let this identity in.
        permissions: its last words about operations.
        count: how many operations were refused.
        callbacks: called with the lower-case subject of each publish that is refused.
    """

    def __init__(self) -> None:
        self.identity = ""
        self.permissions: list[str] = []
        self.count = 0
        self.callbacks: list[Callable[[str], None]] = []
        self._subscriptions: set[str] = set()

    def note(self, text: str) -> None:
        """Take in what the server reported."""
        lower = text.lower()
        if any(reason in lower for reason in REFUSED_IDENTITY):
            if not self.identity:  # each attempt to come back is told the same
                log.error("the NATS server refuses this identity (%s); %s", text.removeprefix("nats: "), _ASKED_AGAIN)
            self.identity = text
            return
        if "permissions violation" not in lower:
            log.warning("NATS connection: %s", text)
            return
        self.count += 1
        self.permissions.append(text)
        del self.permissions[:-_KEPT]
        log.error("the NATS server refused an operation: %s", text)
        publish, subscription = _PUBLISH.search(lower), _SUBSCRIPTION.search(lower)
        if publish is not None:
            for callback in list(self.callbacks):
                callback(publish[1])
        if subscription is not None:
            self._subscriptions.add(subscription[1])

    def take_subscription(self, subject: str) -> bool:
        """Say, once, whether a subscription to `subject` was refused."""
        there = subject.lower() in self._subscriptions
        self._subscriptions.discard(subject.lower())
        return there
