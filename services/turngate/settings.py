"""What an operator can set, with its defaults; the command line, the environment and a file fill it.

This is only the result: `turngate.cli.config` says how each field is written, checked and explained.
"""

from enum import StrEnum
from typing import Final

from msgspec import Struct

from turngate.login import Login
from turngate_contracts.subjects import DEFAULT_NAMESPACE, Subjects
from turngate_contracts.topology import PRESENCE_MS, RETENTION_DAYS, Durability, Topology
from turngate_protocol.esm.state import DEFAULT_POLICY, Policy
from turngate_protocol.report.session import Mode

DEFAULT_URL: Final = "nats://127.0.0.1:4222"
DEFAULT_PORT: Final = 4222
DEFAULT_CONSOLE_PORT: Final = 8420


class EvidenceCheck(StrEnum):
    """What a successful task's cited files must be: anything, there, or changed while it ran."""

    OFF = "off"
    EXISTS = "exists"
    CHANGED = "changed"


class Settings(Struct, frozen=True):
    """The settings of a process.

    Attributes:
        nats_url: the server or, separated by commas, servers of a cluster.
        namespace: prefix of every subject and stream; two namespaces share a server without meeting.
        durability: what an acknowledged save survives.
        replicas: copies of each stream; 3 in a cluster.
        retention_days: how long a state stays that nobody changes and that wants nothing.
        bucket_mib: most MiB that each bucket of states may take; 0: what the server has.
        mode: which turns owe a report.
        max_blocks: how many blocks a report may have.
        window: most turns that one validation process asks for at once.
        evidence: what the files that a successful task cites must be.
        synthesize: whether a task without a closing block gets a conclusion all the same: `on` or `off`.
        stat_timeout_ms: how long a runner may take to say which of a task's files exist.
        shared_dir: a directory that runners share with the conclusion service; it is looked into instead of asking.
        projects_file: YAML file with the projects by path.
        projects_bucket: bucket with the projects, where there is no file.
        memory_bucket: bucket whose keys are the memory refs that exist.
        memory_subject: whom to ask about memory refs, where there is no bucket.
        presence_ms: for how long a runner counts as alive after it was last heard of.
        watchdog_ms: how often the supervisor looks whether the runner of a role is alive.
        first_delay_ms: how long an objective rests after a run without progress; it doubles with every further one.
        longest_delay_ms: where that delay stops growing.
        redispatch_ms: after what a role that no runner takes is offered again.
        observer_ms: how long the observer of an interrupted role may take.
        grace_ms: how much later than that it is given up, where its runner does not end it.
        clock_offset_ms: moves the clock; only for tests of wrong clocks.
        connect_timeout_ms: how long the first connection may take.
        nats_seed_file: file with the NKEY seed of who connects, as `turngate auth` writes it.
        nats_creds_file: credentials file, for servers whose identities are made elsewhere.
        tls_ca: file with the certificates that the server's must be signed by; naming it demands TLS.
        tls_cert: file with this client's certificate, where the server wants one.
        tls_key: file with the key of that certificate.
        identity: who a command acts as: a runner, or a person who answers; empty: the user who runs it.
        pool: the pool of the sessions that a command acts for.
        log_level: the least level that is logged.
        log_format: how log lines look: `auto`, `human` or `json`.
        state_dir: where `turngate up` keeps the server's data; empty: below the user's state directory.
        server_port: the port of the server that `turngate up` starts; 0 chooses a free one.
        console: whether `turngate up` serves the console: `on` or `off`.
        console_host: the address that the console is served on; any but this machine's own needs tokens.
        console_port: its port; 0 chooses a free one.
        console_hosts: further names, separated by commas, that browsers may call the console by.
        console_tokens: the file of the console's tokens; empty: in the state directory.
        console_actor: who acts in the console where no token is needed.
        metrics_port: where `/metrics`, `/healthz` and `/readyz` are served; 0 serves none.
        metrics_host: the address that they are served on.
    """

    nats_url: str = DEFAULT_URL
    namespace: str = DEFAULT_NAMESPACE
    durability: Durability = Durability.STRICT
    replicas: int = 1
    retention_days: int = RETENTION_DAYS
    bucket_mib: int = 0
    mode: Mode = Mode.MUTATING
    max_blocks: int = 20
    window: int = 256
    evidence: EvidenceCheck = EvidenceCheck.EXISTS
    synthesize: str = "on"
    stat_timeout_ms: int = 3_000
    shared_dir: str = ""
    projects_file: str = ""
    projects_bucket: str = ""
    memory_bucket: str = ""
    memory_subject: str = ""
    presence_ms: int = PRESENCE_MS
    watchdog_ms: int = DEFAULT_POLICY.watchdog_ms
    first_delay_ms: int = DEFAULT_POLICY.first_delay_ms
    longest_delay_ms: int = DEFAULT_POLICY.longest_delay_ms
    redispatch_ms: int = DEFAULT_POLICY.redispatch_ms
    observer_ms: int = DEFAULT_POLICY.observer_ms
    grace_ms: int = DEFAULT_POLICY.grace_ms
    clock_offset_ms: int = 0
    connect_timeout_ms: int = 5_000
    nats_seed_file: str = ""
    nats_creds_file: str = ""
    tls_ca: str = ""
    tls_cert: str = ""
    tls_key: str = ""
    identity: str = ""
    pool: str = "default"
    log_level: str = "info"
    log_format: str = "auto"
    state_dir: str = ""
    server_port: int = DEFAULT_PORT
    console: str = "on"
    console_host: str = "127.0.0.1"
    console_port: int = DEFAULT_CONSOLE_PORT
    console_hosts: str = ""
    console_tokens: str = ""
    console_actor: str = "console-local"
    metrics_port: int = 0
    metrics_host: str = "127.0.0.1"

    def topology(self) -> Topology:
        """Return the topology that these settings describe."""
        return Topology(
            Subjects(self.namespace),
            self.durability,
            self.replicas,
            self.presence_ms,
            self.retention_days * 86_400_000,
            self.bucket_mib * 1024 * 1024,
        )

    def login(self) -> Login:
        """Return who connects, and whom it trusts."""
        return Login(self.nats_seed_file, self.nats_creds_file, self.tls_ca, self.tls_cert, self.tls_key)

    def policy(self) -> Policy:
        """Return how patient the supervisor is."""
        return Policy(
            self.first_delay_ms,
            self.longest_delay_ms,
            self.watchdog_ms,
            self.redispatch_ms,
            self.observer_ms,
            self.grace_ms,
        )
