"""The shapes of the catalogue's rows: who sends a message, where it goes, and what comes back.

A row knows its address, built by `subjects` from marks that stand for ids, so that a subject is spelled in one place.
"""

import re
from collections.abc import Callable
from enum import StrEnum
from typing import Final

from msgspec import Struct

from turngate_contracts.errors import ErrorCode
from turngate_contracts.subjects import SPLIT, Subjects

_NAMESPACE: Final = "namespace0"
_SUBJECTS: Final = Subjects(_NAMESPACE)
_MARK: Final = re.compile(r"--([a-z_]+)--")


class Caller(StrEnum):
    """Who may send a request: permissions are made from it."""

    RUNNER = "runner"
    PERSON = "person"
    SERVICE = "service"


EVERYBODY: Final = (Caller.RUNNER, Caller.PERSON, Caller.SERVICE)
"""Any caller."""


class Intake(Struct, frozen=True):
    """What a runner publishes durably.

    Attributes:
        name: what the row is called, such as `turn.report`.
        message: the Struct of the body.
        subject: the method of `Subjects` that builds the subject from the parameters, in their order.
        parameters: what the parts of the subject that are not fixed are called.
        stream: short name of the work queue that keeps it.
        consumer: the durable consumer whose service handles it.
        summary: one sentence on when it is sent and what follows.
    """

    name: str
    message: type[Struct]
    subject: Callable[..., str]
    parameters: tuple[str, ...]
    stream: str
    consumer: str
    summary: str

    def address(self) -> str:
        """Return the subject with `{…}` for what is not fixed."""
        return template(self.subject(_SUBJECTS, *map(mark, self.parameters)))


class Request(Struct, frozen=True):
    """A request that wants an answer now, and may be repeated with the same result.

    Attributes:
        name: the request's name, such as `turn.answer`; its subject ends in the caller's own id.
        request: the Struct of its body.
        reply: the Struct of the answer.
        service: who answers it.
        callers: who may send it.
        summary: one sentence on what it does.
        errors: what it may be refused with, beside the catalogue's `GENERAL_ERRORS`.
        by_pool: whether the subject names a pool before the caller, so that permissions pin it too.
    """

    name: str
    request: type[Struct]
    reply: type[Struct]
    service: str
    callers: tuple[Caller, ...]
    summary: str
    errors: tuple[ErrorCode, ...] = ()
    by_pool: bool = False

    def address(self) -> str:
        """Return the subject with `{…}` for what is not fixed."""
        return template(_SUBJECTS.api(self.name, mark("caller"), mark("pool") if self.by_pool else ""))


class Ask(Struct, frozen=True):
    """A request that a service sends: to a runner, or to a service that is not ours. No answer is one too.

    Attributes:
        name: what the row is called, such as `runner.stat`.
        request: the Struct of its body.
        reply: the Struct of the answer.
        subject: the method of `Subjects` that builds the subject from the parameters, in their order.
        parameters: what the parts of the subject that are not fixed are called.
        service: who asks.
        summary: one sentence on what is asked, and what no answer means.
    """

    name: str
    request: type[Struct]
    reply: type[Struct]
    subject: Callable[..., str]
    parameters: tuple[str, ...]
    service: str
    summary: str

    def address(self) -> str:
        """Return the subject with `{…}` for what is not fixed."""
        return template(self.subject(_SUBJECTS, *map(mark, self.parameters)))


class Mail(Struct, frozen=True):
    """One kind of nudge to a runner's mailbox; `kind` is the last part of its subject, `truth` the request to ask."""

    kind: str
    message: type[Struct]
    summary: str
    truth: str = "turn.get"

    def address(self) -> str:
        """Return the subject with `{…}` for what is not fixed."""
        return template(_SUBJECTS.mailbox(mark("runner"), self.kind))


