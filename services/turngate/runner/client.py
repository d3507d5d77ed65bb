"""`TurnClient`: everything a runner or a user interface does with turns, over one connection.

A publish is repeated until it is stored, a request until it is answered: both are idempotent. The verdict comes by
mailbox within milliseconds; when it does not, `get` is asked, which is the truth, and a turn that nobody knows is
published again. Killing any process on the way changes how long it takes, never what comes out.
"""

import contextlib
from collections.abc import AsyncGenerator, Mapping, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from turngate import tracing
from turngate.jetstream.connect import Connection, connect
from turngate.jetstream.events import EventReader, StreamEvent
from turngate.jetstream.request import Requester
from turngate.login import NOBODY, Login
from turngate.runner.calls import REQUEST_MS, Calls, operation_id
from turngate.runner.decisions import Decisions, Key, with_report
from turngate.runner.mail import is_mail
from turngate.runner.objectives import Objectives
from turngate.runner.prompts import IncomingPrompt, receive
from turngate.runner.questions import AsksQuestions, Questions
from turngate.runner.tasks import FinishesTasks, Tasks
from turngate.settings import DEFAULT_URL
from turngate_contracts import codec
from turngate_contracts import messages as m
from turngate_contracts.errors import InvalidMessage, TurngateError, shown
from turngate_contracts.ids import check_id
from turngate_contracts.subjects import DEFAULT_NAMESPACE, Subjects
from turngate_protocol.esm.objective import Role
from turngate_protocol.report.model import Report
from turngate_protocol.report.turn import MAX_NUMBER, Attempt, content_digest

R = TypeVar("R", bound=Struct)
V = TypeVar("V", m.Verdict, m.EndingVerdict)


