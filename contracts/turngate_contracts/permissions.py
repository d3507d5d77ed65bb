"""Who may publish and subscribe to what, and what crosses between accounts: derived from the catalogue.

Three accounts keep those apart who do not trust one another. CORE holds the streams, the services and whoever
administers them. Runners live in RUN, people and consoles in UI; what they may reach of CORE is exported, and each
identity's own list pins its name in the subject, so that who did something is known and not claimed. A reply subject
that a stranger names is replaced at the border by one of the server's, so it can't make CORE publish anything.

`service_permissions` has the lists of the services, `permissions_document` writes all of it down for people.
"""

import re
from collections.abc import Iterable
from enum import StrEnum
from typing import Final

from msgspec import Struct

from turngate_contracts.catalogue import ASKS, INTAKE, REQUESTS
from turngate_contracts.ids import check_id
from turngate_contracts.rows import Caller, Request
from turngate_contracts.subjects import API, CORE_API, Subjects, inbox_prefix
from turngate_protocol.esm.objective import Role

READING: Final = frozenset(
    {
        "report.check",
        "report.schema",
        "turn.get",
        "turn.list",
        "question.get",
        "inbox.list",
        "conclusion.get",
        "conclusion.list",
        "esm.get",
        "esm.list",
        "esm.history",
        "runner.list",
        "dead.list",
        "dead.get",
    }
)
"""The requests that change nothing: all that a viewer may send."""

DISCOVERY: Final = ("$SRV.PING", "$SRV.INFO", "$SRV.STATS")
"""How the processes of all services are found and counted."""

_LOOKED_UP: Final = ("STREAM.INFO.*", "CONSUMER.INFO.*.*")
_PART: Final = re.compile(r"\{([a-z_]+)\}")


class Account(StrEnum):
    """The accounts of a secured server."""

    CORE = "CORE"
    RUN = "RUN"
    UI = "UI"


class Kind(StrEnum):
    """What an identity is: what it may do follows from that, its name, and a runner's pools."""

    ADMIN = "admin"
    SERVICE = "service"
    RUNNER = "runner"
    OPERATOR = "operator"
    VIEWER = "viewer"
    CONSOLE = "console"

    @property
    def account(self) -> Account:
        """The account that identities of this kind live in."""
        if self is Kind.RUNNER:
            return Account.RUN
        return Account.CORE if self in (Kind.ADMIN, Kind.SERVICE) else Account.UI


class Access(Struct, frozen=True):
    """What one identity may do.

    Attributes:
        publish: the subjects and patterns that it may publish to.
        subscribe: those that it may subscribe to.
        answers: whether it may answer what it is asked, once each, at whatever subject the server names.
    """

    publish: tuple[str, ...]
    subscribe: tuple[str, ...]
    answers: bool = False


class Export(Struct, frozen=True):
    """What crosses a border: a service (asked from outside, answered from inside), or a stream (read outside).

    Attributes:
        subject: the subject or pattern.
        owner: the account that it comes from.
        to: the account that imports it.
        stream: whether it is a stream.
        many: whether one question may have several answers.
        local: what it is called in the importing account, where that is something else.
    """

    subject: str
    owner: Account
    to: Account
    stream: bool = False
    many: bool = False
    local: str = ""


def of_runner(subjects: Subjects, runner: str, pools: Iterable[str]) -> Access:
    """Return what a runner may do: act as itself, and take work of its pools."""
    pools = sorted({check_id("pool", pool) for pool in pools})
    published = []
    for sent in INTAKE:
        if "runner" in sent.parameters:
            bound = pools if "pool" in sent.parameters else ("",)
            published += [fill(sent.address(), subjects, runner=runner, pool=pool) for pool in bound]
    for row in _requests_of(Caller.RUNNER):
        bound = pools if row.by_pool else ("",)
        published += [fill(row.address(), subjects, caller=runner, pool=pool) for pool in bound]
    for pool in pools:
        for consumer in pool_consumers(subjects, pool):
            published += pulling(subjects.stream("work"), consumer)
    asked = [fill(row.address(), subjects, runner=runner) for row in ASKS if "runner" in row.parameters]
    subscribed = (f"{inbox_prefix(runner)}.>", subjects.mailbox_all(runner), *asked)
    return Access(tuple(published), subscribed, answers=True)


