"""`turngate demo`, played: start everything, let the fleet work, answer its cards, check, and draw the end table."""

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

from turngate.cli.commands import Parser, whole_number
from turngate.demo import asking, delegating, plots
from turngate.demo.drawing import Cards, Progress, draw
from turngate.demo.objectives import Campaign
from turngate.demo.person import Person
from turngate.demo.processes import Processes
from turngate.demo.stories import POOLS, Story, stories
from turngate.demo.tally import Tally
from turngate.jetstream.embedded import EmbeddedServer
from turngate.runner import TurnClient
from turngate.settings import Settings
from turngate.terminal import Terminal
from turngate_contracts.topology import Durability

DEADLINE_S: Final = 45.0
"""The demo ends by itself within a minute; what is not done by then is a failure."""
PROGRESS_S: Final = 0.2
QUICK: Final[dict[str, Any]] = {
    "presence_ms": 2_500,
    "watchdog_ms": 500,
    "first_delay_ms": 200,
    "longest_delay_ms": 1_000,
}
"""An impatient supervisor: a lost runner is to be seen, and three runs to be blocked, within the minute."""
RUNNERS: Final = len(POOLS) + len(plots.POOLS) + 2
"""Those of turns, those of objectives, the one that asks, and the one that delegates."""


class Play(NamedTuple):
    """How to play: processes that validate, seconds an agent thinks, seconds a person looks at a card."""

    validation: int = 2
    pace_s: float = 0.5
    pause_s: float = 0.25

    def services(self) -> dict[str, int]:
        """Return how many processes of each service play."""
        return {"validation": self.validation, "conclusion": 1, "supervisor": 2}


class Result(NamedTuple):
    """What came out: the end table as plain values, and what went wrong."""

    summary: dict[str, Any]
    failures: list[str]


class Part(Protocol):
    """A part of the play beside the turns: objectives, questions, tasks."""

    name: str
    wanted: int
    failures: list[str]

    @property
    def done(self) -> int:
        """How much of what is wanted has come out."""

    async def play(self) -> None:
        """Play it to its end."""

    def unfinished(self) -> list[str]:
        """Say what has not come out."""

    def summary(self) -> dict[str, Any]:
        """Return its rows of the end table."""


