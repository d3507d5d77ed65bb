"""Dead letters as text for a person or as JSON for a script: a stranger's body is shown visible and bounded."""

from typing import TYPE_CHECKING, Final

from turngate.cli.output import print_json
from turngate.cli.times import at
from turngate.terminal import Terminal

if TYPE_CHECKING:
    from turngate_contracts.dead import DeadDecided, DeadEntry, DeadFound, DeadLetter, DeadPage

SHOWN_BYTES: Final = 4 * 1024
"""Bytes of a text that are shown."""
SHOWN_HEX: Final = 512
"""Bytes of anything else that are shown."""
_ROW: Final = 16
_LOOKS: Final = {"waiting": "yellow", "retrying": "yellow", "retried": "green", "dropped": "dim"}


def page(told: "DeadPage", *, as_json: bool, first: bool, hint: bool) -> None:
    """Show a page of letters; with a `hint` it says how to go on."""
    if as_json:
        print_json(told)
        return
    terminal = Terminal()
    rows = [
        [
            e.letter,
            terminal.paint(e.status.value, _LOOKS[e.status.value]),
            at(e.at),
            e.reason.value,
            str(e.deliveries or ""),
            e.session,
            e.message,
        ]
        for e in told.entries
    ]
    if rows:
        terminal.table(["letter", "status", "died", "reason", "deliveries", "session", "why"], rows, right={4})
    elif first and not told.more:
        terminal.line("no dead letters")
    if told.more and hint:
        terminal.line(f"there is more: turngate dead list --cursor {told.cursor}")


def letter(told: "DeadFound", *, as_json: bool) -> None:
    """Show a letter with its body."""
    if as_json:
        print_json(told)
        return
    terminal, dead = Terminal(), told.letter
    terminal.line(
        terminal.paint(dead.letter, "bold"), "  ", terminal.paint(dead.status.value, _LOOKS[dead.status.value])
    )
    terminal.line(f"reason: {dead.reason.code.value}: {dead.reason.message}")
    times = "once" if dead.deliveries == 1 else f"{dead.deliveries} times"
    often = f", delivered {times}" if dead.deliveries else ""
    consumer = f" to {dead.consumer}" if dead.consumer and often else ""
    terminal.line(f"origin: {dead.stream}, sequence {dead.sequence}, subject {dead.subject}{often}{consumer}")
    terminal.line(f"found: {at(dead.at)}, by {dead.found_by.value}")
    for name, value in dead.headers.items():
        terminal.line(f"header: {name}: {value}")
    if dead.first:
        terminal.line(f"retry of: {dead.first}")
    _decision(terminal, told.letter)
    _body(terminal, dead)


def decided(told: "DeadDecided", *, as_json: bool) -> None:
    """Show what became of a letter."""
    if as_json:
        print_json(told)
        return
    terminal, entry = Terminal(), told.entry
    before = " before" if told.already else ""
    terminal.line(
        terminal.paint(entry.status.value, _LOOKS[entry.status.value], "bold"), f"{before}  letter {entry.letter}"
    )
    _decision(terminal, entry)


def _decision(terminal: Terminal, of: "DeadLetter | DeadEntry") -> None:
    if of.decided is None:
        return
    went = f", sequence {of.decided.sequence}" if of.decided.sequence else ""
    why = f": {of.decided.why}" if of.decided.why else ""
    terminal.line(f"decided: {of.status.value} by {of.decided.by} at {at(of.decided.at)}{went}{why}")


def _body(terminal: Terminal, dead: "DeadLetter") -> None:
    if not dead.body:
        terminal.line(f"body: {dead.size} bytes, not kept" if dead.size else "body: empty")
        return
    kept = "" if len(dead.body) == dead.size else f", the first {len(dead.body)} of them kept"
    text = as_text(dead.body[:SHOWN_BYTES])
    shown = min(len(dead.body), SHOWN_BYTES if text is not None else SHOWN_HEX)
    rest = "" if shown == len(dead.body) else f"; the first {shown} shown"
    terminal.line(f"body: {dead.size} bytes{kept}{rest}")
    for line in hexadecimal(dead.body[:shown]) if text is None else text.split("\n"):
        # Indented, so that a stranger's line does not look like one of ours.
        terminal.line("  ", line)


def as_text(body: bytes) -> str | None:
    """Return a body that is UTF-8 text, also where it was cut within a character; None for anything else."""
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        if error.start < len(body) - 3 or error.reason != "unexpected end of data":
            return None
        text = body[: error.start].decode()
    controls = sum(1 for c in text if ord(c) < 32 and c not in "\t\n\r")
    return None if controls > len(text) / 10 else text


def hexadecimal(body: bytes) -> list[str]:
    """Return a body as rows of an offset and 16 bytes."""
    return [f"{start:08x}  {body[start : start + _ROW].hex(' ')}" for start in range(0, len(body), _ROW)]
