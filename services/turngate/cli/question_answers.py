"""How a person's answer is read: from arguments, from JSON, or in a dialogue on a terminal.

What does not fit the question is refused here with its reason, before anything is sent; the service checks it again. A
dialogue says the reason and asks once more. Numbers may come in any order, labels are what they say exactly, and a text
of one's own never passes for an option.
"""

import argparse
import re
import sys
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

import msgspec
from msgspec import Struct

from turngate.cli import question_shown
from turngate.cli.commands import UsageError
from turngate.cli.inputs import read_bytes
from turngate.terminal import Terminal
from turngate_contracts.errors import ErrorCode, TurngateError, shown
from turngate_protocol.question import Answer, InvalidQuestionError, Question, Request, RequestKind
from turngate_protocol.question.model import CHAT_BYTES, CUSTOM_BYTES
from turngate_protocol.question.spec import check_text
from turngate_protocol.text import is_blank, trim

T = TypeVar("T")

CHAT: Final = "/chat"
"""What a person types to reply in chat instead of answering."""
_NUMBERS: Final = re.compile(r"[0-9]{1,3}(?:[\s,]+[0-9]{1,3})*", re.ASCII)

ReadLine = Callable[[], str]
"""Returns a line that a person typed, with its end; empty where the input has ended."""


class Reply(Struct, frozen=True, forbid_unknown_fields=True):
    """A person's reply: an answer to each part of a question, or one chat text."""

    answers: tuple[Answer, ...] = ()
    chat: str = ""


class Misfit(TurngateError):
    """An answer that does not fit its question."""

    code = ErrorCode.INVALID


def check_one_way(args: argparse.Namespace) -> None:
    """Check that a reply is given in one way at most.

    Raises:
        UsageError: it is given in several.
    """
    if sum(map(bool, (args.answers, args.chat, args.source))) > 1:
        raise UsageError("ANSWER, --chat and --from exclude each other; give one of them")


def answers_of(text: str) -> tuple[Answer, ...]:
    """Return answers that are given as JSON; none for an empty text.

    Raises:
        UsageError: they are no answers.
    """
    return _decoded(text.encode(), tuple[Answer, ...], '[{"selections": ["A"]}, …]') if text else ()


def read_reply(source: str) -> Reply:
    """Return the reply that a file, or standard input for `-`, holds as JSON.

    Raises:
        UsageError: it can't be read, or holds none.
    """
    return _decoded(read_bytes(source), Reply, '{"answers": [{"selections": ["A"]}, {"custom": "…"}]} or {"chat": "…"}')


def reply_to(request: Request, args: argparse.Namespace) -> Reply:
    """Return the reply that the command line gives, or else the one that a dialogue on the terminal comes to.

    Raises:
        Misfit: the answers do not fit the question.
        UsageError: there are none, and no terminal to ask on.
    """
    if args.chat:
        return Reply(chat=args.chat)
    if args.answers:
        return Reply(from_arguments(request, args.answers))
    if sys.stdin is None or not sys.stdin.isatty():
        raise UsageError("there is no terminal to ask on; give an ANSWER for each part of the question, or --chat")
    # A script that reads the outcome must not read the dialogue.
    return converse(request, Terminal(sys.stderr if args.json else sys.stdout), sys.stdin.readline)


def from_arguments(request: Request, given: Sequence[str]) -> tuple[Answer, ...]:
    """Return the answers that a script gives, one for each part of the question.

    Raises:
        Misfit: they do not fit; the error says which one and why.
    """
    if request.kind is RequestKind.FREEFORM:
        raise Misfit("this question is answered in free text: use --chat TEXT")
    if len(given) != len(request.questions):
        raise Misfit(f"the question has {len(request.questions)} parts; give an answer to each, not {len(given)}")
    answers = []
    for number, (question, text) in enumerate(zip(request.questions, given, strict=True), 1):
        try:
            answers.append(parse(question, text, free=False))
        except Misfit as error:
            raise Misfit(f"answer {number}: {error.message}", answer=number) from None
    return tuple(answers)


def parse(question: Question, text: str, *, free: bool) -> Answer:
    """Return the answer that a text means.

    Args:
        question: what is answered.
        text: numbers of options, the label of one, or a text of one's own after `=`.
        free: whether any other text is an answer of one's own too.

    Raises:
        Misfit: it is no answer to this question.
    """
    if text.startswith("="):
        return _custom(text[1:])
    labels = [option.label for option in question.options]
    if _NUMBERS.fullmatch(trim(text)):
        return Answer(tuple(labels[place] for place in _places(question, trim(text))))
    if text in labels:
        return Answer((text,))
    if free:
        return _custom(text)
    raise Misfit(f"{shown(text)} is no option; give a number from 1 to {len(labels)}, a label, or =TEXT")


def converse(request: Request, terminal: Terminal, read_line: ReadLine) -> Reply:
    """Ask a person until the whole question is answered.

    Raises:
        UsageError: the input ended before.
    """
    question_shown.draw_head(terminal, request)
    if request.kind is RequestKind.FREEFORM:
        return _chat(terminal, read_line)
    answers = []
    for number, question in enumerate(request.questions, 1):
        question_shown.draw_question(terminal, request, number)
        answer = _dialogue(question, terminal, read_line)
        if answer is None:
            return _chat(terminal, read_line)
        answers.append(answer)
    return Reply(tuple(answers))


def _dialogue(question: Question, terminal: Terminal, read_line: ReadLine) -> Answer | None:
    """Ask until one part is answered; None when the person wants to reply in chat."""
    several = ", several as 1,3" if question.multiple else ""
    hint = f"1 to {len(question.options)}{several}, or your own answer; {CHAT} to reply in chat"
    while True:
        line = _ask(terminal, hint, read_line)
        if line == CHAT:
            return None
        try:
            return parse(question, line, free=True)
        except Misfit as error:
            terminal.line(terminal.paint(error.message, "red"))


def _chat(terminal: Terminal, read_line: ReadLine) -> Reply:
    while True:
        line = _ask(terminal, "your reply", read_line)
        try:
            return Reply(chat=_said(line, CHAT_BYTES))
        except Misfit as error:
            terminal.line(terminal.paint(error.message, "red"))


def _ask(terminal: Terminal, hint: str, read_line: ReadLine) -> str:
    terminal.stream.write(terminal.paint(f"{hint}: ", "bold"))
    terminal.stream.flush()
    line = read_line()
    if not line:
        terminal.line()
        raise UsageError("the input ended before the question was answered; nothing was sent")
    return trim(line)


def _places(question: Question, text: str) -> list[int]:
    numbers = [int(number) for number in re.split(r"[\s,]+", text)]
    for number in numbers:
        if not 1 <= number <= len(question.options):
            raise Misfit(f"there is no option {number}; give 1 to {len(question.options)}")
    if len(set(numbers)) != len(numbers):
        raise Misfit(f"{shown(text)} names an option twice; name each once")
    if len(numbers) > 1 and not question.multiple:
        raise Misfit(f"{shown(text)} names several options; this question takes one")
    return sorted(number - 1 for number in numbers)


def _custom(text: str) -> Answer:
    return Answer(custom=_said(text, CUSTOM_BYTES))


def _said(text: str, limit: int) -> str:
    if is_blank(text):
        raise Misfit("a blank text is no answer; write something, or cancel the question")
    try:
        check_text("the text", text, limit)
    except InvalidQuestionError as error:
        raise Misfit(error.message) from None
    return text


def _decoded(data: bytes, kind: type[T], example: str) -> T:
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UsageError(f"the reply is not what it should be ({shown(str(error))}); write {example}") from None
