"""What the tools do: each call is told apart from its repeats, sent through the runner's client, and answered in words.

Whatever a model passes is answered with a text that it can repair its call by. Whatever is away is told as such, and
the very same call made again goes on where the first one was.
"""

import hashlib
import json
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final

from mcp.server.context import ServerRequestContext
from mcp_types import CallToolRequestParams, CallToolResult, InputRequiredResult

from turngate.bridges import conclusions, toollog
from turngate.bridges.files import SessionFiles
from turngate.bridges.mcp.asking import Asking
from turngate.bridges.mcp.descriptions import REPORT
from turngate.bridges.mcp.identity import Caller, Callers
from turngate.bridges.mcp.lazy import LazyClient
from turngate.bridges.mcp.options import Options
from turngate.bridges.mcp.results import error_result, text_result, verdict_result
from turngate.bridges.places import Places
from turngate_contracts.errors import ErrorCode, Refusal, TurngateError
from turngate_contracts.esm import GetObjective, ObjectiveFound
from turngate_protocol.conclusion.model import Conclusion
from turngate_protocol.conclusion.tools import CONCLUDE, ConclusionProblems, conclusion_of
from turngate_protocol.esm.errors import EsmError
from turngate_protocol.esm.objective import Objective, is_runnable
from turngate_protocol.esm.tools import GET_ESM, UPDATE_ESM, get_esm, update_answer, update_arguments
from turngate_protocol.question.model import ASK_USER, ASK_USER_TEXT

if TYPE_CHECKING:
    from turngate.bridges.turns import Turns
    from turngate.runner import TurnClient

log = logging.getLogger(__name__)

Context = ServerRequestContext[Any, Any]
Result = CallToolResult | InputRequiredResult
_Handler = Callable[[Context, CallToolRequestParams, Caller], Awaitable[Result]]

_SERVICE_MS: Final = 10_000
"""How long the supervisor may take to say where an objective stands."""
_STATED: Final = "It is told to whoever delegated the task when you end: stop here, and write nothing more."


class Tools:
    """The tools of one server process."""

    def __init__(self, options: Options, client: LazyClient, callers: Callers, places: Places) -> None:
        self._options = options
        self._client = client
        self._callers = callers
        self._places = places
        self._handlers: dict[str, _Handler] = {
            REPORT: self._report,
            ASK_USER: self._ask,
            ASK_USER_TEXT: self._ask,
            GET_ESM["name"]: self._get_esm,
            UPDATE_ESM["name"]: self._update_esm,
            CONCLUDE["name"]: self._conclude,
        }

    async def call(self, context: Context, params: CallToolRequestParams) -> Result:
        """Do what a call asks; a call that can't be done gives a result that says why.

        Raises:
            KeyError: there is no such tool.
        """
        handler = self._handlers[params.name]
        try:
            return await handler(context, params, self._callers.of(context))
        except TurngateError as error:
            return error_result(params.name, error)
        except EsmError as error:
            return text_result(f"{error.kind}: {error.message}", is_error=True)
        except OSError as error:
            log.exception("the session's files can't be used")
            where = f" ({error.filename})" if error.filename else ""
            return text_result(f"the session's files can't be used{where}: {error.strerror}", is_error=True)

    async def has_objective(self, context: Context) -> bool:
        """Say whether the session of a request has an objective to pursue.

        Raises:
            TurngateError: nobody could tell.
        """
        session = self._callers.of(context).session
        return is_runnable(await self._objective(session))

    async def _report(self, _context: Context, params: CallToolRequestParams, caller: Caller) -> Result:
        turns = self._turns(await self._client.get(), caller)
        return verdict_result(await turns.report(_encoded(params.arguments or {})))

    async def _ask(self, context: Context, params: CallToolRequestParams, caller: Caller) -> Result:
        client = await self._client.get()
        known = await self._turns(client, caller).known()
        return await Asking(self._options, client, self._files(caller), caller, params).run(context, known)

    async def _get_esm(self, _context: Context, _params: CallToolRequestParams, caller: Caller) -> Result:
        return text_result(get_esm(await self._objective(caller.session)))

    async def _update_esm(self, _context: Context, params: CallToolRequestParams, caller: Caller) -> Result:
        status, reason = update_arguments(params.arguments or {})
        client = await self._client.get()
        turn = await self._turns(client, caller).current()
        # A turn of an agent that drives itself is a run: a blocker counts once in it, and a claim made twice once.
        run = self._options.run or f"mcp-{_short(caller.session)}-{turn}"
        op = f"mcp-{_short(json.dumps([caller.session, run, turn, status, reason]))}"
        stands = await client.objectives.update(caller.session, status, reason, run=run, op=op)
        if stands.objective is None:
            return text_result(get_esm(None), is_error=True)
        return text_result(update_answer(stands.objective))

    async def _conclude(self, _context: Context, params: CallToolRequestParams, caller: Caller) -> Result:
        arguments = params.arguments or {}
        try:
            conclusion = conclusion_of(arguments)
        except ConclusionProblems as error:
            return text_result(str(error), is_error=True)
        if not self._options.task:
            conclusions.record(self._places.of_session(caller.session), arguments)
            return text_result(f"Your conclusion ({conclusion.status}) is noted. {_STATED}")
        return await self._conclude_task(conclusion, caller)

    async def _conclude_task(self, conclusion: Conclusion, caller: Caller) -> Result:
        client = await self._client.get()
        from turngate.bridges.delegated import tell

        directory = self._places.of_session(caller.session)
        with toollog.locked(directory):
            uses, _end = toollog.read(directory)
        told = await tell(
            client,
            self._options.parent or caller.session,
            self._options.task,
            conclusion,
            directory=self._options.directory,
            roots=self._options.roots,
            uses=uses,
        )
        return text_result(told)

    async def _objective(self, session: str) -> Objective | None:
        client = await self._client.get()
        try:
            found = await client.call("esm.get", GetObjective(session), ObjectiveFound, _SERVICE_MS)
        except Refusal as error:
            if error.code is not ErrorCode.NOT_FOUND:
                raise
            return None
        return found.state.objective

    def _turns(self, client: "TurnClient", caller: Caller) -> "Turns":
        from turngate.bridges.turns import Turns

        return Turns(client, caller.session, self._files(caller), caller.by)

    def _files(self, caller: Caller) -> SessionFiles:
        return SessionFiles(self._places.of_session(caller.session))


def _encoded(arguments: dict[str, Any]) -> bytes:
    """Return the arguments as JSON, in the order in which the model wrote them."""
    text = json.dumps(arguments, ensure_ascii=False, separators=(",", ":"))
    try:
        return text.encode()
    except UnicodeEncodeError:
        return json.dumps(arguments, separators=(",", ":")).encode()  # lone surrogates, which the gate tells of


def _short(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:24]
