"""What becomes of turns, as text for a person or as JSON for a script; each function returns the exit code."""

from typing import TYPE_CHECKING, Final

from msgspec import Raw

from turngate.cli.commands import NOT_OK, OK
from turngate.cli.output import print_json
from turngate.cli.times import at
from turngate.terminal import Terminal
from turngate_protocol.report import RenderOptions, Report, decode
from turngate_protocol.report.session import EndingOutcome, Outcome, SessionTurns, Turn

if TYPE_CHECKING:
    from turngate_contracts.messages import AnswerRecorded, EndingVerdict, TurnFound, Verdict
    from turngate_protocol.report.session import Answer, AttemptVerdict, Ending, PastAttempt

_LOOKS: Final = {
    "accepted": "green",
    "settled": "green",
    "ended": "green",
    "rejected": "red",
    "exhausted": "red",
    "unreported": "red",
    "reminder": "yellow",
}


def verdict(told: "Verdict", as_json: bool) -> int:
    """Show the verdict of an attempt."""
    code = OK if told.outcome is Outcome.ACCEPTED else NOT_OK
    if as_json:
        print_json(told)
        return code
    terminal = Terminal()
    terminal.line(
        _look(terminal, told.outcome.value), f"  session {told.session}, turn {told.turn}, attempt {told.attempt}"
    )
    if told.text:
        terminal.text(told.text)
    _card(terminal, told.report, f"session {told.session}, turn {told.turn}")
    if told.choices:
        terminal.line(f"it waits for an answer: turngate turn answer {told.session} {told.turn} NUMBER")
    return code


def ending(told: "EndingVerdict", as_json: bool) -> int:
    """Show what follows from the end of a turn."""
    if as_json:
        print_json(told)
    else:
        terminal = Terminal()
        terminal.line(
            _look(terminal, told.outcome.value), f"  session {told.session}, turn {told.turn}, ending {told.ending}"
        )
        if told.text:
            terminal.text(told.text)
    return OK if told.outcome is EndingOutcome.SETTLED else NOT_OK


def found(told: "TurnFound", as_json: bool) -> int:
    """Show what became of the one attempt or ending that was asked for; exit code 1 when that is unknown."""
    known = told.verdict is not None or told.ended is not None
    if as_json:
        print_json(told)
        return OK if known else NOT_OK
    terminal = Terminal()
    if told.verdict is not None:
        verdict(told.verdict, as_json=False)
    elif told.ended is not None:
        ending(told.ended, as_json=False)
    else:
        terminal.line(told.refused.message if told.refused else f"session {told.state.session} has not heard of it")
    return OK if known else NOT_OK


def answered(told: "AnswerRecorded", as_json: bool) -> int:
    """Show the answer that stands."""
    if as_json:
        print_json(told)
        return OK
    terminal = Terminal()
    again = " (recorded before)" if told.repeated else ""
    terminal.line(terminal.paint("answered", "green", "bold"), f"  session {told.session}, turn {told.turn}{again}")
    _answer(terminal, told.answer)
    return OK


def session(told: "TurnFound", turn: int, *, as_json: bool, expand_all: bool) -> int:
    """Show a session, or one turn of it; exit code 1 when that turn is unknown."""
    state = told.state
    known = not turn or turn == state.current.turn or any(past.turn == turn for past in state.history)
    if as_json:
        print_json(told)
        return OK if known else NOT_OK
    terminal = Terminal()
    terminal.line(terminal.paint(f"session {state.session}", "bold"), f"  pool {state.pool}, revision {told.revision}")
    if not known:
        terminal.line(f"turn {turn} is not known; the newest is turn {state.current.turn}")
        return NOT_OK
    if turn in (0, state.current.turn):
        _current(terminal, state, expand_all)
    if turn != state.current.turn:
        _history(terminal, state, turn)
    return OK


def _current(terminal: Terminal, state: SessionTurns, expand_all: bool) -> None:
    turn = state.current
    facts = [f"began {at(turn.began_at)}", f"runner {turn.runner}"]
    facts += ["changed something"] if turn.mutated else []
    facts += ["used tools"] if turn.used_tools else []
    terminal.line(f"turn {turn.turn}: ", _look(terminal, turn.phase.value), f"  {', '.join(facts)}")
    for line in _outcomes(turn.attempts, turn.endings):
        terminal.line(f"  {line}")
    _card(terminal, turn.report, f"session {state.session}, turn {turn.turn}", expand_all)
    _standing(terminal, state, turn)
    for prompt in state.held:
        terminal.line("held back: ", terminal.paint(prompt.text, "dim"), f" ({prompt.kind} {prompt.id})")
    for prompt in state.outgoing:
        terminal.line("going out: ", terminal.paint(prompt.text, "dim"), f" ({prompt.kind} {prompt.id})")


def _standing(terminal: Terminal, state: SessionTurns, turn: Turn) -> None:
    if turn.answer is not None:
        _answer(terminal, turn.answer)
    elif turn.dismissal is not None:
        terminal.line(f"dismissed by {turn.dismissal.actor} at {at(turn.dismissal.at)}")
    elif state.waiting:
        terminal.line(
            terminal.paint("waits", "yellow", "bold"),
            f" for an answer: turngate turn answer {state.session} {turn.turn} NUMBER",
        )


def _answer(terminal: Terminal, answer: "Answer") -> None:
    key = f"{answer.number}. " if answer.number else ""
    terminal.line(
        "answer: ",
        terminal.paint(f"{key}{answer.label}", "bold"),
        f" ({answer.block}/{answer.option}, {answer.effect}) by {answer.actor} at {at(answer.at)}",
    )
    if answer.text:
        _indented(terminal, f"beside it: {answer.text}")
    if answer.prompt:
        terminal.line(f"  its prompt is {answer.prompt}, on its way to the pool")
    if answer.editor_text:
        _indented(terminal, f"to edit: {answer.editor_text}")


def _indented(terminal: Terminal, text: str) -> None:
    # A person's or a model's own line must not look like one of ours.
    terminal.text("\n".join(f"  {line}" for line in text.split("\n")))


def _history(terminal: Terminal, state: SessionTurns, only: int) -> None:
    rows = []
    for past in reversed(state.history):
        if only in (0, past.turn):
            outcomes = "; ".join(_outcomes(past.attempts, past.endings))
            answer = f"{past.answer.label} by {past.answer.actor}" if past.answer else ""
            rows.append([str(past.turn), _look(terminal, past.phase.value), at(past.began_at), outcomes, answer])
    if rows:
        terminal.line("earlier turns")
        terminal.table(["turn", "phase", "began", "outcomes", "answer"], rows, right={0})


def _outcomes(attempts: "tuple[AttemptVerdict | PastAttempt, ...]", endings: "tuple[Ending, ...]") -> list[str]:
    lines = []
    for attempt in attempts:
        plural = "" if attempt.problem_count == 1 else "s"
        problems = f" with {attempt.problem_count} problem{plural}" if attempt.problem_count else ""
        lines.append(f"attempt {attempt.attempt} {attempt.outcome.value}{problems}")
    return lines + [f"ending {known.ending} {known.outcome.value}" for known in endings]


def _card(terminal: Terminal, raw: Raw, title: str, expand_all: bool = False) -> None:
    report = decode(bytes(raw))
    if isinstance(report, Report):
        terminal.card(report, RenderOptions(expand_all=expand_all), title=title)


def _look(terminal: Terminal, word: str) -> str:
    return terminal.paint(word, _LOOKS.get(word, "yellow"), "bold")
