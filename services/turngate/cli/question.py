"""`turngate question`: what a runner asks, what waits for a person over all sessions, and how a person answers."""

import argparse
import secrets
import sys
from typing import TYPE_CHECKING, Any

from turngate.cli.commands import NOT_OK, OK, Parser, UsageError, number, seconds, utf8, whole_number
from turngate.cli.connected import add_connection, with_client
from turngate.cli.inputs import STDIN, read_bytes

if TYPE_CHECKING:
    from turngate.runner import TurnClient
    from turngate_contracts.questions import QuestionFound
    from turngate_protocol.question import Policy, Request, ToolCall

_MS = 1_000
_MAX_PAGE = 1000


def add_arguments(parser: Parser) -> None:
    """Add `ask`, `show`, `pending`, `answer` and `cancel`."""
    parser.explain(
        """
        Ask a session's user something as a runner does; list, show, answer and cancel
        questions as a person does. A question is decided once: whoever comes later is
        told who was first, with exit code 1.
        """,
        """
        turngate question pending
        turngate question answer s1
        turngate question ask s1 --text 'Shall I go on?' --wait
        """,
    )
    _add_ask(parser.add_command("ask", "ask a session's user something"))
    _add_show(parser.add_command("show", "print the question that a session waits for, and its last outcome"))
    _add_pending(parser.add_command("pending", "list the questions of all sessions that wait for a person"))
    _add_answer(parser.add_command("answer", "answer a question, in a dialogue or from a script"))
    _add_cancel(parser.add_command("cancel", "give a question up without an answer"))


def _add_ask(parser: Parser) -> None:
    parser.explain(
        """
        Ask what a model's call of `ask_user` asks: FILE holds its arguments as JSON. Or ask
        one question to be answered in free text. Asking the identical call again tells what
        became of it. Exit code 1 when nothing was asked, and with --wait when it came out
        without an answer.
        """,
        """
        turngate question ask s1 arguments.json --call call_17 --wait
        turngate question ask s1 --text 'Shall I go on?' --expires 3600 --else-chat 'Yes.'
        """,
    )
    parser.add_argument("session", metavar="SESSION", type=utf8, help="the session's id")
    parser.add_argument(
        "file", nargs="?", default=STDIN, metavar="FILE", help="the arguments; - or none: standard input"
    )
    parser.add_argument("--text", type=utf8, default="", metavar="TEXT", help="ask this in free text instead")
    parser.add_argument(
        "--call", type=utf8, default="", metavar="ID", help="the id of the tool call (default: a new one)"
    )
    parser.add_argument("--turn", type=whole_number, default=0, metavar="N", help="the turn in which it is asked")
    parser.add_argument(
        "--parent", type=utf8, default="", metavar="SESSION", help="the session that delegated this one"
    )
    parser.add_argument("--task", type=utf8, default="", metavar="ID", help="the task of that session")
    parser.add_argument(
        "--expires",
        type=seconds(0.001, 315_360_000),
        default=0.0,
        metavar="S",
        help="give it up after this many seconds",
    )
    parser.add_argument("--else-chat", type=utf8, default="", metavar="TEXT", help="or take this reply then")
    parser.add_argument(
        "--else-answers",
        type=utf8,
        default="",
        metavar="JSON",
        help='or take these answers then: [{"selections":["A"]}]',
    )
    parser.add_argument("--wait", action="store_true", help="wait until it is decided, and print the outcome")
    parser.add_json("what became of it; with --wait the outcome")
    add_connection(parser, "identity", "pool")
    parser.runs(_ask)


def _add_show(parser: Parser) -> None:
    parser.explain(
        """
        Print the question that a session waits for, with all that its options say, and
        how its last one came out. Exit code 1 when there is neither.
        """,
        """
        turngate question show s1
        turngate question show s1 q-3f9a1c0d77e24b518a6e90c2aa01b2c3 --json
        """,
    )
    parser.add_argument("session", metavar="SESSION", type=utf8, help="the session's id")
    parser.add_argument("request", metavar="REQUEST", nargs="?", type=utf8, default="", help="one question only")
    parser.add_json("the question that waits, and the outcome")
    add_connection(parser, "identity")
    parser.runs(_show)