class TurnClient(AsksQuestions, FinishesTasks):
    """A runner's or a person's client; make it with `connect` and use it as an async context manager."""

    def __init__(self, connection: Connection, requester: Requester, identity: str, pool: str, namespace: str) -> None:
        self.identity = identity
        self.pool = pool
        self.subjects = Subjects(namespace)
        self.connection = connection
        self._requester = requester
        self._calls = Calls(connection, requester, self.subjects, identity)
        self._decisions = Decisions(connection, self._calls, self._find)
        self.objectives = Objectives(self.call, pool)
        self.questions = Questions(connection, self.call, identity, pool)
        self.tasks = Tasks(connection, self._calls, identity, pool, self.subjects)

    @classmethod
    async def connect(
        cls,
        identity: str,
        *,
        pool: str = "default",
        url: str = DEFAULT_URL,
        namespace: str = DEFAULT_NAMESPACE,
        timeout_ms: int = 5_000,
        login: Login = NOBODY,
    ) -> Self:
        """Connect as a runner (or as a person who answers).

        Args:
            identity: this runner's id; it is part of every subject that it publishes to.
            pool: the pool that its sessions belong to.
            url: the NATS server or, separated by commas, servers.
            namespace: the system's namespace.
            timeout_ms: how long the first connection may take.
            login: the key that proves it, and whom to trust, where the server wants that.

        Raises:
            InvalidId: identity, pool or namespace can't be part of a subject.
            NoServer: nobody answered in time, or the server refuses this identity.
            CredentialsUnusable: a file that `login` names can't be used, or is another's.
        """
        check_id("identity", identity)
        check_id("pool", pool)
        tracing.set_up("runner")
        subjects = Subjects(namespace)
        login.check(identity)
        connection = await connect(url, name=f"turngate-{identity}", timeout_ms=timeout_ms, login=login)
        async with contextlib.AsyncExitStack() as undoing:
            undoing.push_async_callback(connection.close)
            requester = await Requester.start(connection)
            undoing.push_async_callback(requester.stop)
            client = cls(connection, requester, identity, pool, namespace)
            await connection.listen(subjects.mailbox_all(identity), client._on_mail)
            undoing.pop_all()
        return client

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """End the connection; what is stored stays stored. What waits, and what is asked for later, fails at once."""
        self._decisions.close(self._calls.close())
        try:
            await self._requester.stop()
        finally:
            await self.connection.close()

    # Turns

    async def submit_report(
        self,
        session: str,
        turn: int,
        report: "bytes | str | Mapping[str, Any] | Report | None",
        *,
        attempt: int = 1,
        mutated: bool = False,
        used_tools: bool = False,
        timeout_ms: int = 30_000,
    ) -> m.Verdict:
        """Submit an attempt to report and return its verdict.

        Args:
            session: the session's id.
            turn: the turn's number, counted by the session's host from 1.
            report: what the model wrote, as it wrote it: bytes or text need not even be JSON.
            attempt: 1, and one more for each repaired report of the same turn.
            mutated: whether the turn changed anything; from the host, never from the model.
            used_tools: whether the turn used tools; from the host too.
            timeout_ms: how long to wait for the verdict.

        Returns:
            The attempt's one verdict: accepted, rejected with every problem, or exhausted.

        Raises:
            Refusal: the attempt is not judged: attempt_conflict, superseded, turn_decided, pool_mismatch.
            Overloaded: the intake was full all the time; `retry_after_ms` says when to try again.
            PayloadTooLarge, InvalidId, InvalidMessage: it was not sent.
            VerdictTimeout: no verdict in time; `stored` says what is known of the message, the text what to do.
            Unavailable: the stream refuses it for good.
            ClientClosed: this client was closed, before or meanwhile.
        """
        _check_number("turn", turn)
        _check_number("attempt", attempt)
        raw, unparsed = m.wrap_report(_report_bytes(report))
        message = m.ReportSubmitted(
            session, turn, attempt, self.identity, self.pool, mutated, used_tools, raw, unparsed
        )
        subject = self.subjects.turn_report(self.pool, self.identity, session)
        key = ("report", session, turn, attempt)
        digest = content_digest(
            Attempt(session, self.pool, self.identity, turn, attempt, m.report_bytes(message), mutated, used_tools)
        )
        what = f"attempt {attempt} of turn {turn}"
        found = await self._decisions.of(subject, message, key, what, timeout_ms, digest)
        verdict = _as(found, m.Verdict)
        if not verdict.as_submitted:
            return verdict
        # How it was told is no part of it: asked for with `get`, the same verdict holds the report.
        return replace(verdict, report=raw, as_submitted=False)

    async def end_turn(
        self,
        session: str,
        turn: int,
        *,
        ending: int = 1,
        mutated: bool = False,
        used_tools: bool = False,
        timeout_ms: int = 30_000,
    ) -> m.EndingVerdict:
        """Say that the agent of a turn stopped, and return what follows: settled, a reminder to report, or unreported.

        Args:
            session: the session's id.
            turn: the turn's number.
            ending: 1, and one more each time the agent stops again after a reminder.
            mutated: whether the turn changed anything.
            used_tools: whether the turn used tools.
            timeout_ms: how long to wait.

        Raises:
            Refusal, InvalidId, InvalidMessage, VerdictTimeout, Unavailable, ClientClosed: as for `submit_report`.
        """
        _check_number("turn", turn)
        _check_number("ending", ending)
        message = m.TurnEnded(session, turn, ending, self.identity, self.pool, mutated, used_tools)
        subject = self.subjects.turn_ended(self.pool, self.identity, session)
        key = ("ending", session, turn, ending)
        found = await self._decisions.of(subject, message, key, f"ending {ending} of turn {turn}", timeout_ms)
        return _as(found, m.EndingVerdict)

    async def get(self, session: str, turn: int = 0, *, attempt: int = 0, ending: int = 0) -> m.TurnFound:
        """Return what is known of a session, and of one attempt or ending of it.

        Raises:
            Refusal: not_found when the session is unknown.
            Unavailable: nobody answered.
        """
        check_id("session", session)
        return with_report(await self.call("turn.get", m.GetTurn(session, turn, attempt, ending), m.TurnFound))

    async def answer(
        self,
        session: str,
        turn: int,
        number: int = 0,
        *,
        block: str = "",
        option: str = "",
        text: str = "",
        op: str = "",
        timeout_ms: int = 10_000,
    ) -> m.AnswerRecorded:
        """Answer a card by its option's number, or by block id and option id.

        Args:
            session: the session's id.
            turn: the turn whose card is answered.
            number: the option's number on the card, 1 to 9.
            block: the block's id, with `option`.
            option: the option's id.
            text: free text beside the option.
            op: this operation's id; without one a random id makes a repeat after a lost reply harmless.
            timeout_ms: how long to try.

        Raises:
            Refusal: already_answered (details say by whom), already_dismissed, superseded, no_card, option_unknown.
            Unavailable: nobody answered in time.
        """
        check_id("session", session)
        request = m.AnswerTurn(session, turn, number, block, option, text, op or operation_id())
        return await self.call("turn.answer", request, m.AnswerRecorded, timeout_ms)

    async def dismiss(self, session: str, turn: int, *, op: str = "", timeout_ms: int = 10_000) -> m.TurnDismissed:
        """Close a card without an answer; errors as for `answer`."""
        check_id("session", session)
        return await self.call(
            "turn.dismiss", m.DismissTurn(session, turn, op or operation_id()), m.TurnDismissed, timeout_ms
        )

    async def send_prompt(
        self, session: str, prompt_id: str, text: str, *, pool: str = "", kind: str = "service"
    ) -> m.PromptQueued:
        """Have a prompt started in a session, held while its card waits; the same id is sent once, for ever.

        The pool is the session's; this client's own by default. Errors as for `answer`, and pool_mismatch.
        """
        request = m.SendPrompt(check_id("session", session), pool or self.pool, check_id("id", prompt_id), text, kind)
        return await self.call("turn.prompt", request, m.PromptQueued)

    async def check_report(
        self, report: "bytes | str | Mapping[str, Any] | Report | None", *, mutated: bool = False, max_blocks: int = 0
    ) -> m.ReportChecked:
        """Have a report checked without recording anything."""
        raw, unparsed = m.wrap_report(_report_bytes(report))
        return await self.call("report.check", m.CheckReport(raw, unparsed, mutated, max_blocks), m.ReportChecked)

    async def inbox(self, cursor: int = 0, limit: int = 100, kind: str = "") -> m.InboxPage:
        """Return a page of what waits for a person, oldest first; go on with its `cursor` while it has `more`."""
        return await self.call("inbox.list", m.ListInbox(cursor, limit, kind), m.InboxPage)

    # Streams

    async def prompts(self, pool: str = "", *, slots: int = 4) -> AsyncGenerator[IncomingPrompt, None]:
        """Yield the prompts of a pool as they come; the runners of a pool share them.

        Args:
            pool: the pool; this client's own by default.
            slots: most prompts that this client holds untaken.

        Take a prompt before doing it. One that was neither taken nor given back when the next one is asked for is given
        back; until then it is this client's, however long that takes.

        Raises:
            ClientClosed: this client was closed, or the server closed its connection for good; none will come any more.
        """
        pool = check_id("pool", pool or self.pool)
        await self.join(pool)
        prompts = receive(self.connection, self._requester, self.subjects, pool, slots)
        async with contextlib.aclosing(prompts) as received:
            async for incoming in received:
                yield incoming
        self._calls.check_open()

    def events(
        self, from_cursor: int = 0, *, kind: str = "", key: str = "", until_caught_up: bool = False
    ) -> AsyncGenerator[StreamEvent, None]:
        """Yield events from the one after a cursor on; every revision once, in order.

        Args:
            from_cursor: the last cursor seen; 0 begins with the oldest event that is kept.
            kind: one kind only, such as `turns`.
            key: one key only, such as a session; needs `kind`.
            until_caught_up: end when there is nothing newer.
        """
        reader = EventReader(self.connection, self._requester, self.subjects)
        return reader.follow(from_cursor, kind=kind, key=key, until_caught_up=until_caught_up)

    # How it is done

    async def join(self, pool: str, roles: Sequence[Role] = (), timeout_ms: int = 10_000) -> m.RunnerJoined:
        """Announce this runner to one of its pools, and return the consumers that it may pull from.

        Raises:
            NotPermitted: this identity is not of that pool.
            Refusal: overloaded, when there are too many pools.
            Unavailable: nobody answered.
        """
        request = m.JoinRunner(self.identity, tuple(roles))
        return await self._calls.call("runner.join", request, m.RunnerJoined, timeout_ms, pool=check_id("pool", pool))

    async def call(
        self, name: str, request: Struct, kind: type[R], timeout_ms: int = REQUEST_MS, *, pool: str = ""
    ) -> R:
        """Send a request to a service and return its answer, asking again while nobody answers.

        `pool` is for requests whose subject names one: a pool of this identity.

        Raises:
            Refusal: the service's own error, with its code and details.
            Unavailable: nobody answered in time.
        """
        return await self._calls.call(name, request, kind, timeout_ms, pool=pool)

    async def publish(self, subject: str, body: bytes, head: bytes) -> None:
        """Publish into a stream, once.

        Raises:
            JetStreamError: the stream refused it.
            Unavailable: it may be stored or not; publish it again.
        """
        await self._requester.publish(subject, body, head)

    async def _find(self, key: Key, digest: str) -> m.TurnFound:
        kind, session, turn, number = key
        attempt, ending = (number, 0) if kind == "report" else (0, number)
        asked = m.GetTurn(session, turn, attempt, ending, digest, self.pool)
        return with_report(await self.call("turn.get", asked, m.TurnFound))

    def _on_mail(self, subject: bytes, _reply: bytes, body: bytes, head: bytes) -> None:
        kind = subject[subject.rindex(b".") + 1 :]
        if not is_mail(kind, head):
            return
        with contextlib.suppress(TurngateError):
            if kind == b"outcome":
                self.questions.on_mail(body)
            else:
                self._decisions.on_mail(kind, body)


def _as(found: m.Verdict | m.EndingVerdict, kind: type[V]) -> V:
    if not isinstance(found, kind):
        raise InvalidMessage(f"expected a {kind.__name__}, got a {type(found).__name__}")
    return found


def _report_bytes(report: "bytes | str | Mapping[str, Any] | Report | None") -> bytes | None:
    if report is None or isinstance(report, bytes):
        return report
    if isinstance(report, str):
        return report.encode("utf-8", "surrogatepass")
    return codec.encode(report)


def _check_number(field: str, value: object) -> None:
    if type(value) is not int or not 1 <= value <= MAX_NUMBER:
        raise InvalidMessage(f"{field} {shown(value)} must be a number from 1 to {MAX_NUMBER}", field=field)
