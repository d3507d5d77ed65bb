"""What happens in each session of the demo: its turns, and what a person does with the card at its end."""

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from turngate.demo import reports as r

POOLS: Final = ("web", "core", "ops")

Written = dict[str, Any] | str


class Turn(NamedTuple):
    """A turn: the reports that its agent writes one after the other, and whether it changed something.

    `endings_before` is how often the agent stops without a report before it writes one.
    """

    reports: tuple[Written, ...] = ()
    mutated: bool = True
    endings_before: int = 0


class Story(NamedTuple):
    """A session's turns, and the reply to its last card: an option's number, 0 to dismiss, None where there is none."""

    session: str
    pool: str
    plot: str
    turns: tuple[Turn, ...]
    reply: int | None = None


def _straight(t: r.Topic) -> tuple[tuple[Turn, ...], int | None]:
    return (Turn((r.done(t),)), Turn((r.with_notes(t),))), None


def _repaired(t: r.Topic) -> tuple[tuple[Turn, ...], int | None]:
    return (Turn((r.unchecked(t), r.done(t))), Turn((r.sloppy(t), r.unchecked(t), r.done(t)))), None


def _exhausted(t: r.Topic) -> tuple[tuple[Turn, ...], int | None]:
    return (Turn((r.NOT_A_REPORT, r.sloppy(t), r.unchecked(t), r.sloppy(t))), Turn((r.done(t),))), None


def _buried(t: r.Topic) -> tuple[tuple[Turn, ...], int | None]:
    return (Turn((r.buried(t), r.next_step(t))),), 1


def _read_only(_: r.Topic) -> tuple[tuple[Turn, ...], int | None]:
    return (Turn(mutated=False), Turn((r.explained(),), mutated=False), Turn((r.failed(),))), None


def _reminded(t: r.Topic) -> tuple[tuple[Turn, ...], int | None]:
    return (Turn((r.done(t),), endings_before=1), Turn(endings_before=2)), None


def _decides(t: r.Topic) -> tuple[tuple[Turn, ...], int | None]:
    return (Turn((r.decision(t),)),), 2


def _asks(t: r.Topic) -> tuple[tuple[Turn, ...], int | None]:
    return (Turn((r.done(t),)), Turn((r.question(t),))), 2


def _blocked(t: r.Topic) -> tuple[tuple[Turn, ...], int | None]:
    return (Turn((r.unchecked(t), r.blocked(t))),), 1


def _dismissed(t: r.Topic) -> tuple[tuple[Turn, ...], int | None]:
    return (Turn((r.next_step(t),)),), 0


_PLOTS: Final[dict[str, Callable[[r.Topic], tuple[tuple[Turn, ...], int | None]]]] = {
    "straight": _straight,
    "decision": _decides,
    "repaired": _repaired,
    "buried proposal": _buried,
    "question": _asks,
    "exhausted": _exhausted,
    "blocked": _blocked,
    "reminded": _reminded,
    "dismissed": _dismissed,
    "read only": _read_only,
}


def stories() -> list[Story]:
    """Return the stories of all sessions; each plot comes up several times."""
    plots = list(_PLOTS.items())
    told = []
    for number, topic in enumerate(r.TOPICS):
        name, plot = plots[number % len(plots)]
        turns, reply = plot(topic)
        told.append(Story(topic.session, POOLS[number % len(POOLS)], name, turns, reply))
    return told


def follow_up(session: str) -> Written:
    """Return what an agent reports after it did what a prompt asked for."""
    topic = next((t for t in r.TOPICS if t.session == session), r.TOPICS[0])
    return r.done(topic)
