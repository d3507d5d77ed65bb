"""The screen as rows of a terminal: the list, or what was opened, between a head line and a foot line.

Everything that a model or a person wrote goes through the terminal's escaping; rows are cut or wrapped to its width.
"""

import io
from typing import Final

from turngate.cli import question_shown
from turngate.cli.esm_shown import Seen, draw, panel
from turngate.cli.watching.desk import Asked, Card, Desk, Driven
from turngate.terminal import Terminal
from turngate_protocol.inbox import InboxEntry
from turngate_protocol.question import RequestKind
from turngate_protocol.report import RenderOptions
from turngate_protocol.spans import span

LEAST_ROWS: Final = 6

_HELP: Final = """\
in the list
  j k or arrows   choose           Enter  open           q  quit
on a card
  1 to 9   answer with that option
  t        add a text that goes beside the answer
  0        fold and unfold the details
  Esc Esc  close it without an answer
on a question
  1 to 9   choose                          Enter    send
  o        answer in your own words        c        reply in chat
  j k      the next and the part before    Esc Esc  cancel it
on an objective
  p  pause and resume    r  run now    g  guide    e  edit its text
everywhere
  q i  back    arrows  scroll    ?  these keys    ^C  quit"""


def rows(desk: Desk, now: int, columns: int, height: int, *, colour: bool) -> list[str]:
    """Return the rows of the screen, `height` at most.

    Args:
        desk: what is on it.
        now: milliseconds since the epoch.
        columns: the terminal's width.
        height: the terminal's height.
        colour: whether it has colours.
    """
    terminal = Terminal(io.StringIO(), colour=colour, width=columns)
    height = max(height, LEAST_ROWS)
    _head(terminal, desk)
    head = _taken(terminal)
    _foot(terminal, desk)
    foot = _taken(terminal)
    room = height - len(head) - len(foot)
    body = _body(terminal, desk, now, room)
    return [*head, *body, *[""] * (room - len(body)), *foot]


def _body(terminal: Terminal, desk: Desk, now: int, room: int) -> list[str]:
    if desk.help:
        terminal.text(_HELP)
        return _taken(terminal)[:room]
    if desk.opened is None:
        return _list(terminal, desk, now, room)
    if isinstance(desk.opened, Card):
        _card(terminal, desk.opened)
    elif isinstance(desk.opened, Asked):
        _question(terminal, desk.opened)
    else:
        draw(terminal, panel(Seen(desk.opened.state, desk.opened.activity), now))
    lines = _taken(terminal)
    desk.scroll = min(desk.scroll, max(0, len(lines) - room))
    return lines[desk.scroll : desk.scroll + room]


def _head(terminal: Terminal, desk: Desk) -> None:
    count = f"{len(desk.entries)}{'+' if desk.more else ''}"
    what = f"{count} wait for a person" if desk.entries != () else "nothing waits for a person"
    if count == "1":
        what = "1 waits for a person"
    away = terminal.paint("  the server is away: nothing is sent", "on_red", "bold") if desk.away else ""
    terminal.line(terminal.paint(" turngate watch ", "inverse", "bold"), " ", terminal.paint(what, "bold"), away)
    if desk.unattended and desk.opened is None:
        told = f" objectives wait for a runner: turngate runner --pool {desk.unattended[0]} -- COMMAND"
        more = f" (and {len(desk.unattended) - 1} more)" if len(desk.unattended) > 1 else ""
        terminal.line(terminal.paint(_one_line(told + more, terminal.width), "yellow"))


def _list(terminal: Terminal, desk: Desk, now: int, room: int) -> list[str]:
    if not desk.entries:
        terminal.line()
        terminal.line("  Cards, questions and objectives that need a person appear here by themselves.")
        return _taken(terminal)[:room]
    # One row for the head of the table; the selected entry stays in sight.
    space = max(1, room - 1)
    first = max(0, min(desk.selected - space // 2, len(desk.entries) - space))
    shown = desk.entries[first : first + space]
    table = [_row(terminal, entry, now, chosen=first + at == desk.selected) for at, entry in enumerate(shown)]
    terminal.table(["", "since", "kind", "session", "pool", "title"], table)
    return _taken(terminal)[:room]


def _row(terminal: Terminal, entry: InboxEntry, now: int, *, chosen: bool) -> list[str]:
    mark = terminal.paint("▸", "green", "bold") if chosen else " "
    title = terminal.paint(entry.title, "bold") if chosen else entry.title
    return [mark, span(now - entry.since), entry.kind, entry.session, entry.pool, title]


def _card(terminal: Terminal, card: Card) -> None:
    terminal.card(
        card.report, RenderOptions(expand_all=not card.folded), title=f"session {card.entry.session}, turn {card.turn}"
    )
    if card.beside:
        terminal.line(terminal.paint("beside the answer: ", "dim"), card.beside)


def _question(terminal: Terminal, asked: Asked) -> None:
    question_shown.draw_head(terminal, asked.request)
    if asked.request.kind is RequestKind.FREEFORM:
        return
    for at, answer in enumerate(asked.answers):
        header = asked.request.questions[at].header
        terminal.line(terminal.paint(f"  {header}: ", "dim"), answer.custom or ", ".join(answer.selections))
    question_shown.draw_question(terminal, asked.request, asked.part + 1)
    marked = ", ".join(str(at + 1) for at in sorted(asked.marked)) or "nothing yet"
    terminal.line(terminal.paint(f"  chosen: {marked}", "green", "bold"))


def _foot(terminal: Terminal, desk: Desk) -> None:
    note = desk.opened.over if desk.opened is not None and desk.opened.over and not desk.note else desk.note
    if note:
        bad = desk.bad or not desk.note
        terminal.line(terminal.paint(_one_line(note, terminal.width), "red" if bad else "green", "bold"))
    else:
        terminal.line()
    if desk.line is not None:
        # The end of what is typed is what a person looks at.
        left = max(8, terminal.width - len(desk.line.label) - 4)
        typed = desk.line.text.replace("\n", " ⏎ ")[-left:]
        terminal.line(terminal.paint(f"{desk.line.label}: ", "bold"), typed, terminal.paint(" ", "inverse"))
    else:
        terminal.line(terminal.paint(_one_line(_keys(desk), terminal.width), "dim"))


def _keys(desk: Desk) -> str:
    opened = desk.opened
    if opened is None:
        return "j k choose   Enter open   ? keys   q quit"
    if opened.over:
        return "q back"
    if isinstance(opened, Card):
        return "1-9 answer   t text   0 details   Esc Esc dismiss   q back   ? keys"
    if isinstance(opened, Driven):
        return f"p {'resume' if opened.rests else 'pause'}   r run now   g guide   e edit   q back   ? keys"
    if opened.request.kind is RequestKind.FREEFORM:
        return "c reply   Esc Esc cancel   q back   ? keys"
    send = "send" if opened.part + 1 == len(opened.request.questions) else "next"
    return f"1-9 choose  Enter {send}  o own words  c chat  Esc Esc cancel  q back  ? keys"


def _one_line(text: str, width: int) -> str:
    text = text.replace("\n", " ")
    return text if len(text) <= width else text[: width - 1] + "…"


def _taken(terminal: Terminal) -> list[str]:
    """Return what was written, and begin anew."""
    stream = terminal.stream
    assert isinstance(stream, io.StringIO)  # noqa: S101  `rows` made it
    lines = stream.getvalue().split("\n")[:-1]
    stream.seek(0)
    stream.truncate()
    return lines
