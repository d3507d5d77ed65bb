"""What `turngate up --secure` adds: identities, a server that knows them, and that knows of changes at once."""

import asyncio
import contextlib
import logging
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Final

from turngate.cli.commands import UsageError

if TYPE_CHECKING:
    from turngate.jetstream.embedded import EmbeddedServer
    from turngate.settings import Settings

log = logging.getLogger(__name__)

LOOK_S: Final = 0.2
"""How often the configuration is looked at; a stat of one file."""


def has_identities(state_dir: Path) -> bool:
    """Say whether a system lets in only those who have an identity."""
    from turngate.cli.auth import AUTH

    return (state_dir / AUTH / "identities.json").exists()


def refuse_unsecured(state_dir: Path) -> None:
    """Refuse to open a system to everybody that has identities.

    Raises:
        UsageError: it has.
    """
    from turngate.cli.auth import AUTH

    if has_identities(state_dir):
        raise UsageError(
            f"{state_dir} has identities, and without them everybody on this machine could do everything:"
            f" use `turngate up --secure`, or remove {state_dir / AUTH} first"
        )


def secure(settings: "Settings", *, tls: bool) -> "tuple[Settings, str]":
    """Make the identities that are missing; return the administrator's settings, and what the server is told.

    The administrator's connection runs all services of this process, because it makes the topology too: together they
    may do nearly everything inside of CORE anyway. Processes of one service have that service's identity.
    """
    from msgspec.structs import replace

    from turngate.auth.directory import ADMIN
    from turngate.auth.errors import NameTaken
    from turngate.cli.auth import directory_of, initialise, own_certificates
    from turngate.cli.connected import default_identity
    from turngate_contracts.permissions import Kind

    initialise(settings, own_certificates(settings, []) if tls else None)
    directory = directory_of(settings)
    # Whoever starts a system answers in it, too; a name that is something else already stays what it is.
    with contextlib.suppress(NameTaken):
        directory.add(default_identity(os.environ), Kind.OPERATOR)
    certificates = directory.listed().certificates
    secured = replace(
        settings,
        nats_seed_file=str(directory.seed_file(ADMIN)),
        tls_ca=certificates.ca if certificates else "",
    )
    # nats-server takes the path of an include for one below the file's own directory, whatever it begins with.
    include = os.path.relpath(directory.config_file, Path(settings.state_dir))
    return secured, f'include "{include}"'


def of_service(settings: "Settings", service: str) -> "Settings":
    """Return the settings of another process, which has the identity of the one service that it runs."""
    if not settings.nats_seed_file:
        return settings
    from msgspec.structs import replace

    from turngate.cli.auth import directory_of

    return replace(settings, nats_seed_file=str(directory_of(settings).seed_file(service)))


def stamp(config: Path) -> tuple[int, int]:
    """Return what is another whenever the file was written anew."""
    try:
        found = config.stat()
    except OSError:  # whoever starts the server says what is wrong with the place
        return (0, 0)
    return (found.st_ino, found.st_mtime_ns)


async def follow_changes(server: "EmbeddedServer", config: Path, known: tuple[int, int]) -> None:
    """Have the server read its configuration again whenever `turngate auth` has written it.

    Args:
        server: the server.
        config: the file that `turngate auth` writes.
        known: its stamp before the server was started.
    """
    # No event tells of another process's write everywhere; a changed file does.
    while True:
        await asyncio.sleep(LOOK_S)
        now = stamp(config)
        if now != known and server.running:
            known = now
            log.info("the identities were changed; the server reads them again")
            with contextlib.suppress(ProcessLookupError):  # one that just ended reads them when it is started again
                os.kill(server.pid, signal.SIGHUP)


def next_steps(settings: "Settings") -> list[str]:
    """Return the lines that say how people and runners take part."""
    from turngate.auth.directory import ADMIN
    from turngate.cli.auth import directory_of
    from turngate.cli.connected import default_identity

    directory = directory_of(settings)

    def as_(name: str) -> str:
        return f"TURNGATE_NATS_SEED_FILE={directory.seed_file(name)}"

    return [
        *([f"  export TURNGATE_TLS_CA={settings.tls_ca}"] if settings.tls_ca else []),
        "Everybody acts as who their seed file says. As yourself, to answer and to look:",
        f"  export {as_(default_identity(os.environ))}",
        "  turngate inbox                          what waits for a person",
        "  turngate events tail                    what happens, as it happens",
        "As a runner, to end turns and to run agents:",
        f"  turngate auth add-runner r1 --pool default --state-dir {settings.state_dir}",
        f"  export {as_('r1')}",
        "  turngate turn submit s1 1 report.json   end turn 1 of session s1 with a report",
        "  turngate runner -- my-agent             run an agent for objectives",
        "As the administrator:",
        f"  {as_(ADMIN)} turngate doctor",
    ]
