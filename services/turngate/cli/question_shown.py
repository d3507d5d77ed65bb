"""Questions and what becomes of them, as text for a person or as JSON for a script; most return the exit code.

Everything that a model or a person wrote is made visible before a terminal gets it, and stands indented, so that it
can't pass for a line of ours.
"""

import time
from typing import TYPE_CHECKING, Final

from turngate.cli.commands import NOT_OK, OK
from turngate.cli.output import print_json
from turngate.cli.times import at
from turngate.terminal import Terminal
from turngate_contracts.errors import ErrorCode, Refusal
from turngate_protocol.question import DecidedBy, OutcomeKind, Request, RequestKind, WaitForEver
from turngate_protocol.spans import span

if TYPE_CHECKING:
    from turngate_contracts.messages import InboxPage
    from turngate_contracts.questions import QuestionAsked, QuestionFound, QuestionOutcome
    from turngate_protocol.inbox import InboxEntry
    from turngate_protocol.question import Lineage, Outcome, PendingQuestion

_LOOKS: Final = {
    OutcomeKind.ANSWERED: "green",
    OutcomeKind.CHAT: "green",
    OutcomeKind.CANCELLED: "yellow",
    OutcomeKind.EXPIRED: "yellow",
}


def asked(told: "QuestionAsked", as_json: bool) -> int:
    """Show what became of a question that was asked; exit code 1 when nothing was."""
    code = OK if told.denied is None else NOT_OK
    if as_json:
        print_json(told)
        return code
    terminal = Terminal()
    if told.denied is not None:
        terminal.line(terminal.paint("denied", "red", "bold"), f"  session {told.session}")
        _indented(terminal, told.denied.reason)
    elif told.pending is not None:
        _waits(terminal, told.session)
        _facts(terminal, told.pending)
    elif told.outcome is not None:
        _outcome(terminal, told.session, told.outcome)
    return code


def waited(outcome: "Outcome", as_json: bool) -> int:
    """Show the outcome that was waited for; exit code 1 when it is no answer."""
    if as_json:
        print_json(outcome)
    else:
        _outcome(Terminal(), "", outcome)
    return OK if outcome.resolution is not None else NOT_OK


def found(told: "QuestionFound", request_id: str, as_json: bool) -> int:
    """Show what a session waits for and how its last question came out; exit code 1 when there is neither."""
    waits = told.pending is not None and request_id in ("", told.pending.request.id)
    code = OK if waits or told.outcome is not None else NOT_OK
    if as_json:
        print_json(told)
        return code
    terminal = Terminal()
    terminal.line(terminal.paint(f"session {told.session}", "bold"), f"  pool {told.pool}, revision {told.revision}")
    if waits and told.pending is not None:
        _waits(terminal, told.session)
        _facts(terminal, told.pending)
        draw(terminal, told.pending.request)
    if told.outcome is not None:
        _outcome(terminal, "", told.outcome)
    if code != OK:
        what = f"the question {request_id}" if request_id else "no question"
        terminal.line(f"{what} {'is not known' if request_id else 'waits'} here")
    return code


def pending(page: "InboxPage", as_json: bool, *, first: bool) -> None:
    """Show a page of the questions that wait."""
    if as_json:
        print_json(page)
        return
    terminal = Terminal()
    if page.entries:
        now = time.time_ns() // 1_000_000
        head = ["waits", "session", "parts", "expires in", "for", "runner", "question"]
        terminal.table(head, [_row(entry, now) for entry in page.entries], right={2})
    elif first:
        terminal.line("no question waits for a person")


def decided(told: "QuestionOutcome", request: Request, as_json: bool) -> int:
    """Show the decision that a command made."""
    if as_json:
        print_json(told)
        return OK
    _outcome(Terminal(), told.session, told.outcome, repeated=told.repeated, request=request)
    return OK


def repeated(session: str, outcome: "Outcome", as_json: bool) -> int:
    """Show a decision that this very operation had made before."""
    from turngate_contracts.questions import QuestionOutcome

    if as_json:
        print_json(QuestionOutcome(session, outcome, repeated=True))
    else:
        _outcome(Terminal(), session, outcome, repeated=True)
    return OK