class Work(Struct, frozen=True):
    """What is put out for the runners of a pool; fields as for `Intake`."""

    name: str
    message: type[Struct]
    subject: Callable[..., str]
    parameters: tuple[str, ...]
    stream: str
    summary: str

    def address(self) -> str:
        """Return the subject with `{…}` for what is not fixed."""
        return template(self.subject(_SUBJECTS, *map(mark, self.parameters)))


class State(Struct, frozen=True):
    """What one bucket holds. Its revisions are the events, where it has any.

    Attributes:
        bucket: short name of the bucket, which is also the events' kind.
        message: the Struct of a value.
        key: what the parts of a key are called.
        summary: one sentence on what a value says.
        events: the `ce-type` of each event without its `turngate.`; none where the bucket is not sourced into events.
        prefix: what the type of a value's cause lacks of that.
    """

    bucket: str
    message: type[Struct]
    key: tuple[str, ...]
    summary: str
    events: tuple[str, ...] = ()
    prefix: str = ""

    def address(self) -> str:
        """Return the subject of a key's revision, with `{…}` for what is not fixed."""
        if self.bucket in SPLIT:
            return template(_SUBJECTS.unsplit(self.bucket, f"{mark('standing')}.{self._key()}"))
        return template(_SUBJECTS.key(self.bucket, self._key()))

    def event_address(self) -> str:
        """Return the subject of a key's stored events, with `{…}` for what is not fixed."""
        return template(_SUBJECTS.event(self.bucket, self._key()))

    def live_address(self) -> str:
        """Return the subject of a key's republished events, with `{…}` for what is not fixed."""
        stored, live = _SUBJECTS.events().rstrip(">"), _SUBJECTS.live().rstrip(">")
        return template(live + _SUBJECTS.event(self.bucket, self._key()).removeprefix(stored))

    def _key(self) -> str:
        return ".".join(map(mark, self.key))


class Timer(Struct, frozen=True):
    """What is scheduled to arrive at a time. A timer that means nothing any more may still fire: the state decides."""

    kind: str
    message: type[Struct]
    summary: str

    def address(self) -> str:
        """Return the subject where it arrives, with `{…}` for what is not fixed."""
        return template(_SUBJECTS.timer_due(self.kind, mark("timer")))

    def schedule_address(self) -> str:
        """Return the subject where it is scheduled, with `{…}` for what is not fixed."""
        return template(_SUBJECTS.timer_at(self.kind, mark("timer")))


class Progress(Struct, frozen=True):
    """What the events stream is told beside states: news that are kept for minutes.

    Attributes:
        message: the Struct of the body.
        event: the `ce-type` of it without its `turngate.`.
        summary: one sentence on what it says.
    """

    message: type[Struct]
    event: str
    summary: str

    def address(self) -> str:
        """Return the subject where it is stored, with `{…}` for what is not fixed."""
        return template(_SUBJECTS.progress(mark("session")))

    def live_address(self) -> str:
        """Return the subject where it is republished, with `{…}` for what is not fixed."""
        return self.address().replace("{namespace}.event.", "{namespace}.live.", 1)


class Presence(Struct, frozen=True):
    """What is kept in memory for a short time about whoever is alive."""

    message: type[Struct]
    stream: str
    summary: str

    def address(self) -> str:
        """Return the subject with `{…}` for what is not fixed."""
        return template(_SUBJECTS.presence(mark("runner")))


class Dead(Struct, frozen=True):
    """Where messages go that nothing can be done with."""

    message: type[Struct]
    stream: str
    summary: str

    def address(self) -> str:
        """Return the subject with `{…}` for what is not fixed."""
        return template(_SUBJECTS.dead_letter(mark("stream"), mark("letter")))


def mark(parameter: str) -> str:
    """Return a legal id that stands for a part of a subject; `template` knows it again."""
    return f"--{parameter}--"


def template(subject: str) -> str:
    """Return a subject that was built with marks, with `{parameter}` in their places."""
    return _MARK.sub(r"{\1}", subject).replace(_NAMESPACE, "{namespace}")
