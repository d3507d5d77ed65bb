"""The services by name: what `turngate serve NAME` can run, and what `turngate up` runs.

A new service is one line here. Importing this module imports none of them, so that the command line can list them.
"""

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final, Protocol

from turngate_contracts.errors import ErrorCode, TurngateError

if TYPE_CHECKING:
    from turngate.jetstream.connect import Connection
    from turngate.jetstream.request import Requester
    from turngate.settings import Settings

CONSOLE: Final = "console"
"""The one service that `turngate up` may run without: its packages are an extra."""

_SERVICES: Final = {
    "validation": "turngate.validation.service:ValidationService",
    "conclusion": "turngate.conclusion.service:ConclusionService",
    "supervisor": "turngate.supervisor.service:SupervisorService",
    "deadletter": "turngate.deadletter.service:DeadLetterService",
    CONSOLE: "turngate.console.service:ConsoleService",
}
_NEEDS: Final = {CONSOLE: ("starlette", "uvicorn", "jinja2", "itsdangerous", "python_multipart")}
"""The packages that only some services need; the extra that brings them has the service's name."""

SERVICES: Final = tuple(name for name in _SERVICES if name != CONSOLE)
"""The names of the services that answer requests: without any of them a system is not whole."""
EVERY: Final = (*SERVICES, CONSOLE)
"""The names of all services, in the order in which `turngate up` starts them."""


class NotInstalled(TurngateError):
    """A service needs packages that are not installed."""

    code = ErrorCode.UNAVAILABLE

    def __init__(self, name: str, missing: tuple[str, ...]) -> None:
        super().__init__(
            f"the {name} needs {', '.join(missing)}; install turngate[{name}] to have it", missing=list(missing)
        )


class Service(Protocol):
    """One process's share of a service."""

    async def start(self) -> None:
        """Begin to take work; the topology exists."""

    async def stop(self, timeout_ms: int = ...) -> bool:
        """Take no more, finish what is under way within `timeout_ms`, and say whether all of it was finished."""


Factory = Callable[["Connection", "Requester", "Settings"], Service]
"""Makes a service on a connection that is up."""


def missing(name: str) -> tuple[str, ...]:
    """Return the packages that a service needs and that are not installed."""
    return tuple(package for package in _NEEDS.get(name, ()) if find_spec(package) is None)


def factory(name: str) -> Factory:
    """Import a service by its name and return what makes it.

    Raises:
        KeyError: there is no service of that name.
        NotInstalled: packages that it needs are not installed.
    """
    lacking = missing(name)
    if lacking:
        raise NotInstalled(name, lacking)
    module, _, attribute = _SERVICES[name].partition(":")
    found: Factory = getattr(import_module(module), attribute)
    return found