def nothing_waits(told: "QuestionFound", request_id: str) -> Refusal:
    """Return the error of a decision that comes too late, or for nothing."""
    outcome = told.outcome
    if request_id and outcome is not None:
        return Refusal(
            ErrorCode.ALREADY_RESOLVED,
            f"the question {outcome.request_id} was decided before by {_by(outcome)} ({outcome.kind.value})",
            request_id=outcome.request_id,
            kind=outcome.kind.value,
            by=outcome.by,
            at=outcome.at,
        )
    if request_id:
        message = f"the question {request_id} does not wait in session {told.session}; `turngate question pending`"
        return Refusal(ErrorCode.NO_PENDING, f"{message} lists those that do", request_id=request_id)
    last = "" if outcome is None else f"; its last one was decided by {_by(outcome)} ({outcome.kind.value})"
    return Refusal(ErrorCode.NO_PENDING, f"session {told.session} waits for no answer{last}", session=told.session)


def draw(terminal: Terminal, request: Request) -> None:
    """Draw a whole question: each part with its options, what they mean, and their previews."""
    draw_head(terminal, request)
    for number in range(1, len(request.questions) + 1):
        draw_question(terminal, request, number)


def draw_head(terminal: Terminal, request: Request) -> None:
    """Draw what stands above the parts: the id, and the text of a question that has no parts."""
    terminal.line(terminal.paint(f"question {request.id}", "dim"))
    if request.kind is RequestKind.FREEFORM:
        _indented(terminal, request.prompt, "bold")


def draw_question(terminal: Terminal, request: Request, number: int) -> None:
    """Draw one part of a question; parts count from 1."""
    question = request.questions[number - 1]
    how = "choose any number" if question.multiple else "choose one"
    place = f"{number} of {len(request.questions)}  " if len(request.questions) > 1 else ""
    terminal.line(terminal.paint(f"{place}{question.header}", "bold", "cyan"), f"  ({how})")
    _indented(terminal, question.question, "bold")
    for place_of, option in enumerate(question.options, 1):
        terminal.line("  ", terminal.paint(f"{place_of}.", "bold", "yellow"), " ", terminal.paint(option.label, "bold"))
        _indented(terminal, option.description, indent="     ")
        if option.preview:
            _indented(terminal, option.preview, "dim", indent="     │ ")


def _waits(terminal: Terminal, session: str) -> None:
    terminal.line(terminal.paint("waits", "yellow", "bold"), f"  for an answer: turngate question answer {session}")


def _facts(terminal: Terminal, waiting: "PendingQuestion") -> None:
    facts = [f"asked {at(waiting.asked_at)}", f"runner {waiting.runner}"]
    facts += [f"turn {waiting.turn}"] if waiting.turn else []
    facts += [f"for {_lineage(waiting.lineage)}"] if waiting.lineage else []
    if waiting.expires_at is not None and not isinstance(waiting.policy, WaitForEver):
        facts.append(f"decided by its policy at {at(waiting.expires_at)}")
    terminal.line(f"  {', '.join(facts)}")


def _outcome(
    terminal: Terminal, session: str, outcome: "Outcome", *, repeated: bool = False, request: Request | None = None
) -> None:
    again = " (decided before)" if repeated else ""
    where = f"  session {session}" if session else ""
    terminal.line(
        terminal.paint(outcome.kind.value, _LOOKS[outcome.kind], "bold"),
        f"{where}  question {outcome.request_id}, by {_by(outcome)} at {at(outcome.at)}{again}",
    )
    if outcome.resolution is None:
        return
    if outcome.resolution.chat:
        _indented(terminal, outcome.resolution.chat)
    shown = request or outcome.request
    for place, answer in enumerate(outcome.resolution.answers):
        header = f"{shown.questions[place].header}: " if shown is not None else f"{place + 1}: "
        _indented(terminal, header + (answer.custom or ", ".join(answer.selections)))


def _by(outcome: "Outcome") -> str:
    return outcome.by if outcome.decided_by is DecidedBy.PERSON else "its policy"


def _row(entry: "InboxEntry", now: int) -> list[str]:
    left = span(entry.expires_at - now) if entry.expires_at else ""
    lineage = f"{entry.parent_session} {entry.task}".strip()
    return [span(now - entry.since), entry.session, str(entry.questions), left, lineage, entry.runner, entry.title]


def _lineage(lineage: "Lineage") -> str:
    task = f" task {lineage.task}" if lineage.task else ""
    return f"session {lineage.parent_session}{task}"


def _indented(terminal: Terminal, text: str, *styles: str, indent: str = "  ") -> None:
    for line in text.split("\n"):
        terminal.line(indent, terminal.paint(line, *styles))
