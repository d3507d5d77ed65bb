"""What an operator can set, with its defaults; the command line, the environment and a file fill it."""

from typing import Final

from msgspec import Struct

from turngate_contracts.subjects import DEFAULT_NAMESPACE, Subjects
from turngate_contracts.topology import Durability, Topology
from turngate_protocol.report.session import Mode

DEFAULT_URL: Final = "nats://127.0.0.1:4222"


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
    """

    nats_url: str = DEFAULT_URL
    namespace: str = DEFAULT_NAMESPACE
    durability: Durability = Durability.STRICT
    replicas: int = 1
    mode: Mode = Mode.MUTATING
    max_blocks: int = 20
    window: int = 256
    clock_offset_ms: int = 0

    def topology(self) -> Topology:
        """Return the topology that these settings describe."""
        return Topology(Subjects(self.namespace), self.durability, self.replicas)
