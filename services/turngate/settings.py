"""What an operator can set, with its defaults; the command line, the environment and a file fill it.

This is only the result: `turngate.cli.config` says how each field is written, checked and explained.
"""

from typing import Final

from msgspec import Struct

from turngate_contracts.subjects import DEFAULT_NAMESPACE, Subjects
from turngate_contracts.topology import Durability, Topology
from turngate_protocol.report.session import Mode

DEFAULT_URL: Final = "nats://127.0.0.1:4222"
DEFAULT_PORT: Final = 4222


class Settings(Struct, frozen=True):
    """The settings of a process.

    Attributes:
        nats_url: the server or, separated by commas, servers of a cluster.
        namespace: prefix of every subject and stream; two namespaces share a server without meeting.
        durability: what an acknowledged save survives.
        replicas: copies of each stream; 3 in a cluster.
        mode: which turns owe a report.
        max_blocks: how many blocks a report may have.
        window: most turns that one validation process asks for at once.
        clock_offset_ms: moves the clock; only for tests of wrong clocks.
        connect_timeout_ms: how long the first connection may take.
        identity: who a command acts as: a runner, or a person who answers; empty: the user who runs it.
        pool: the pool of the sessions that a command acts for.
        log_level: the least level that is logged.
        log_format: how log lines look: `auto`, `human` or `json`.
        state_dir: where `turngate up` keeps the server's data; empty: below the user's state directory.
        server_port: the port of the server that `turngate up` starts; 0 chooses a free one.
    """

    nats_url: str = DEFAULT_URL
    namespace: str = DEFAULT_NAMESPACE
    durability: Durability = Durability.STRICT
    replicas: int = 1
    mode: Mode = Mode.MUTATING
    max_blocks: int = 20
    window: int = 256
    clock_offset_ms: int = 0
    connect_timeout_ms: int = 5_000
    identity: str = ""
    pool: str = "default"
    log_level: str = "info"
    log_format: str = "auto"
    state_dir: str = ""
    server_port: int = DEFAULT_PORT

    def topology(self) -> Topology:
        """Return the topology that these settings describe."""
        return Topology(Subjects(self.namespace), self.durability, self.replicas)
