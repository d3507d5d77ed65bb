"""What each service may do inside of the account CORE: take its own intake, keep its own buckets, tell and ask.

These lists bound what a mistake in one service can do to another's state. They are no border between strangers: whoever
is inside of CORE can name reply subjects, so nobody gets in there but the operator's own services.
"""

from collections.abc import Iterable
from typing import Final

from turngate_contracts.catalogue import ASKS, INTAKE, MAILBOX, PRESENCE, PROGRESS, REQUESTS, STATES, TIMERS, WORK
from turngate_contracts.permissions import DISCOVERY, Access, fill, pulling
from turngate_contracts.rows import Caller
from turngate_contracts.subjects import Subjects, inbox_prefix
from turngate_contracts.topology import CONCLUSION, DEADLETTER, QUESTION_TIMER, SUPERVISOR, VALIDATION, Topology

SERVICES: Final = (VALIDATION, CONCLUSION, SUPERVISOR, DEADLETTER)
"""The services that have identities of their own."""

_BUCKETS: Final = {
    VALIDATION: ("turns", "questions", "inbox"),
    CONCLUSION: ("conclusions",),
    SUPERVISOR: ("objectives", "inbox"),
    DEADLETTER: (),
}
"""Whose state a bucket is; the inbox is derived from several."""
_MAIL: Final = {
    VALIDATION: ("verdict", "ending", "refused", "answered", "outcome"),
    CONCLUSION: ("refused",),
    SUPERVISOR: ("refused", "cancel"),
    DEADLETTER: ("refused",),
}
_WORK: Final = {VALIDATION: "prompt", SUPERVISOR: "role"}
_LOOKING: Final = (
    "$JS.API.INFO",
    "$JS.API.STREAM.INFO.*",
    "$JS.API.STREAM.MSG.GET.*",
    "$JS.API.DIRECT.GET.>",
    "$JS.API.CONSUMER.INFO.*.*",
    "$JS.API.CONSUMER.LIST.*",
)
"""Services read whatever is stored, and whether the topology is what they need; changing it is the administrator's."""


def of_admin(name: str) -> Access:
    """Return what the administrator may do, who makes the topology and repairs: everything inside of CORE."""
    return Access((">",), (">", f"{inbox_prefix(name)}.>"))


def of_service(topology: Topology, service: str, also: Iterable[str] = ()) -> Access:
    """Return what a service may do; `also` are subjects that an operator's settings have it ask, such as a bucket."""
    subjects = topology.subjects
    published = [
        *_LOOKING,
        *DISCOVERY,
        # Answers: to callers in other accounts at the server's own reply subjects, and to those in CORE.
        "_R_.>",
        "_INBOX.>",
        *_intake(topology, service),
        *_states(subjects, service),
        *_telling(subjects, service),
        *_special(topology, service),
        *also,
    ]
    answered = [fill(row.address(), subjects) for row in REQUESTS if row.service == service]
    subscribed = (f"{inbox_prefix(service)}.>", "$SRV.>", *answered)
    return Access(tuple(dict.fromkeys(published)), subscribed)


def _intake(topology: Topology, service: str) -> list[str]:
    """The pulls from this service's durable consumers."""
    return [
        subject
        for stream, config in topology.consumers()
        if _owner(topology.subjects, stream, config["durable_name"]) == service
        for subject in pulling(stream, config["durable_name"])
    ]


def _owner(subjects: Subjects, stream: str, consumer: str) -> str:
    for service, buckets in _BUCKETS.items():
        if stream in (subjects.bucket_stream(bucket) for bucket in buckets):
            return service
    if consumer == subjects.timer_consumer(QUESTION_TIMER):
        return VALIDATION
    if stream == subjects.stream("timers"):
        return SUPERVISOR
    return consumer if consumer in SERVICES else DEADLETTER


def _states(subjects: Subjects, service: str) -> list[str]:
    return [subjects.key(bucket, ">") for bucket in _BUCKETS[service]]


def _telling(subjects: Subjects, service: str) -> list[str]:
    """Mail, work, dead letters, requests to other services and questions to runners."""
    found = [fill(row.address(), subjects) for row in MAILBOX if row.kind in _MAIL[service]]
    found += [fill(row.address(), subjects) for row in WORK if row.name == _WORK.get(service)]
    found += [fill(row.address(), subjects, caller=service) for row in REQUESTS if Caller.SERVICE in row.callers]
    found += [fill(row.address(), subjects) for row in ASKS if row.service == service]
    found += [fill(row.address(), subjects) for row in INTAKE if "runner" not in row.parameters]
    return [*found, f"{subjects.namespace}.dead.>", subjects.suspects()]


def _special(topology: Topology, service: str) -> list[str]:
    subjects = topology.subjects
    work, timers = subjects.stream("work"), subjects.stream("timers")
    kinds = [row for row in TIMERS if (row.kind == QUESTION_TIMER) == (service == VALIDATION)]
    scheduling = [*(fill(row.schedule_address(), subjects) for row in kinds), f"$JS.API.STREAM.PURGE.{timers}"]
    if service == VALIDATION:
        # `runner.join` makes the consumers of pools.
        return [*scheduling, f"$JS.API.CONSUMER.DURABLE.CREATE.{work}.*"]
    if service == SUPERVISOR:
        told = [fill(row.address(), subjects) for row in (PRESENCE, PROGRESS)]
        return [*scheduling, f"$JS.API.STREAM.PURGE.{work}", *told]
    if service == DEADLETTER:
        # It takes what nobody else can handle out of any stream, puts back what people have retried, and saves open
        # states again before they would leave.
        retried = [fill(row.address(), subjects) for row in (*INTAKE, *WORK, *TIMERS)]
        states = [subjects.key(row.bucket, ">") for row in STATES if row.events]
        return [*retried, *states, subjects.marks(), "$JS.API.STREAM.MSG.DELETE.*"]
    return []
