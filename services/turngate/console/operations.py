"""What the console can be asked for, by requests of the catalogue: one table for the JSON API and for forms.

A path's parts are fields of the request under the same names. The other fields stand in the query of a GET and in the
JSON body of a POST; none may be there twice, and none that is not known.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec import Struct

from turngate_contracts.catalogue import REQUESTS
from turngate_contracts.codec import reason_of
from turngate_contracts.errors import InvalidMessage, shown
from turngate_contracts.rows import Request

BASE: Final = "/api/v1"


class Operation(Struct, frozen=True):
    """One operation: its HTTP method, its path below BASE, and the request that does it."""

    method: str
    path: str
    row: Request

    @property
    def id(self) -> str:
        """The operation's name, such as `turn_answer`."""
        return self.row.name.replace(".", "_")

    @property
    def changes(self) -> bool:
        """Whether it changes anything, which only operators may do."""
        return self.method == "POST"

    def in_path(self) -> tuple[str, ...]:
        """Return the fields that stand in the path."""
        return tuple(part[1:-1] for part in self.path.split("/") if part.startswith("{"))

    def other_fields(self) -> tuple[str, ...]:
        """Return the fields that stand in the query or the body."""
        return tuple(name for name in self.row.request.__struct_fields__ if name not in self.in_path())

    def build(self, path: Mapping[str, Any], given: Mapping[str, Any], *, typed: bool) -> Struct:
        """Return the request.

        Args:
            path: the fields of the path.
            given: the other fields.
            typed: whether numbers are numbers, as in JSON; else everything is text, as in queries and forms.

        Raises:
            InvalidMessage: a field is not known, missing, or of another type.
        """
        others = self.other_fields()
        for name in given:
            if name not in others:
                raise InvalidMessage(
                    f"{shown(name)} is no field of this; it has {', '.join(others) or 'none'}", field=str(name)[:80]
                )
        try:
            return msgspec.convert({**given, **path}, self.row.request, strict=typed)
        except msgspec.ValidationError as error:
            reason = reason_of(error)
            raise InvalidMessage(f"this can't be understood: {reason}", reason=reason) from None


_ROWS: Final = {row.name: row for row in REQUESTS}


def _get(path: str, name: str) -> Operation:
    return Operation("GET", path, _ROWS[name])


def _post(path: str, name: str) -> Operation:
    return Operation("POST", path, _ROWS[name])


OPERATIONS: Final = (
    _get("/inbox", "inbox.list"),
    _get("/sessions", "turn.list"),
    _get("/sessions/{session}", "turn.get"),
    _post("/sessions/{session}/answer", "turn.answer"),
    _post("/sessions/{session}/dismiss", "turn.dismiss"),
    _post("/sessions/{session}/prompt", "turn.prompt"),
    _get("/questions/{session}", "question.get"),
    _post("/questions/{session}/resolve", "question.resolve"),
    _post("/questions/{session}/reject", "question.reject"),
    _get("/objectives", "esm.list"),
    _post("/objectives", "esm.create"),
    _get("/objectives/{session}", "esm.get"),
    _get("/objectives/{session}/history", "esm.history"),
    _post("/objectives/{session}/edit", "esm.edit"),
    _post("/objectives/{session}/pause", "esm.pause"),
    _post("/objectives/{session}/resume", "esm.resume"),
    _post("/objectives/{session}/guide", "esm.guide"),
    _post("/objectives/{session}/run", "esm.run"),
    _post("/objectives/{session}/configure", "esm.configure"),
    _post("/objectives/{session}/clear", "esm.clear"),
    _get("/tasks", "conclusion.list"),
    _get("/tasks/{session}/{task}", "conclusion.get"),
    _get("/runners", "runner.list"),
    _get("/dead", "dead.list"),
    _get("/dead/{letter}", "dead.get"),
    _post("/dead/{letter}/retry", "dead.retry"),
    _post("/dead/{letter}/drop", "dead.drop"),
)
"""Every operation."""

BY_NAME: Final = {operation.row.name: operation for operation in OPERATIONS}
"""The operations by the names of their requests."""
