"""Every setting as a person writes it: its name, what it is for, and which texts are right.

One table feeds flags, environment variables, the file, their errors and the help. Everything is read as text, also
from YAML, so that a value means the same wherever it stands (YAML would make a boolean of `mode: off`).
"""

import re
from collections.abc import Callable
from typing import Any, Final, NamedTuple

ENVIRONMENT_PREFIX: Final = "TURNGATE_"


class Key(NamedTuple):
    """One setting.

    Attributes:
        name: the field of Settings, the key in a file and, in capitals after TURNGATE_, the environment variable.
        help: what it is for, in one line.
        rule: what would be right, as it completes the sentence "use …".
        parse: makes the value from text, or raises ValueError.
        metavar: how the help names its value.
        flag: its flag, where that is not `--` and the name with hyphens.
    """

    name: str
    help: str
    rule: str
    parse: Callable[[str], Any]
    metavar: str = "VALUE"
    flag: str = ""

    @property
    def option(self) -> str:
        """The flag that sets it."""
        return self.flag or f"--{self.name.replace('_', '-')}"

    @property
    def variable(self) -> str:
        """The environment variable that sets it."""
        return f"{ENVIRONMENT_PREFIX}{self.name.upper()}"


def _integer(least: int, most: int) -> tuple[str, Callable[[str], int]]:
    def parse(text: str) -> int:
        # Not int() alone: it takes "1_000", " 7 " and digits of other scripts.
        if re.fullmatch(r"-?[0-9]{1,15}", text, re.ASCII) is None or not least <= int(text) <= most:
            raise ValueError(text)
        return int(text)

    return f"a whole number from {least} to {most}", parse


def _one_of(*values: str) -> tuple[str, Callable[[str], str]]:
    def parse(text: str) -> str:
        if text not in values:
            raise ValueError(text)
        return text

    return f"{', '.join(values[:-1])} or {values[-1]}", parse


def _matching(pattern: str, rule: str) -> tuple[str, Callable[[str], str]]:
    compiled = re.compile(pattern, re.ASCII)

    def parse(text: str) -> str:
        if compiled.fullmatch(text) is None:
            raise ValueError(text)
        return text

    return rule, parse


_SERVER: Final = r"\s*(?:nats|tls|ws|wss)://[^\s,]+\s*"
_ID: Final = (r"[A-Za-z0-9_-]{1,128}", "1 to 128 characters of A-Z, a-z, 0-9, '_' and '-'")
_BUCKET: Final = (r"[A-Za-z0-9_-]{1,128}", "the name of a bucket: letters, digits, '_' and '-'")

_FILE: Final = (r"[^\0]+", "the path of a file")

LOGIN_KEYS: Final = ("nats_seed_file", "nats_creds_file", "tls_ca", "tls_cert", "tls_key")
"""The settings that say who connects, and whom it trusts."""

TOPOLOGY_KEYS: Final = ("durability", "replicas", "retention_days", "bucket_mib")
"""The settings that streams and buckets are made from; all processes of a system need the same."""

CONCLUSION_KEYS: Final = (
    "evidence",
    "synthesize",
    "stat_timeout_ms",
    "shared_dir",
    "projects_file",
    "projects_bucket",
    "memory_bucket",
    "memory_subject",
)
"""The settings of the conclusion service alone."""

SUPERVISOR_KEYS: Final = (
    "presence_ms",
    "watchdog_ms",
    "first_delay_ms",
    "longest_delay_ms",
    "redispatch_ms",
    "observer_ms",
    "grace_ms",
)
"""The settings of the supervisor alone."""

MONITOR_KEYS: Final = ("log_level", "log_format", "metrics_port", "metrics_host")
"""The settings of how a process is watched."""

CONSOLE_KEYS: Final = ("console_host", "console_port", "console_hosts", "console_tokens", "console_actor")
"""The settings of the console alone."""

