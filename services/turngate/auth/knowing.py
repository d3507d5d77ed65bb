"""Whether a running server knows of a change yet: found out by connecting, as the identity itself would.

`turngate up --secure` has its server read the configuration again by itself; other servers are told by their operator.
"""

import asyncio
from typing import Final

from turngate.jetstream._connect_errors import IdentityRefused, NoServer
from turngate.jetstream.connect import connect
from turngate.login import Login

WAIT_S: Final = 5.0
"""How long a server may take to know."""
_AGAIN_S: Final = 0.1
_ATTEMPT_MS: Final = 2_000


async def knows(url: str, login: Login, *, admitted: bool, wait_s: float = WAIT_S) -> bool | None:
    """Wait until a server admits an identity, or refuses it, and say whether it does as wanted; None without a server.

    Args:
        url: the server.
        login: the identity, and whom to trust.
        admitted: whether it should be admitted.
        wait_s: how long to wait for that.

    Raises:
        CredentialsUnusable: a file that `login` names can't be used.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + wait_s
    while True:
        try:
            connection = await connect(url, name="turngate-auth", timeout_ms=_ATTEMPT_MS, login=login)
        except IdentityRefused:
            found = False
        except NoServer:
            return None
        else:
            await connection.close()
            found = True
        if found is admitted or loop.time() > deadline:
            return found is admitted
        await asyncio.sleep(_AGAIN_S)
