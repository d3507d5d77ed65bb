"""Doing something for a person: send the request under their name, and record who did what and how it came out."""

import logging
from typing import Any, Final

import msgspec
from msgspec import Struct

from turngate.console.auth import Actor
from turngate.console.errors import fault_of
from turngate.console.operations import Operation
from turngate.console.reading import Requests

log = logging.getLogger(__name__)

# Written whatever the level is: who did what is to be known later.
_acts = logging.getLogger(f"{__name__}.acts")
_acts.setLevel(logging.INFO)

_NAMED: Final = ("session", "turn", "number", "request_id", "letter", "op")
"""The fields of a request that say what was acted on; texts stay out of the log."""


class Acting:
    """Sends what people do."""

    def __init__(self, requests: Requests) -> None:
        self._requests = requests

    async def do(self, actor: Actor, address: str, operation: Operation, request: Struct) -> Struct:
        """Do it and return what the service says.

        Args:
            actor: who does it; services record this name.
            address: where from.
            operation: what.
            request: built by the operation.

        Raises:
            Refusal: the service's own error.
            Unavailable: nobody answered; with an operation id it is safe to repeat it.
        """
        row = operation.row
        facts: dict[str, Any] = {"action": row.name, "actor": actor.name, "address": address, **_named(request)}
        try:
            reply = await self._requests.call(actor.name, row.name, request, row.reply)
        except Exception as error:
            facts["outcome"] = fault_of(error).code
            _tell(facts)
            raise
        facts["outcome"] = "done"
        _tell(facts)
        return reply


def _named(request: Struct) -> dict[str, Any]:
    values = msgspec.structs.asdict(request)
    return {name: values[name] for name in _NAMED if values.get(name)}


def _tell(facts: dict[str, Any]) -> None:
    text = " ".join(f"{name}={value}" for name, value in facts.items())
    _acts.info("%s", text, extra={"facts": facts})
