"""Every effect of every service, and the flow that comes to it. What is reached and is not here fails the walk."""

from collections.abc import Iterable, Mapping
from types import ModuleType
from typing import Final

from msgspec import Struct

from tests.system.faults.walk import conclusion, deadletter, supervisor, validation
from tests.system.faults.walk.scene import Flow

_UNANSWERED: Final = ("ack.", "nak.", "term.", "tell.", "answer.")
"""Effects that nobody confirms."""


class Way(Struct, frozen=True):
    """How a walk comes to some effects.

    Attributes:
        flow: what is played.
        effects: what it comes to.
        before: what is played before the service starts.
        variables: settings of the service that is to end.
    """

    flow: Flow
    effects: tuple[str, ...]
    before: Flow | None = None
    variables: Mapping[str, str] = {}


class Walk(Struct, frozen=True):
    """The walk of one service; `beside` are services that run untouched all the time."""

    service: str
    module: ModuleType
    ways: tuple[Way, ...]
    beside: tuple[str, ...] = ()

    @property
    def effects(self) -> set[str]:
        """The names of all effects of the service."""
        return {effect for way in self.ways for effect in way.effects}


def steps_of(effect: str) -> Iterable[str]:
    """Return where a process may end at an effect."""
    return ("before", "sent") if effect.startswith(_UNANSWERED) else ("before", "sent", "confirmed")


WALKS: Final = (
    Walk(
        "validation",
        validation,
        (
            Way(
                validation.usual,
                (
                    *("save.turns", "save.questions", "save.inbox", "delete.inbox"),
                    *("put.prompt", "set.timer-question", "stream.purge", "consumer.durable.create"),
                    *("tell.verdict", "tell.ending", "tell.answered", "tell.outcome", "tell.refused"),
                    *("ack.validation", "ack.turns-reconciler", "ack.questions-reconciler", "ack.timers-question"),
                    *("answer.turn.answer", "answer.turn.dismiss", "answer.turn.prompt", "answer.turn.get"),
                    *("answer.question.ask", "answer.question.resolve", "answer.question.reject"),
                    *("answer.question.get", "answer.runner.join", "answer.report.check", "answer.inbox.list"),
                    *("answer.report.schema", "answer.turn.list"),
                ),
            ),
            Way(validation.spoiled, ("put.letter", "term.validation", "term.timers-question")),
            Way(validation.spoiled, ("put.suspect",), before=validation.before_spoiled),
            Way(
                validation.refused,
                ("nak.validation", "nak.turns-reconciler", "nak.questions-reconciler"),
            ),
            Way(validation.crowd, ("batch.turns",), variables={"TURNGATE_DURABILITY": "strict"}),
            Way(
                validation.provisioned,
                ("stream.create",),
                variables={"TURNGATE_NAMESPACE": "{namespace}{tag}"},
            ),
            Way(
                validation.behind,
                ("nak.timers-question",),
                before=validation.before_behind,
                variables={"TURNGATE_CLOCK_OFFSET_MS": "-3600000"},
            ),
        ),
        beside=("deadletter",),
    ),
    Walk(
        "conclusion",
        conclusion,
        (
            Way(
                conclusion.usual,
                (
                    *(
                        "save.conclusions",
                        "consumer.durable.create",
                        "ask.stat",
                        "ask.memory",
                        "ask.turn.prompt",
                        "tell.refused",
                    ),
                    *("ack.conclusion", "ack.conclusions-reconciler"),
                    *("answer.conclusion.get", "answer.conclusion.list"),
                ),
                variables={"TURNGATE_MEMORY_SUBJECT": "{namespace}.memory.check"},
            ),
            Way(conclusion.refused, ("nak.conclusion",)),
            Way(conclusion.alone, ("nak.conclusions-reconciler",)),
            Way(conclusion.spoiled, ("put.letter", "term.conclusion")),
            Way(conclusion.spoiled, ("put.suspect",), before=conclusion.before_spoiled),
        ),
        beside=("validation", "deadletter"),
    ),
    Walk(
        "supervisor",
        supervisor,
        (
            Way(
                supervisor.usual,
                (
                    *(
                        "save.objectives",
                        "consumer.durable.create",
                        "save.inbox",
                        "delete.inbox",
                        "put.offer",
                        "put.presence",
                    ),
                    *("put.event", "set.timer-continuation", "set.timer-watchdog", "tell.cancel"),
                    *("ack.supervisor", "ack.objectives-reconciler", "ack.timers-continuation"),
                    "ack.timers-watchdog",
                    *("answer.esm.create", "answer.esm.edit", "answer.esm.pause", "answer.esm.resume"),
                    *("answer.esm.clear", "answer.esm.guide", "answer.esm.run", "answer.esm.configure"),
                    *("answer.esm.update", "answer.esm.get", "answer.esm.list"),
                    *("answer.role.claim", "answer.runner.beat", "answer.runner.list"),
                ),
            ),
            Way(supervisor.crowd, ("batch.objectives",), variables={"TURNGATE_DURABILITY": "strict"}),
            Way(
                supervisor.refused,
                ("nak.supervisor", "nak.objectives-reconciler", "nak.timers-continuation"),
                variables={"TURNGATE_FIRST_DELAY_MS": "900", "TURNGATE_LONGEST_DELAY_MS": "1000"},
            ),
            Way(
                supervisor.lost,
                ("stream.purge", "stream.update", "answer.role.release", "nak.timers-watchdog"),
                variables={"TURNGATE_PRESENCE_MS": "5000"},
            ),
            Way(
                supervisor.spoiled,
                (
                    *("put.letter", "tell.refused", "term.supervisor"),
                    *("term.timers-continuation", "term.timers-watchdog"),
                ),
            ),
            Way(supervisor.spoiled, ("put.suspect",), before=supervisor.before_spoiled),
        ),
        beside=("validation", "deadletter"),
    ),
    Walk(
        "deadletter",
        deadletter,
        (
            Way(
                deadletter.usual,
                (
                    *("put.letter", "stream.msg.delete", "consumer.durable.create", "ack.deadletter", "put.mark"),
                    *("put.turn-report", "put.prompt", "save.questions"),
                    *("answer.dead.list", "answer.dead.get", "answer.dead.retry", "answer.dead.drop"),
                ),
                before=deadletter.before,
            ),
            Way(deadletter.refused, ("nak.deadletter",), before=deadletter.before_refused),
        ),
    ),
)


def points(walk: Walk) -> list[tuple[Way, str]]:
    """Return each point of a service with the way to it."""
    return [(way, f"{effect}.{step}") for way in walk.ways for effect in way.effects for step in steps_of(effect)]