def _add_pending(parser: Parser) -> None:
    parser.explain(
        "List the questions that wait for a person, over all sessions, oldest first.",
        """
        turngate question pending
        turngate question pending --limit 20 --cursor 4711    the next page
        turngate question pending --all --json
        """,
    )
    parser.add_argument(
        "--limit", type=number(1, _MAX_PAGE), default=100, metavar="N", help="questions a page, at most 1000"
    )
    parser.add_argument("--cursor", type=number(0, 2**53), default=0, metavar="N", help="go on where a page ended")
    parser.add_argument("--all", action="store_true", help="every page")
    parser.add_json("one line a page: {entries, cursor, more}")
    add_connection(parser, "identity")
    parser.runs(_pending)


def _add_answer(parser: Parser) -> None:
    parser.explain(
        """
        Answer the question that a session waits for. On a terminal and without further
        arguments it is a dialogue. A script gives one ANSWER for each part of the question,
        in order: the number of an option, several such as 1,3 where several may be chosen,
        an option's label, or =TEXT for an answer of one's own. Or a reply in chat instead of
        all answers, which is also how a question in free text is answered.
        """,
        """
        turngate question answer s1
        turngate question answer s1 2 1,3 '=neither, use the cache'
        turngate question answer s1 --chat 'What would you do?'
        turngate question answer s1 --from reply.json    {"answers": [{"selections": ["Disk"]}]}
        """,
    )
    parser.add_argument("session", metavar="SESSION", type=utf8, help="the session's id")
    parser.add_argument("answers", metavar="ANSWER", nargs="*", type=utf8, help="one for each part of the question")
    parser.add_argument("--chat", type=utf8, default="", metavar="TEXT", help="reply in chat instead")
    parser.add_argument(
        "--from", dest="source", default="", metavar="FILE", help="the reply as JSON; -: standard input"
    )
    _add_request(parser)
    parser.add_json("the outcome that stands")
    add_connection(parser, "identity")
    parser.runs(_answer)


def _add_cancel(parser: Parser) -> None:
    parser.explain(
        "Give up the question that a session waits for; its agent is told so.", "turngate question cancel s1"
    )
    parser.add_argument("session", metavar="SESSION", type=utf8, help="the session's id")
    _add_request(parser)
    parser.add_json("the outcome that stands")
    add_connection(parser, "identity")
    parser.runs(_cancel)


def _add_request(parser: Parser) -> None:
    parser.add_argument(
        "--request", type=utf8, default="", metavar="ID", help="only if this very question waits, and no later one"
    )
    parser.add_operation()


def _ask(args: argparse.Namespace) -> int:
    call, policy = _call(args), _policy(args)
    if args.task and not args.parent:
        raise UsageError("--task needs --parent, the session whose task it is")

    async def work(client: "TurnClient") -> int:
        from turngate.cli import question_shown
        from turngate_protocol.question import Lineage

        lineage = Lineage(args.parent, args.task) if args.parent else None
        asked = await client.ask(call, args.session, policy=policy, lineage=lineage, turn=args.turn)
        if not args.wait or asked.denied is not None:
            return question_shown.asked(asked, args.json)
        outcome = asked.outcome
        if outcome is None and asked.pending is not None:
            if not args.json:
                question_shown.asked(asked, as_json=False)
                sys.stdout.flush()
            outcome = await client.wait(asked.pending.request, args.session)
        return question_shown.waited(outcome, args.json) if outcome is not None else NOT_OK

    return with_client(args, work)


