"""What a person has in front of them, and what a key does to it. Pure: no terminal, no clock, no connection.

The screen is the list of what waits, or one thing of it that was opened: a card, a question, or an objective. A key
changes the screen, and may decide something: that comes back as an action, which `actions` carries out. What was
opened stays as it was opened: an answer always means the card that the person read, and is refused when a newer one
has come.
"""

from dataclasses import dataclass, field
from typing import Final, NamedTuple

from turngate.cli.watching.keyboard import Key
from turngate_protocol.esm.activity import Activity
from turngate_protocol.esm.objective import Status
from turngate_protocol.esm.state import EsmState
from turngate_protocol.inbox import InboxEntry
from turngate_protocol.question import Answer, Request, RequestKind
from turngate_protocol.report import Choice, Report

_RESTS: Final = frozenset({Status.PAUSED, Status.BLOCKED, Status.USAGE_LIMITED})

Place = tuple[str, str]
"""An entry's kind and session, of which the inbox has one."""


class Open(NamedTuple):
    """Show what an entry leads to."""

    entry: InboxEntry


class PickOption(NamedTuple):
    """Answer a card."""

    session: str
    turn: int
    number: int
    text: str


class DismissCard(NamedTuple):
    """Close a card without an answer."""

    session: str
    turn: int


class Reply(NamedTuple):
    """Answer a question."""

    session: str
    request: Request
    answers: tuple[Answer, ...]
    chat: str


class CancelQuestion(NamedTuple):
    """Give a question up."""

    session: str
    request: Request


class Steer(NamedTuple):
    """Steer an objective: `pause`, `resume`, `run`, `guide` with a text, or `edit` its text in an editor."""

    session: str
    what: str
    text: str = ""


class Quit(NamedTuple):
    """End."""


Action = Open | PickOption | DismissCard | Reply | CancelQuestion | Steer | Quit


@dataclass
class Card:
    """An opened card. `beside` is the free text that goes with the answer."""

    entry: InboxEntry
    turn: int
    report: Report
    choices: tuple[Choice, ...]
    folded: bool = True
    beside: str = ""
    over: str = ""


@dataclass
class Asked:
    """An opened question, its part that is being answered, and what was answered before."""

    entry: InboxEntry
    request: Request
    answers: list[Answer] = field(default_factory=list)
    marked: set[int] = field(default_factory=set)
    over: str = ""

    @property
    def part(self) -> int:
        """Which part is being answered, from 0."""
        return len(self.answers)


@dataclass
class Driven:
    """An opened objective."""

    entry: InboxEntry
    state: EsmState
    activity: Activity
    over: str = ""

    @property
    def rests(self) -> bool:
        """Whether it goes on when it is resumed."""
        return self.state.objective is not None and self.state.objective.status in _RESTS


@dataclass
class Line:
    """A line that is being typed: what for, and what it says so far."""

    purpose: str
    label: str
    text: str = ""


Opened = Card | Asked | Driven


