"""The socket that the console listens on, bound before anything else is started."""

import socket
from typing import Final

from turngate_contracts.errors import ErrorCode, TurngateError

BACKLOG: Final = 1024


class CannotListen(TurngateError):
    """The address or port can't be listened on."""

    code = ErrorCode.INVALID_ARGUMENT

    def __init__(self, host: str, port: int, reason: str) -> None:
        super().__init__(
            f"the console can't listen on {host}:{port}: {reason}; choose another with --console-host or "
            "--console-port, where 0 takes a free port",
            host=host,
            port=port,
        )


def bind(host: str, port: int) -> socket.socket:
    """Return a socket that listens on an address.

    Raises:
        CannotListen: the port is taken, or the address is not one of this machine.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _name, address = found[0]
        made = socket.socket(family, kind, protocol)
    except OSError as error:
        raise CannotListen(host, port, error.strerror or str(error)) from None
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
        made.listen(BACKLOG)
        made.setblocking(False)
    except OSError as error:
        made.close()
        raise CannotListen(host, port, error.strerror or str(error)) from None
    return made
