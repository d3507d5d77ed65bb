"""What the demo draws: cards as a person sees them, lines about what else happens, progress in place, the end table."""

import time
from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

from turngate.demo.person import Person
from turngate.demo.tally import Tally
from turngate.terminal import Terminal
from turngate_protocol.report.model import Report
from turngate_protocol.report.session import SessionTurns

CARDS_SHOWN: Final = 4
PIPED_PROGRESS_S: Final = 2.0
LINE_CHARACTERS: Final = 110

_GOOD: Final = ("complete", "answered", "told", "success", "recovery finished", "resumed")
_BAD: Final = ("killed", "blocked", "usage_limited", "error", "rejected", "role failed")


class Counted(Protocol):
    """A part of the play that progress is shown of."""

    name: str
    wanted: int

    @property
    def done(self) -> int:
        """How much of what is wanted has come out."""


class Progress:
    """One line that is drawn again in place; where a program reads, a line every two seconds."""

    def __init__(self, terminal: Terminal, tally: Tally, person: Person, sessions: int, began: float) -> None:
        self.parts: Sequence[Counted] = ()
        self._terminal = terminal
        self._tally = tally
        self._person = person
        self._sessions = sessions
        self._began = began
        self._in_place = terminal.stream.isatty()
        self._last = 0.0

    def show(self) -> None:
        """Draw how far everything is."""
        now = time.monotonic()
        if not self._in_place and now - self._last < PIPED_PROGRESS_S:
            return
        self._last = now
        tally = self._tally
        parts = "".join(f"  {part.name} {part.done}/{part.wanted}" for part in self.parts)
        text = (
            f"{now - self._began:5.1f} s  sessions done {len(tally.stories_done)}/{self._sessions}"
            f"  accepted {tally.outcomes['accepted']}  rejected {tally.outcomes['rejected']}"
            f"  answered {self._person.answered}  prompts {len(tally.prompts_done)}{parts}"
        )
        if self._in_place:
            room = max(20, self._terminal.width - 1)
            self._terminal.stream.write(f"\r\x1b[2K{self._terminal.paint(text[:room], 'dim')}")
            self._terminal.stream.flush()
        else:
            self._terminal.line(text)

    def clear(self) -> None:
        """Take the line away, so that others can be written."""
        if self._in_place:
            self._terminal.stream.write("\r\x1b[2K")
            self._terminal.stream.flush()

    def note(self, about: str, word: str, sentence: str) -> None:
        """Write a line about something that happened."""
        self.clear()
        terminal = self._terminal
        look = "green" if word in _GOOD else "red" if word in _BAD else "yellow"
        shown = " ".join(sentence.split())
        if len(shown) > LINE_CHARACTERS:
            shown = f"{shown[:LINE_CHARACTERS]}…"
        terminal.line(
            terminal.paint(f"  {about}: ", "dim"),
            terminal.paint(word.replace("_", " "), look, "bold"),
            f"  {shown}",
        )


class Cards:
    """Draws the first card of each kind as a person would see it."""

    def __init__(self, terminal: Terminal, progress: Progress) -> None:
        self._terminal = terminal
        self._progress = progress
        self._drawn: set[str] = set()

    def show(self, state: SessionTurns, report: Report, key: int) -> None:
        """Draw a card that is about to be answered, unless one of its kind was drawn before."""
        terminal = self._terminal
        pressed = f"you press {key}" if key else "you press Esc"
        kind = next((b.type for b in report.blocks if b.options), "")
        if kind not in self._drawn and len(self._drawn) < CARDS_SHOWN:
            self._drawn.add(kind)
            self._progress.clear()
            terminal.line()
            terminal.card(report, title=f"session {state.session}, turn {state.current.turn}")
            terminal.line(terminal.paint(f"  {pressed}", "bold", "cyan"))


def draw(summary: Mapping[str, Any], terminal: Terminal) -> None:
    """Draw the end table."""
    plain = ("sessions", "turns", "attempts", "cards_answered", "prompts_done", "buried_proposals", "seconds")
    rows = [[name.replace("_", " "), str(summary[name])] for name in plain]
    rows += [[f"verdict {name}", str(count)] for name, count in summary["verdicts"].items()]
    rows += [[f"ending {name}", str(count)] for name, count in summary["endings"].items()]
    for part in ("objectives", "questions", "tasks"):
        for name, count in summary.get(part, {}).items():
            rows.append([part if name == "count" else f"{part} {name.replace('_', ' ')}", str(count)])
    rows += [[f"latency {name}", f"{ms:.2f} ms"] for name, ms in summary["latency_ms"].items()]
    terminal.line()
    terminal.table(["what", "count"], rows, right={1})
    terminal.line()
    codes = [[code, str(count)] for code, count in summary["rejections_by_code"].items()]
    terminal.table(["rejected for", "count"], codes, right={1})