@dataclass
class Desk:
    """The whole screen. `sure` is the key that does something final when it is pressed again.

    `unattended` are the pools in which roles of objectives wait while no live runner takes them.
    """

    entries: tuple[InboxEntry, ...] = ()
    more: bool = False
    unattended: tuple[str, ...] = ()
    at: Place = ("", "")
    opened: Opened | None = None
    line: Line | None = None
    sure: str = ""
    note: str = ""
    bad: bool = False
    help: bool = False
    scroll: int = 0
    away: bool = False

    @property
    def selected(self) -> int:
        """The place of the selected entry; 0 when it is gone."""
        places = [place(entry) for entry in self.entries]
        return places.index(self.at) if self.at in places else 0

    def say(self, note: str, *, bad: bool = False) -> None:
        """Show a note until the next key."""
        self.note, self.bad = note, bad

    def refresh(self, entries: tuple[InboxEntry, ...], more: bool) -> None:
        """Take in what waits now; the selection stays with its entry, else with its place."""
        at = self.selected
        self.entries, self.more = entries, more
        if entries and self.at not in [place(entry) for entry in entries]:
            self.at = place(entries[min(at, len(entries) - 1)])

    def show(self, opened: Opened) -> None:
        """Show what was opened."""
        self.opened, self.scroll = opened, 0

    def close(self) -> None:
        """Go back to the list."""
        self.opened, self.line, self.scroll = None, None, 0

    def press(self, key: Key) -> Action | None:
        """Do what a key does; returns what it decided, if anything."""
        if key.name == "interrupt":
            return Quit()
        sure, self.sure = self.sure, ""
        self.note = ""
        if self.help:
            self.help = False
            return None
        if self.line is not None:
            return self._type(self.line, key)
        if key == Key("text", "?"):
            self.help = True
            return None
        if isinstance(self.opened, Asked) and key in (Key("text", "j"), Key("text", "k")):
            return self._between_parts(self.opened, key)
        if self._moves(key):
            return None
        if self.opened is None:
            return self._in_list(key)
        if key in (Key("text", "q"), Key("text", "i")) or key.name == "left":
            self.close()
            return None
        if self.opened.over:
            self.say(f"{self.opened.over}; q goes back", bad=True)
            return None
        if isinstance(self.opened, Card):
            return self._on_card(self.opened, key, sure)
        if isinstance(self.opened, Asked):
            return self._on_question(self.opened, key, sure)
        return self._on_objective(self.opened, key)

    def _moves(self, key: Key) -> bool:
        steps = {"up": -1, "down": 1, "page up": -10, "page down": 10}
        step = steps.get(key.name, 0) or {"k": -1, "j": 1}.get(key.text if key.name == "text" else "", 0)
        if not step:
            return False
        if self.opened is not None:
            self.scroll = max(0, self.scroll + step)
        elif self.entries:
            self.at = place(self.entries[max(0, min(self.selected + step, len(self.entries) - 1))])
        return True

    def _in_list(self, key: Key) -> Action | None:
        if key == Key("text", "q"):
            return Quit()
        if key.name in ("enter", "right") and self.entries:
            return Open(self.entries[self.selected])
        return None

    def _on_card(self, card: Card, key: Key, sure: str) -> Action | None:
        session = card.entry.session
        if key.name == "escape":
            if sure == "escape":
                return DismissCard(session, card.turn)
            self.sure = "escape"
            self.say("Esc again closes this card without an answer")
        elif key == Key("text", "0"):
            card.folded = not card.folded
        elif key == Key("text", "t"):
            self.line = Line("beside", "text beside the answer", card.beside)
        elif key.name == "text" and key.text in "123456789":
            number = int(key.text)
            if any(choice.number == number for choice in card.choices):
                return PickOption(session, card.turn, number, card.beside)
            self.say(f"this card has no option {number}", bad=True)
        return None

    def _on_question(self, asked: Asked, key: Key, sure: str) -> Action | None:
        session, request = asked.entry.session, asked.request
        if key.name == "escape":
            if sure == "escape":
                return CancelQuestion(session, request)
            self.sure = "escape"
            self.say("Esc again cancels this question; its agent is told so")
            return None
        if key == Key("text", "c") or (request.kind is RequestKind.FREEFORM and key.name == "enter"):
            self.line = Line("chat", "your reply")
            return None
        if request.kind is RequestKind.FREEFORM:
            return None
        if key == Key("text", "o"):
            self.line = Line("own", "your own answer")
            return None
        question = request.questions[asked.part]
        if key.name == "text" and key.text in "123456789":
            option = int(key.text) - 1
            if option >= len(question.options):
                self.say(f"there is no option {key.text}", bad=True)
                return None
            asked.marked = asked.marked ^ {option} if question.multiple else {option}
        elif key.name == "enter":
            return self._marked(asked)
        return None

    def _between_parts(self, asked: Asked, key: Key) -> Action | None:
        if key.text == "k":
            if asked.answers:
                asked.answers.pop()
                asked.marked.clear()
                self.scroll = 0
        elif asked.part + 1 < len(asked.request.questions):
            return self._marked(asked)
        return None

    def _marked(self, asked: Asked) -> Action | None:
        options = asked.request.questions[asked.part].options
        if not asked.marked:
            self.say("choose with a digit first, or answer in your own words with o", bad=True)
            return None
        return self._answered(asked, Answer(tuple(options[at].label for at in sorted(asked.marked))))

    def _answered(self, asked: Asked, answer: Answer) -> Action | None:
        asked.answers.append(answer)
        asked.marked.clear()
        self.scroll = 0
        if len(asked.answers) < len(asked.request.questions):
            return None
        answers = tuple(asked.answers)
        # Should it be refused, the last part is asked again, as it was marked.
        asked.answers.pop()
        return Reply(asked.entry.session, asked.request, answers, "")

    def _on_objective(self, driven: Driven, key: Key) -> Action | None:
        session = driven.entry.session
        if key.name != "text":
            return None
        if key.text == "g":
            self.line = Line("guide", "guidance")
            return None
        what = {"p": "resume" if driven.rests else "pause", "r": "run", "e": "edit"}.get(key.text)
        return Steer(session, what) if what else None

    def _type(self, line: Line, key: Key) -> Action | None:
        if key.name in ("text", "paste"):
            line.text += key.text
        elif key.name == "backspace":
            line.text = line.text[:-1]
        elif key.name == "clear":
            line.text = ""
        elif key.name == "escape":
            self.line = None
        elif key.name == "enter":
            return self._typed(line)
        return None

    def _typed(self, line: Line) -> Action | None:
        text, opened = line.text, self.opened
        if isinstance(opened, Card):
            opened.beside, self.line = text, None
            return None
        if not text.strip():
            self.say("a blank text says nothing; write something, or Esc", bad=True)
            return None
        self.line = None
        if isinstance(opened, Asked):
            if line.purpose == "chat":
                return Reply(opened.entry.session, opened.request, (), text)
            return self._answered(opened, Answer(custom=text))
        return Steer(opened.entry.session, "guide", text) if opened is not None else None


def place(entry: InboxEntry) -> Place:
    """Return what an entry is known by."""
    return (entry.kind, entry.session)