def _call(args: argparse.Namespace) -> "ToolCall":
    from turngate_contracts.codec import encode
    from turngate_protocol.question import ASK_USER, ASK_USER_TEXT, ToolCall

    call_id = args.call or f"cli-{secrets.token_hex(8)}"
    if args.text:
        if args.file != STDIN:
            raise UsageError("--text and FILE exclude each other; leave one out")
        return ToolCall(ASK_USER_TEXT, call_id, encode({"question": args.text}).decode())
    return ToolCall(ASK_USER, call_id, read_bytes(args.file).decode("utf-8", "surrogateescape"))


def _policy(args: argparse.Namespace) -> "Policy":
    from turngate.cli.question_answers import answers_of
    from turngate_protocol.question import AnswerAfter, ExpireAfter, WaitForEver

    after_ms = int(args.expires * _MS)
    if args.else_chat or args.else_answers:
        if not after_ms:
            raise UsageError("--else-chat and --else-answers need --expires, the time after which they are taken")
        return AnswerAfter(after_ms, answers_of(args.else_answers), args.else_chat)
    return ExpireAfter(after_ms) if after_ms else WaitForEver()


def _show(args: argparse.Namespace) -> int:
    async def work(client: "TurnClient") -> int:
        from turngate.cli import question_shown

        found = await client.questions.get(args.session, args.request)
        return question_shown.found(found, args.request, args.json)

    return with_client(args, work)


def _pending(args: argparse.Namespace) -> int:
    if args.all and args.cursor:
        raise UsageError("--all and --cursor exclude each other; leave one out")

    async def work(client: "TurnClient") -> int:
        from turngate.cli import question_shown

        cursor, more, first = args.cursor, True, True
        while more and (first or args.all):
            page = await client.inbox(cursor, args.limit, "question")
            question_shown.pending(page, args.json, first=first)
            cursor, more, first = page.cursor, page.more, False
        if more and not args.json:
            sys.stdout.write(f"there is more: turngate question pending --limit {args.limit} --cursor {cursor}\n")
        return OK

    return with_client(args, work)


def _answer(args: argparse.Namespace) -> int:
    from turngate.cli import question_answers

    question_answers.check_one_way(args)
    reply = question_answers.read_reply(args.source) if args.source else None
    found = _found(args)
    request = _waiting(args, found)
    if request is None:
        return _not_waiting(args, found)
    if reply is None:
        reply = question_answers.reply_to(request, args)

    async def work(client: "TurnClient") -> int:
        from turngate.cli import question_shown

        outcome = await client.questions.resolve(
            args.session, request, answers=reply.answers, chat=reply.chat, op=args.op
        )
        return question_shown.decided(outcome, request, args.json)

    return with_client(args, work)


def _cancel(args: argparse.Namespace) -> int:
    found = _found(args)
    request = _waiting(args, found)
    if request is None:
        return _not_waiting(args, found)

    async def work(client: "TurnClient") -> int:
        from turngate.cli import question_shown

        return question_shown.decided(
            await client.questions.reject(args.session, request, op=args.op), request, args.json
        )

    return with_client(args, work)


def _found(args: argparse.Namespace) -> "QuestionFound":
    # Read before the answer is typed: a person may take their time, and needs no connection meanwhile.
    found: list[Any] = []

    async def work(client: "TurnClient") -> int:
        found.append(await client.questions.get(args.session, args.request))
        return OK

    with_client(args, work)
    return found[0]  # type: ignore[no-any-return]


def _waiting(args: argparse.Namespace, found: "QuestionFound") -> "Request | None":
    if found.pending is None or args.request not in ("", found.pending.request.id):
        return None
    return found.pending.request


def _not_waiting(args: argparse.Namespace, found: "QuestionFound") -> int:
    """Say what became of the question that was to be decided; it is no error when this very operation did it."""
    from turngate.cli import question_shown

    outcome = found.outcome
    if outcome is not None and args.op and outcome.op == args.op:
        return question_shown.repeated(found.session, outcome, args.json)
    raise question_shown.nothing_waits(found, args.request)