def of_person(subjects: Subjects, person: str, kind: Kind) -> Access:
    """Return what a person's client may do: read everything, and, as an operator, answer, steer and administer."""
    rows = _requests_of(Caller.PERSON)
    if kind is Kind.VIEWER:
        rows = [row for row in rows if row.name in READING]
    asked = [fill(row.address(), subjects, caller=check_id("identity", person)) for row in rows]
    # One client is for runners and people; a person's mailbox is one into which nothing comes.
    subscribed = (f"{inbox_prefix(person)}.>", subjects.mailbox_all(person), subjects.live())
    return Access((*asked, *_event_reads(subjects)), subscribed)


def of_console(subjects: Subjects, console: str) -> Access:
    """Return what a console may do: whatever its people may, in their names, and count what runs."""
    asked = [fill(row.address(), subjects) for row in _requests_of(Caller.PERSON)]
    published = (*asked, *_event_reads(subjects), *DISCOVERY, *_counting(subjects))
    return Access(published, (f"{inbox_prefix(console)}.>", subjects.live()))


def exports(subjects: Subjects) -> list[Export]:
    """Return everything that crosses between the accounts, in a stable order; nothing else does.

    Every service has a wildcard in its subject, also where only one token can stand: nats-server 2.15 sends an answer
    whose reply subject is that of an imported service on to that service, unless the import has a wildcard. Then such
    an answer goes nowhere; `tests/system/test_intruders.py` holds servers to it.
    """
    core, run, ui = Account.CORE, Account.RUN, Account.UI
    work = subjects.stream("work")
    crossing = [Export(fill(row.address(), subjects), core, run) for row in INTAKE if "runner" in row.parameters]
    crossing += [Export(fill(row.address(), subjects), core, run) for row in _requests_of(Caller.RUNNER)]
    crossing += [
        Export(f"$JS.API.CONSUMER.MSG.NEXT.{work}.*", core, run, many=True),
        Export(f"$JS.ACK.{work}.*.>", core, run),
        Export(f"{subjects.namespace}.to.>", core, run, stream=True),
    ]
    crossing += [Export(fill(row.address(), subjects), run, core) for row in ASKS if "runner" in row.parameters]
    crossing += [Export(fill(row.address(), subjects), core, ui) for row in _requests_of(Caller.PERSON)]
    events = subjects.stream("events")
    crossing += [
        Export(f"$JS.API.DIRECT.*.{events}", core, ui, many=True),
        Export("$SRV.*", core, ui, many=True),
        *(Export(f"{API}.{asked}", core, ui, local=f"{CORE_API}.{asked}") for asked in _LOOKED_UP),
        Export(subjects.live(), core, ui, stream=True),
    ]
    return crossing


def pool_consumers(subjects: Subjects, pool: str) -> list[str]:
    """Return the consumers that a pool's runners share, for prompts and for every role."""
    return [subjects.prompt_consumer(pool), *(subjects.role_consumer(pool, role.value) for role in Role)]


def pulling(stream: str, consumer: str) -> list[str]:
    """Return what whoever pulls from a consumer publishes: the pulls, and the acknowledgements."""
    return [f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{consumer}", f"$JS.ACK.{stream}.{consumer}.>"]


def fill(address: str, subjects: Subjects, **pinned: str) -> str:
    """Return a row's address as a pattern of this namespace: what is not pinned may be anything."""
    return _PART.sub(lambda part: pinned.get(part[1], "*"), address.replace("{namespace}", subjects.namespace))


def _requests_of(caller: Caller) -> list[Request]:
    return [row for row in REQUESTS if caller in row.callers]


def _event_reads(subjects: Subjects) -> tuple[str, ...]:
    events = subjects.stream("events")
    return (f"{API}.DIRECT.GET.{events}", f"{CORE_API}.STREAM.INFO.{events}")


def _counting(subjects: Subjects) -> tuple[str, ...]:
    return (f"{CORE_API}.CONSUMER.INFO.*.*", f"{CORE_API}.STREAM.INFO.{subjects.stream('work')}")
