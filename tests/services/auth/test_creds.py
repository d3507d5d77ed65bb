"""Servers whose identities are made by other tools: a credentials file, with a JWT and its seed, is enough."""

import base64
import json
import os
from pathlib import Path
from typing import Any

import nkeys  # type: ignore[import-untyped]
import pytest

from turngate.jetstream._connect_errors import IdentityRefused
from turngate.jetstream.connect import connect
from turngate.jetstream.embedded import EmbeddedServer
from turngate.jetstream.request import Requester
from turngate.login import Login

UNBOUNDED = {"subs": -1, "data": -1, "payload": -1}
OF_ACCOUNT = {**UNBOUNDED, "imports": -1, "exports": -1, "wildcards": True, "conn": -1, "leaf": -1}


class Key:
    """An NKEY that signs."""

    def __init__(self, prefix: int) -> None:
        self.seed: str = nkeys.encode_seed(os.urandom(32), prefix).decode()
        self.pair = nkeys.from_seed(bytearray(self.seed.encode()))
        self.public: str = self.pair.public_key.decode().rstrip("=")

    def signs(self, name: str, subject: str, claims: dict[str, Any]) -> str:
        head = {"typ": "JWT", "alg": "ed25519-nkey"}
        body = {"jti": name, "iat": 1, "iss": self.public, "name": name, "sub": subject, "nats": claims}
        text = ".".join(_encoded(json.dumps(part).encode()) for part in (head, body))
        return f"{text}.{_encoded(self.pair.sign(text.encode()))}"


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


async def test_a_credentials_file_is_an_identity(tmp_path: Path):
    operator, account, user = (
        Key(prefix) for prefix in (nkeys.PREFIX_BYTE_OPERATOR, nkeys.PREFIX_BYTE_ACCOUNT, nkeys.PREFIX_BYTE_USER)
    )
    of_operator = operator.signs("O", operator.public, {"type": "operator", "version": 2})
    of_account = operator.signs("A", account.public, {"type": "account", "version": 2, "limits": OF_ACCOUNT})
    of_user = account.signs("u", user.public, {"type": "user", "version": 2, **UNBOUNDED})
    creds = tmp_path / "u.creds"
    creds.touch(0o600)
    creds.write_text(
        f"-----BEGIN NATS USER JWT-----\n{of_user}\n------END NATS USER JWT------\n\n"
        f"-----BEGIN USER NKEY SEED-----\n{user.seed}\n------END USER NKEY SEED------\n"
    )
    preload = f"resolver: MEMORY\nresolver_preload: {{ {account.public}: {of_account} }}"
    config = f"operator: {of_operator}\nsystem_account: {account.public}\n{preload}"

    with EmbeddedServer(tmp_path / "server", sync_always=False, extra_config=config) as server:
        connection = await connect(server.url, login=Login(creds_file=str(creds)))
        requester = await Requester.start(connection)
        assert (await requester.request("$SYS.REQ.USER.INFO")).body
        with pytest.raises(IdentityRefused, match="which has no key"):
            await connect(server.url)
        await requester.stop()
        await connection.close()
