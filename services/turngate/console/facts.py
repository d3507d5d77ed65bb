"""What pages are made of beside the wire's own Structs: the frame around each page, and what the fleet page counts."""

from msgspec import Struct

from turngate_contracts.beats import RunnerPresence
from turngate_contracts.dead import DeadEntry
from turngate_contracts.errors import ErrorBody


class Flash(Struct, frozen=True):
    """What became of the last action, shown once on the next page; `ok` says whether it was done."""

    ok: bool
    message: str


class Shell(Struct, frozen=True):
    """The frame around each page.

    Attributes:
        namespace: which system this is.
        actor: who acts: the token's name, or the configured name where no tokens are needed.
        operator: whether the actor may answer and steer; a viewer gets no forms.
        csrf: the hidden field `csrf` of every form.
        cursor: the events' sequence that the page is at least as new as; the browser follows `/live?after=` it.
        inbox: how many things wait for a person; `inbox_more` when there are more than were counted.
        connected: whether the NATS server is there.
        signed_in: whether there is a session to log out of.
        path: the path of this page, for the mark in the navigation.
        flash: what became of the last action.
        version: the software's version.
    """

    namespace: str
    actor: str
    operator: bool
    csrf: str
    cursor: int = 0
    inbox: int = 0
    inbox_more: bool = False
    connected: bool = True
    signed_in: bool = False
    path: str = "/"
    flash: Flash | None = None
    version: str = ""


class SeenService(Struct, frozen=True):
    """One process that answers requests: how often it was asked and failed, and since when it runs (ms, epoch)."""

    name: str
    id: str
    version: str
    started_at: int
    requests: int
    errors: int


class SeenQueue(Struct, frozen=True):
    """How far a durable consumer is: what waits, what is being handled, and what was delivered more than once."""

    stream: str
    consumer: str
    waiting: int
    handling: int
    redelivered: int


class Fleet(Struct, frozen=True):
    """Everything that runs; the reasons why a part of it could not be read stand in `unknown` by the part's name."""

    runners: tuple[RunnerPresence, ...] = ()
    services: tuple[SeenService, ...] = ()
    queues: tuple[SeenQueue, ...] = ()
    dead: tuple[DeadEntry, ...] = ()
    more_dead: bool = False
    unknown: dict[str, ErrorBody] = {}