@asynccontextmanager
async def stage(play: Play) -> AsyncIterator[tuple[Settings, Processes]]:
    """A server in a temporary directory and the services' processes; all of it is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="turngate-demo-") as directory:
        server = EmbeddedServer(Path(directory), sync_always=False)
        with await asyncio.to_thread(server.__enter__) as running:
            settings = Settings(nats_url=running.url, durability=Durability.RELAXED, **QUICK)
            processes = Processes(settings)
            try:
                await processes.serve(play.services())
                yield settings, processes
            finally:
                await processes.end()


async def perform(settings: Settings, processes: Processes, play: Play, terminal: Terminal) -> Result:
    """Let the fleet work until its stories are told, and check the outcome.

    Args:
        settings: where the system is.
        processes: where the runners are started.
        play: how fast.
        terminal: where cards and progress are drawn.
    """
    began = time.monotonic()
    async with (
        await TurnClient.connect("you", url=settings.nats_url, namespace=settings.namespace) as you,
        await TurnClient.connect("colleague", url=settings.nats_url, namespace=settings.namespace) as colleague,
    ):
        told = {story.session: story for story in stories()}
        tally = Tally()
        person = Person(you, colleague, told, play.pause_s)
        progress = Progress(terminal, tally, person, len(told), began)
        parts = await _start_parts(you, processes, play, progress)
        working = [asyncio.create_task(part.play(), name=part.name) for part in parts]
        working.append(asyncio.create_task(person.work(Cards(terminal, progress).show), name="cards"))
        await processes.run_fleet(POOLS, play.pace_s, tally.add)
        cast = _Cast(tally, person, parts, working, told)
        try:
            failures = await _until_told(cast, processes, progress)
        finally:
            progress.clear()
            for task in working:
                task.cancel()
            await asyncio.gather(*working, return_exceptions=True)
        failures += await processes.dismiss_fleet()
        failures += await tally.disagreements(you)
        failures += [failure for part in parts for failure in part.failures]
    summary = tally.summary(time.monotonic() - began, person.answered)
    return Result({**summary, **{part.name: part.summary() for part in parts}}, list(dict.fromkeys(failures)))


class _Cast(NamedTuple):
    """Who plays: the tally of turns, the person who answers cards, the other parts, and their tasks, cards last."""

    tally: Tally
    person: Person
    parts: list[Part]
    working: "list[asyncio.Task[None]]"
    stories: dict[str, Story]

    def are_turns_told(self) -> bool:
        """Say whether every session has ended, every card is answered and every prompt is done."""
        wanted = sum(story.reply is not None for story in self.stories.values())
        return (
            len(self.tally.stories_done) == len(self.stories)
            and self.person.answered == wanted
            and self.person.expected_prompts <= self.tally.prompts_done.keys()
        )

    def trouble(self, processes: Processes) -> list[str]:
        """Return what went wrong so far; anything ends the play."""
        found = [*processes.lost, *self.tally.errors, *(failure for part in self.parts for failure in part.failures)]
        for task in self.working:
            error = task.exception() if task.done() and not task.cancelled() else None
            found += [f"{task.get_name()}: {type(error).__name__}: {error}"] if error else []
        return found

    def unfinished(self) -> list[str]:
        """Say what is still open."""
        found = [missing for part in self.parts for missing in part.unfinished()]
        if not self.are_turns_told():
            missing = sorted(self.stories.keys() - self.tally.stories_done)
            missing += sorted(self.person.expected_prompts - self.tally.prompts_done.keys())
            found.append(f"{self.person.answered} cards answered; still open: {', '.join(missing[:5]) or 'a card'}")
        return [f"not finished after {DEADLINE_S:g} s: {what}" for what in found or ["nothing is open"]]


async def _until_told(cast: _Cast, processes: Processes, progress: Progress) -> list[str]:
    """Show progress until everything has come out; returns what went wrong."""
    try:
        async with asyncio.timeout(DEADLINE_S):
            while not (cast.are_turns_told() and all(task.done() for task in cast.working[:-1])):
                if trouble := cast.trouble(processes):
                    return trouble
                progress.show()
                await asyncio.sleep(PROGRESS_S)
    except TimeoutError:
        return cast.unfinished()
    return cast.trouble(processes)


async def _start_parts(you: TurnClient, processes: Processes, play: Play, progress: Progress) -> list[Part]:
    """Start the runners of objectives, questions and tasks, and return who plays them."""
    pace = ("--pace", str(play.pace_s))

    def take(fact: Mapping[str, Any]) -> None:
        if fact["kind"] == "error":
            progress.note("runner", "error", str(fact["message"]))

    async def crew(pool: str) -> None:
        await processes.run("crew", f"{pool}-runner", pool, *pace, on_fact=take)

    async def kill(identity: str) -> None:
        await processes.kill(identity)
        await crew(identity.removesuffix("-runner"))

    async def ask() -> None:
        await processes.run("asking", asking.RUNNER, asking.POOL, *pace, on_fact=answering.add)

    async def ask_again() -> None:
        await processes.kill(asking.RUNNER)
        await ask()

    answering = asking.Answering(you, ask_again, progress.note, play.pause_s)
    delegating_ = delegating.Delegating(you, progress.note)
    for pool in plots.POOLS:
        await crew(pool)
    await ask()
    await processes.run("delegating", delegating.RUNNER, delegating.POOL, *pace, on_fact=delegating_.add)
    parts: list[Part] = [Campaign(you, plots.plots(), kill, progress.note), answering, delegating_]
    progress.parts = parts
    return parts


def add_arguments(parser: Parser) -> None:
    """Add the arguments of `turngate demo`."""
    parser.explain(
        """
        Play a fleet: a NATS server, the services and some runner processes whose agents
        end their turns well and badly, ask questions, conclude delegated tasks and work on
        long objectives, while one runner after another is killed. It draws some cards,
        answers as you would, ends within a minute, and fails if any attempt has not
        exactly one verdict or anything else comes out otherwise than its plot says.
        Nothing of it is left behind.
        """,
        """
        turngate demo
        turngate demo --keep           leave the system up afterwards, until Ctrl-C
        turngate demo --fast --json    without pauses, the end table as JSON
        """,
    )
    parser.add_argument("--keep", action="store_true", help="leave the system up until Ctrl-C")
    parser.add_argument("--fast", action="store_true", help="agents and people do not pause to think")
    parser.add_argument("--validation", type=whole_number, default=2, metavar="N", help="processes that validate")
    parser.add_json("the end table")


def run(args: argparse.Namespace) -> int:
    """Play the demo and return the exit code: 0 when everything came out as it should, else 1."""
    from turngate import process

    pauses = (0.02, 0.0) if args.fast else (0.5, 0.25)
    return process.run(_run(Play(args.validation, *pauses), Terminal(), keep=args.keep, as_json=args.json))


async def _run(play: Play, terminal: Terminal, *, keep: bool, as_json: bool) -> int:
    notes = Terminal(sys.stderr) if as_json else terminal
    services = ", ".join(f"{count} {name}" for name, count in play.services().items())
    notes.line(f"Starting a NATS server, {services} processes and {RUNNERS} runners …")
    async with stage(play) as (settings, processes):
        result = await perform(settings, processes, play, notes)
        if as_json:
            from turngate.cli.output import print_json

            print_json({**result.summary, "failures": result.failures})
        else:
            draw(result.summary, terminal)
        _conclude(notes, result)
        if keep:
            await _keep(notes, settings)
    return 1 if result.failures else 0


def _conclude(terminal: Terminal, result: Result) -> None:
    terminal.line()
    for failure in result.failures:
        terminal.line(terminal.paint("FAILED ", "red", "bold"), failure)
    if not result.failures:
        attempts = str(result.summary["attempts"])
        terminal.line(terminal.paint("OK ", "green", "bold"), attempts, " attempts, each with exactly one verdict.")
        parts = [f"{result.summary[name]['count']} {name}" for name in ("objectives", "questions", "tasks")]
        terminal.line(terminal.paint("OK ", "green", "bold"), ", ".join(parts), ", each with the end of its plot.")


async def _keep(terminal: Terminal, settings: Settings) -> None:
    from turngate.process import Ending

    ending = Ending()
    terminal.line()
    terminal.line("It stays up until Ctrl-C. In another terminal:")
    terminal.line(f"  export TURNGATE_NATS_URL={settings.nats_url}")
    terminal.line("  turngate events tail")
    await ending.wanted.wait()
