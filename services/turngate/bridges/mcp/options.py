"""What an operator chose for the MCP server."""

from enum import StrEnum
from pathlib import Path

from msgspec import Struct

from turngate.login import NOBODY, Login
from turngate_contracts.subjects import DEFAULT_NAMESPACE


class ShowObjective(StrEnum):
    """When `get_esm` and `update_esm` are listed: while the session has an objective to pursue, always, or never."""

    AUTO = "auto"
    ON = "on"
    OFF = "off"


class Options(Struct, frozen=True):
    """The options of one server process.

    Attributes:
        url: the NATS server or servers.
        identity: the runner that it acts as.
        agents: where the files of sessions are.
        directory: the project's directory: sessions that have no other name are named for it.
        namespace: the system's namespace.
        pool: the pool of its sessions.
        connect_timeout_ms: how long a connection may take.
        session: the session of every call, where one was configured.
        environment_session: the session id of the agent's program, where that names it in the environment.
        task: the delegated task that its agent works on, if any.
        parent: the session that delegated it.
        run: the role run that its agent works for, if any.
        roots: directories whose files it answers for when a task is concluded.
        elicit: whether questions are offered in the client too.
        objective: when the tools of the objective are listed.
        max_blocks: how many blocks the gate lets a report have, as its model is told.
        login: the key that proves the identity, where the NATS server wants one.
    """

    url: str
    identity: str
    agents: Path
    directory: Path
    namespace: str = DEFAULT_NAMESPACE
    pool: str = "default"
    connect_timeout_ms: int = 5_000
    session: str = ""
    environment_session: str = ""
    task: str = ""
    parent: str = ""
    run: str = ""
    roots: tuple[Path, ...] = ()
    elicit: bool = True
    objective: ShowObjective = ShowObjective.AUTO
    login: Login = NOBODY
    max_blocks: int = 20
