"""`turngate demo`, played: start everything, let the fleet work, answer its cards, check, and draw the end table."""

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from turngate.cli.commands import Parser, whole_number
from turngate.demo.person import Person
from turngate.demo.processes import Processes
from turngate.demo.stories import POOLS, stories
from turngate.demo.tally import Tally, draw
from turngate.jetstream.embedded import EmbeddedServer
from turngate.runner import TurnClient
from turngate.settings import Settings
from turngate.terminal import Terminal
from turngate_contracts.topology import Durability
from turngate_protocol.report.model import Report
from turngate_protocol.report.session import SessionTurns

DEADLINE_S: Final = 55.0
"""The demo ends by itself within a minute; what is not done by then is a failure."""
CARDS_SHOWN: Final = 4
PROGRESS_S: Final = 0.2
PIPED_PROGRESS_S: Final = 2.0


class Play(NamedTuple):
    """How to play: processes that validate, seconds an agent thinks, seconds a person looks at a card."""

    validation: int = 2
    pace_s: float = 0.5
    pause_s: float = 0.25


class Result(NamedTuple):
    """What came out: the end table as plain values, and what went wrong."""

    summary: dict[str, Any]
    failures: list[str]


@asynccontextmanager
async def stage(play: Play) -> AsyncIterator[tuple[Settings, Processes]]:
    """A server in a temporary directory and the validation processes; all of it is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="turngate-demo-") as directory:
        server = EmbeddedServer(Path(directory), sync_always=False)
        with await asyncio.to_thread(server.__enter__) as running:
            settings = Settings(nats_url=running.url, durability=Durability.RELAXED)
            processes = Processes(settings)
            try:
                await processes.validate(play.validation)
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
    told = {story.session: story for story in stories()}
    tally = Tally()
    began = time.monotonic()
    async with (
        await TurnClient.connect("you", url=settings.nats_url, namespace=settings.namespace) as you,
        await TurnClient.connect("colleague", url=settings.nats_url, namespace=settings.namespace) as colleague,
    ):
        person = Person(you, colleague, told, play.pause_s)
        cards = _Cards(terminal)
        working = asyncio.create_task(person.work(cards.show))
        await processes.run_fleet(POOLS, play.pace_s, tally.add)
        progress = _Progress(terminal, tally, person, len(told), began)
        wanted = sum(story.reply is not None for story in told.values())
        failures: list[str] = []
        try:
            async with asyncio.timeout(DEADLINE_S):
                while not _is_told(tally, person, len(told), wanted):
                    if working.done():
                        working.result()
                    if processes.lost or tally.errors:
                        failures += [*processes.lost, *tally.errors]
                        break
                    progress.show()
                    await asyncio.sleep(PROGRESS_S)
        except TimeoutError:
            failures.append(_unfinished(tally, person, set(told), wanted))
        finally:
            progress.clear()
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)
        await processes.dismiss_fleet()
        failures += await tally.disagreements(you)
    return Result(tally.summary(time.monotonic() - began, person.answered), failures)


def add_arguments(parser: Parser) -> None:
    """Add the arguments of `turngate demo`."""
    parser.explain(
        """
        Play a fleet: a NATS server, validation processes and three runner processes whose
        agents end their turns well and badly. It draws some cards, answers them as you
        would, ends within a minute, and fails if any attempt has not exactly one verdict.
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
    """Play the demo and return the exit code: 0 when every attempt has exactly one verdict, else 1."""
    from turngate import process

    pauses = (0.02, 0.0) if args.fast else (0.5, 0.25)
    return process.run(_run(Play(args.validation, *pauses), Terminal(), keep=args.keep, as_json=args.json))


async def _run(play: Play, terminal: Terminal, *, keep: bool, as_json: bool) -> int:
    notes = Terminal(sys.stderr) if as_json else terminal
    notes.line(
        "Starting a NATS server, ", str(play.validation), " validation processes and ", str(len(POOLS)), " runners …"
    )
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


async def _keep(terminal: Terminal, settings: Settings) -> None:
    from turngate.process import Ending

    ending = Ending()
    terminal.line()
    terminal.line("It stays up until Ctrl-C. In another terminal:")
    terminal.line(f"  export TURNGATE_NATS_URL={settings.nats_url}")
    terminal.line("  turngate events tail")
    await ending.wanted.wait()


def _is_told(tally: Tally, person: Person, sessions: int, wanted: int) -> bool:
    return (
        len(tally.stories_done) == sessions
        and person.answered == wanted
        and person.expected_prompts <= tally.prompts_done
    )


def _unfinished(tally: Tally, person: Person, sessions: set[str], wanted: int) -> str:
    missing = sorted(sessions - tally.stories_done) + sorted(person.expected_prompts - tally.prompts_done)
    return (
        f"not finished after {DEADLINE_S:g} s: {person.answered} of {wanted} cards answered;"
        f" still open: {', '.join(missing[:5]) or 'nothing else'}"
    )


class _Cards:
    """Draws the first card of each kind as a person would see it."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._drawn: set[str] = set()

    def show(self, state: SessionTurns, report: Report, key: int) -> None:
        terminal = self._terminal
        pressed = f"you press {key}" if key else "you press Esc"
        kind = next((b.type for b in report.blocks if b.options), "")
        if kind not in self._drawn and len(self._drawn) < CARDS_SHOWN:
            self._drawn.add(kind)
            terminal.line()
            terminal.card(report, title=f"session {state.session}, turn {state.current.turn}")
            terminal.line(terminal.paint(f"  {pressed}", "bold", "cyan"))


class _Progress:
    """One line that is drawn again in place; where a program reads, a line every two seconds."""

    def __init__(self, terminal: Terminal, tally: Tally, person: Person, sessions: int, began: float) -> None:
        self._terminal = terminal
        self._tally = tally
        self._person = person
        self._sessions = sessions
        self._began = began
        self._in_place = terminal.stream.isatty()
        self._last = 0.0

    def show(self) -> None:
        now = time.monotonic()
        if not self._in_place and now - self._last < PIPED_PROGRESS_S:
            return
        self._last = now
        tally = self._tally
        text = (
            f"{now - self._began:5.1f} s  sessions done {len(tally.stories_done)}/{self._sessions}"
            f"  accepted {tally.outcomes['accepted']}  rejected {tally.outcomes['rejected']}"
            f"  exhausted {tally.outcomes['exhausted']}  answered {self._person.answered}"
            f"  prompts done {len(tally.prompts_done)}"
        )
        if self._in_place:
            self._terminal.stream.write(f"\r\x1b[2K{self._terminal.paint(text, 'dim')}")
            self._terminal.stream.flush()
        else:
            self._terminal.line(text)

    def clear(self) -> None:
        if self._in_place:
            self._terminal.stream.write("\r\x1b[2K")
            self._terminal.stream.flush()
