"""The directory of identities: who there is, their seed files, and the server's configuration, always in step.

Each change is made in an order that a crash can't hurt: a seed is written before its identity is listed, an identity
leaves the list before its seed is deleted, and the configuration is derived from the list. Running a command again
finishes what was cut off.
"""

import contextlib
import fcntl
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace as changed

from turngate.auth import files
from turngate.auth.errors import DirectoryUnsafe, KeysMissing, NameTaken, NotInitialised, UnknownIdentity
from turngate.auth.server_config import Certificates, Identity, render
from turngate.login import read_seed, seed_text
from turngate_contracts.ids import check_id
from turngate_contracts.permissions import Kind
from turngate_contracts.service_permissions import SERVICES
from turngate_contracts.topology import Topology

ADMIN: Final = "admin"
CONSOLE: Final = "console"
CONFIG_FILE: Final = "nats-auth.conf"
_LIST: Final = "identities.json"


class Listed(Struct, frozen=True, omit_defaults=True):
    """What the list of identities holds; no secret is in it.

    Attributes:
        topology: the names that permissions are made of, and the streams behind them.
        identities: who there is, by name.
        certificates: the server's, where it speaks TLS.
        asks: further subjects that the conclusion service asks, as its settings have it.
        revoked: names that were taken out, so that saying so again is no mistake.
    """

    topology: Topology
    identities: tuple[Identity, ...] = ()
    certificates: Certificates | None = None
    asks: tuple[str, ...] = ()
    revoked: tuple[str, ...] = ()


class AuthDirectory:
    """One directory of identities. Its methods block; commands call them."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self.config_file = self.path / CONFIG_FILE

    def seed_file(self, name: str) -> Path:
        """Return where an identity's seed is."""
        return self.path / "seeds" / f"{check_id('identity', name)}.seed"

    def listed(self) -> Listed:
        """Return who there is.

        Raises:
            NotInitialised: nobody yet.
            DirectoryUnsafe: the list can't be read.
        """
        path = self.path / _LIST
        try:
            return msgspec.json.decode(path.read_bytes(), type=Listed)
        except FileNotFoundError:
            raise NotInitialised(self.path) from None
        except (msgspec.DecodeError, OSError) as error:
            raise DirectoryUnsafe(path, f"can't be read as a list of identities: {error}") from None

    def init(self, topology: Topology, *, certificates: Certificates | None, asks: Iterable[str] = ()) -> list[str]:
        """Make the administrator's, the services' and the console's identities, and return the names that are new.

        What is there stays as it is: keys are not made anew. Certificates stay where none are given.
        """
        files.make_private_directory(self.path)
        files.make_private_directory(self.path / "seeds")
        with self._changing():
            try:
                before = self.listed()
            except NotInitialised:
                before = Listed(topology)
            now = changed(
                before,
                topology=topology,
                certificates=certificates or before.certificates,
                asks=tuple(asks) or before.asks,
            )
            wanted = {ADMIN: Kind.ADMIN, **dict.fromkeys(SERVICES, Kind.SERVICE), CONSOLE: Kind.CONSOLE}
            for name, kind in wanted.items():
                now = self._with(now, name, kind)
            self._save(now)
        return [name for name in wanted if name not in {each.name for each in before.identities}]

    def add(self, name: str, kind: Kind, pools: Iterable[str] = ()) -> Identity:
        """Make an identity, or give one that exists these pools, and return it.

        Raises:
            InvalidId: a name or pool can't be part of a subject.
            NameTaken: it exists and is of another kind.
        """
        check_id("identity", name)
        with self._changing():
            now = self._with(self.listed(), name, kind, pools)
            self._save(now)
        return next(each for each in now.identities if each.name == name)

    def revoke(self, name: str) -> Path | None:
        """Take an identity out, and return where its seed is put aside, until `forget`; None when it was out already.

        Raises:
            UnknownIdentity: nobody was ever called so.
        """
        aside = self.seed_file(name).with_suffix(".revoked")
        with self._changing():
            before = self.listed()
            left = tuple(each for each in before.identities if each.name != name)
            there = len(left) < len(before.identities)
            if not there and name not in before.revoked:
                raise UnknownIdentity(name, [each.name for each in before.identities])
            # First: a seed that is in its place would be used again for whoever gets the name next.
            with contextlib.suppress(FileNotFoundError):
                self.seed_file(name).replace(aside)
            revoked = tuple(dict.fromkeys((*before.revoked, name)))
            self._save(changed(before, identities=left, revoked=revoked))
        return aside if there and aside.exists() else None

    def forget(self, aside: Path) -> None:
        """Delete a revoked seed."""
        aside.unlink(missing_ok=True)

    def _with(self, before: Listed, name: str, kind: Kind, pools: Iterable[str] = ()) -> Listed:
        wanted = tuple(sorted({check_id("pool", pool) for pool in pools}))
        there = next((each for each in before.identities if each.name == name), None)
        if there is not None and there.kind is not kind:
            raise NameTaken(name, there.kind.value)
        identity = Identity(name, kind, self._key(name, kind), wanted)
        others = [each for each in before.identities if each.name != name]
        identities = tuple(sorted((*others, identity), key=lambda each: (each.kind.value, each.name)))
        return changed(before, identities=identities, revoked=tuple(n for n in before.revoked if n != name))

    def _key(self, name: str, kind: Kind) -> str:
        """Return the public key of a new seed, or of one that a command which was cut off left behind."""
        try:
            import nkeys  # type: ignore[import-untyped]
        except ImportError:
            raise KeysMissing from None
        path = self.seed_file(name)
        if not path.exists():
            seed = nkeys.encode_seed(os.urandom(32), nkeys.PREFIX_BYTE_USER).decode()
            files.replace(path, seed_text(seed, name, kind.value))
        public: bytes = nkeys.from_seed(bytearray(read_seed(str(path)).encode())).public_key
        return public.decode().rstrip("=")

    def _save(self, listed: Listed) -> None:
        files.replace(self.path / _LIST, msgspec.json.format(msgspec.json.encode(listed)).decode() + "\n")
        files.replace(self.config_file, render(listed.topology, listed.identities, listed.certificates, listed.asks))

    @contextlib.contextmanager
    def _changing(self) -> Iterator[None]:
        """Keep two commands from changing the list at once."""
        if not self.path.is_dir():
            raise NotInitialised(self.path)
        fd = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            yield
        finally:
            os.close(fd)