_ALL: Final = (
    Key(
        "nats_url",
        "NATS server, or servers of a cluster separated by commas",
        *_matching(f"{_SERVER}(?:,{_SERVER})*", "a URL such as nats://127.0.0.1:4222, several separated by commas"),
        metavar="URL",
    ),
    Key(
        "namespace",
        "prefix of all subjects and streams; namespaces share a server without meeting",
        *_matching(r"[a-z][a-z0-9]{0,30}", "1 to 31 lower-case letters and digits, beginning with a letter"),
        metavar="NAME",
    ),
    Key(
        "durability",
        "what an acknowledged save survives: strict a power cut, relaxed the end of every process",
        *_one_of("strict", "relaxed"),
        metavar="strict|relaxed",
    ),
    Key("replicas", "copies of each stream; 3 in a cluster", *_integer(1, 5), metavar="N"),
    Key(
        "retention_days",
        "how long a state stays that nobody changes and that wants nothing",
        *_integer(1, 36_500),
        metavar="DAYS",
    ),
    Key(
        "bucket_mib",
        "most MiB that each bucket of states may take; 0: what the server has",
        *_integer(0, 2**30),
        metavar="MIB",
    ),
    Key(
        "mode",
        "which turns owe a report",
        *_one_of("off", "mutating", "tools", "always"),
        metavar="off|mutating|tools|always",
    ),
    Key("max_blocks", "how many blocks a report may have", *_integer(1, 1000), metavar="N"),
    Key("window", "most turns that one validation process holds at once", *_integer(1, 10_000), metavar="N"),
    Key(
        "evidence",
        "what the files that a successful task cites must be: anything, there, or changed while it ran",
        *_one_of("off", "exists", "changed"),
        metavar="off|exists|changed",
    ),
    Key(
        "synthesize",
        "whether a task without a closing block gets a conclusion all the same",
        *_one_of("on", "off"),
        metavar="on|off",
    ),
    Key(
        "stat_timeout_ms",
        "how long a runner may take to say which of a task's files exist, in ms",
        *_integer(1, 20_000),
        metavar="MS",
    ),
    Key(
        "shared_dir",
        "directory that runners share with this service; looked into instead of asking them",
        *_matching(r"/[^\0]*", "the absolute path of a directory"),
        metavar="DIR",
    ),
    Key(
        "projects_file",
        "YAML file that maps project paths to a name, or to id and name",
        *_matching(r"[^\0]+", "the path of a file"),
        metavar="FILE",
    ),
    Key("projects_bucket", "bucket with the projects, where there is no file", *_matching(*_BUCKET), metavar="NAME"),
    Key("memory_bucket", "bucket whose keys are the memory refs that exist", *_matching(*_BUCKET), metavar="NAME"),
    Key(
        "memory_subject",
        "subject that is asked which memory refs exist, where there is no bucket",
        *_matching(r"[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*", "a subject without wildcards"),
        metavar="SUBJECT",
    ),
    Key(
        "presence_ms",
        "for how long a runner counts as alive after it was last heard of, in ms",
        *_integer(500, 3_600_000),
        metavar="MS",
    ),
    Key(
        "watchdog_ms",
        "how often the supervisor looks whether the runner of a role is alive, in ms",
        *_integer(100, 3_600_000),
        metavar="MS",
    ),
    Key(
        "first_delay_ms",
        "how long an objective rests after a run without progress; doubles every time, in ms",
        *_integer(0, 3_600_000),
        metavar="MS",
    ),
    Key("longest_delay_ms", "where that delay stops growing, in ms", *_integer(0, 86_400_000), metavar="MS"),
    Key(
        "redispatch_ms",
        "after what a role that no runner takes is offered again, in ms",
        *_integer(1_000, 3_600_000),
        metavar="MS",
    ),
    Key(
        "observer_ms",
        "how long the observer of an interrupted role may take, in ms",
        *_integer(1_000, 86_400_000),
        metavar="MS",
    ),
    Key(
        "grace_ms",
        "how much later than that it is given up, where its runner does not end it, in ms",
        *_integer(0, 86_400_000),
        metavar="MS",
    ),
    Key(
        "clock_offset_ms",
        "moves the clock, in ms; only for tests of wrong clocks",
        *_integer(-(10**12), 10**12),
        metavar="MS",
    ),
    Key(
        "connect_timeout_ms",
        "how long the first connection may take, in ms",
        *_integer(1, 600_000),
        metavar="MS",
    ),
    Key(
        "nats_seed_file",
        "file with the NKEY seed of who connects, made by `turngate auth`",
        *_matching(*_FILE),
        metavar="FILE",
    ),
    Key(
        "nats_creds_file",
        "credentials file, for servers whose identities are made elsewhere",
        *_matching(*_FILE),
        metavar="FILE",
    ),
    Key("tls_ca", "certificates that the server's must be signed by", *_matching(*_FILE), metavar="FILE"),
    Key("tls_cert", "this client's certificate, where the server wants one", *_matching(*_FILE), metavar="FILE"),
    Key("tls_key", "the key of that certificate", *_matching(*_FILE), metavar="FILE"),
    Key(
        "identity",
        "who you act as: a runner, or a person who answers (default: your user name)",
        *_matching(*_ID),
        metavar="ID",
    ),
    Key("pool", "pool of the sessions that you act for", *_matching(*_ID), metavar="ID"),
    Key("log_level", "least level that is logged", *_one_of("debug", "info", "warning", "error"), metavar="LEVEL"),
    Key(
        "log_format",
        "how log lines look; auto: for people on a terminal, JSON otherwise",
        *_one_of("auto", "human", "json"),
        metavar="auto|human|json",
    ),
    Key(
        "state_dir",
        "where `turngate up` keeps the server's data",
        *_matching(r"[^\0]+", "the path of a directory"),
        metavar="DIR",
    ),
    Key(
        "server_port",
        "port of the server that `turngate up` starts; 0 chooses a free one",
        *_integer(0, 65_535),
        metavar="PORT",
        flag="--port",
    ),
    Key("console", "whether the console is served too", *_one_of("on", "off"), metavar="on|off"),
    Key(
        "console_host",
        "address that the console is served on; any but this machine's own needs tokens",
        *_matching(r"[^\s/]+", "an address or a name of this machine"),
        metavar="ADDRESS",
    ),
    Key("console_port", "port of the console; 0 chooses a free one", *_integer(0, 65_535), metavar="PORT"),
    Key(
        "console_hosts",
        "further names that browsers may call the console by, separated by commas",
        *_matching(r"[A-Za-z0-9.-]+(?:\s*,\s*[A-Za-z0-9.-]+)*", "host names without ports, separated by commas"),
        metavar="NAMES",
    ),
    Key(
        "console_tokens",
        "file of the console's tokens (default: in the state directory)",
        *_matching(r"[^\0]+", "the path of a file"),
        metavar="FILE",
    ),
    Key(
        "console_actor",
        "who acts in the console where no token is needed",
        *_matching(*_ID),
        metavar="ID",
    ),
    Key(
        "metrics_port",
        "port of /metrics, /healthz and /readyz; 0 serves none; further processes of a command take the next ports",
        *_integer(0, 65_535),
        metavar="PORT",
    ),
    Key("metrics_host", "address that they are served on", *_matching(r"[^\s/]+", "an address"), metavar="ADDRESS"),
)

KEYS: Final = {key.name: key for key in _ALL}
"""Every setting by its name."""
