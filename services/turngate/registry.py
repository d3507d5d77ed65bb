"""The services by name: what `turngate serve NAME` can run, and what `turngate up` runs.

A new service is one line here. Importing this module imports none of them, so that the command line can list them.
"""

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from turngate.jetstream.connect import Connection
    from turngate.jetstream.request import Requester
    from turngate.settings import Settings

_SERVICES: Final = {
    "validation": "turngate.validation.service:ValidationService",
    "conclusion": "turngate.conclusion.service:ConclusionService",
    "supervisor": "turngate.supervisor.service:SupervisorService",
}

SERVICES: Final = tuple(_SERVICES)
"""The names of all services, in the order in which `turngate up` starts them."""


class Service(Protocol):
    """One process's share of a service."""

    async def start(self) -> None:
        """Begin to take work; the topology exists."""

    async def stop(self, timeout_ms: int = ...) -> bool:
        """Take no more, finish what is under way within `timeout_ms`, and say whether all of it was finished."""


Factory = Callable[["Connection", "Requester", "Settings"], Service]
"""Makes a service on a connection that is up."""


def factory(name: str) -> Factory:
    """Import a service by its name and return what makes it.

    Raises:
        KeyError: there is no service of that name.
    """
    module, _, attribute = _SERVICES[name].partition(":")
    found: Factory = getattr(import_module(module), attribute)
    return found
