"""The validation service with its saves made in other ways, to see what grouping them is worth."""

from collections import deque
from collections.abc import Callable

from turngate.jetstream.connect import Connection
from turngate.jetstream.request import Requester
from turngate.jetstream.store import Event, Store
from turngate.settings import Settings
from turngate.validation.service import ValidationService
from turngate_contracts.messages import SCHEMAS
from turngate_protocol.report.session import SessionTurns

_Save = tuple[str, bytes, int, Event, Callable[[int | Exception], None]]


class PipelinedService(ValidationService):
    """Each save is a publish of its own; any number of them are under way."""

    def __init__(self, connection: Connection, requester: Requester, settings: Settings) -> None:
        super().__init__(connection, requester, settings)
        self.lanes.store = Store(requester, settings.topology().subjects, "turns", SCHEMAS[SessionTurns])


class OneByOneService(ValidationService):
    """Each save is a publish of its own, and begins when the one before it is confirmed."""

    def __init__(self, connection: Connection, requester: Requester, settings: Settings) -> None:
        super().__init__(connection, requester, settings)
        self.lanes.store = _OneByOne(requester, settings.topology().subjects, "turns", SCHEMAS[SessionTurns])


class _OneByOne(Store):
    _waiting: deque[_Save] | None = None

    def save_nowait(
        self, key: str, value: bytes, revision: int, event: Event, on_saved: Callable[[int | Exception], None]
    ) -> None:
        """Save, once all before it are saved."""
        if self._waiting is not None:
            self._waiting.append((key, value, revision, event, on_saved))
            return
        self._waiting = deque()
        self._begin((key, value, revision, event, on_saved))

    def _begin(self, save: _Save) -> None:
        key, value, revision, event, on_saved = save

        def on_ended(saved: int | Exception) -> None:
            if self._waiting:
                self._begin(self._waiting.popleft())
            else:
                self._waiting = None
            on_saved(saved)

        super().save_nowait(key, value, revision, event, on_ended)
