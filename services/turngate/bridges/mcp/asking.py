"""`ask_user` and `ask_user_text`: a question is asked once, waited for, and its outcome told, over any number of calls.

MCP has no id of a tool call that outlives a connection, so the id is made of the call's content, the turn, and how
often that was asked and answered in it. An identical call is therefore the same question for as long as nobody was told
its outcome, whichever process or connection makes it.
"""

import hashlib
import json
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from mcp.server.context import ServerRequestContext
from mcp_types import CallToolRequestParams, CallToolResult, ElicitRequest, ElicitResult, InputRequiredResult
from mcp_types import ElicitRequestFormParams as FormParams
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from msgspec.structs import replace

from turngate.bridges.counting import Asked, Ledger, note_answer, place_question, reconcile
from turngate.bridges.files import SessionFiles
from turngate.bridges.mcp.elicitation import form_of
from turngate.bridges.mcp.identity import Caller, is_gone
from turngate.bridges.mcp.options import Options
from turngate.bridges.mcp.results import call_text, outcome_result, text_result
from turngate.bridges.mcp.waiting import FORMS, resolve, wait_for_person
from turngate.bridges.toollog import Seen
from turngate_contracts.questions import QuestionAsked, QuestionDenied
from turngate_protocol.question.call import ToolCall, request_or_generic
from turngate_protocol.question.errors import InvalidQuestionError
from turngate_protocol.question.model import Request
from turngate_protocol.question.session import Lineage
from turngate_protocol.report.session import Turn

if TYPE_CHECKING:
    from turngate.runner import TurnClient

_FORM: Final = "answer"
_SHOWN: Final = "shown "


class Asking:
    """One call of a tool that asks.

    Args:
        options: what the operator chose.
        client: the runner's client.
        files: what is remembered of the session.
        caller: whose call it is.
        params: the call.
    """

    def __init__(
        self,
        options: Options,
        client: "TurnClient",
        files: SessionFiles,
        caller: Caller,
        params: CallToolRequestParams,
    ) -> None:
        self._options = options
        self._client = client
        self._files = files
        self._caller = caller
        self._params = params
        self._arguments = json.dumps(params.arguments or {}, ensure_ascii=True)
        same = json.dumps([params.name, params.arguments or {}], sort_keys=True)
        self._digest = hashlib.sha256(same.encode()).hexdigest()[:32]

    async def run(
        self, context: ServerRequestContext[Any, Any], known: Turn | None
    ) -> CallToolResult | InputRequiredResult:
        """Ask, wait and tell; `known` is the session's newest turn as the services have it.

        Raises:
            TurngateError: it was not asked, or is forgotten.
            OSError: the session's files can't be used.
        """
        placed, _seen = self._files.change(partial(self._place, known))
        asked = await self._ask(placed)
        if asked.denied is not None:
            return text_result(await self._reason(asked.denied), is_error=True)
        outcome = asked.outcome
        if asked.pending is not None:
            request = asked.pending.request
            form = await self._form(context, request)
            if form is not None:
                return form
            elicit = self._elicits(context) and not _is_modern(context)
            outcome = await wait_for_person(context, self._client, self._caller.session, request, elicit=elicit)
        if outcome is None:
            return text_result("Nothing was asked: the service gave no reason. Ask again.", is_error=True)
        if not await is_gone(context):
            note = partial(note_answer, digest=self._digest, asked=placed, by=self._caller.by)
            self._files.change(lambda ledger, _seen: (note(ledger), None))
        return outcome_result(outcome)

    async def _ask(self, placed: Asked) -> QuestionAsked:
        asked = await self._send(f"mcp-{self._digest}-{placed.turn}-{placed.count}", placed.turn)
        waiting = asked.denied.waiting_for if asked.denied is not None else None
        if waiting is None or waiting.tool != self._params.name:
            return asked
        # The very question may wait under an id of before the session's files were lost.
        try:
            request = request_or_generic(self._params.name, waiting.tool_call_id, self._arguments)
        except InvalidQuestionError:
            return asked
        if request.schema_digest != waiting.schema_digest:
            return asked
        return await self._send(waiting.tool_call_id, placed.turn)

    async def _send(self, call_id: str, turn: int) -> QuestionAsked:
        parent = self._options.parent
        return await self._client.ask(
            ToolCall(self._params.name, call_id, self._arguments),
            self._caller.session,
            lineage=Lineage(parent, self._options.task) if parent else None,
            turn=turn,
        )

    async def _reason(self, denied: QuestionDenied) -> str:
        """Return why nothing was asked; a model that lost its own words for the question that waits gets them back."""
        if denied.waiting_for is None:
            return denied.reason
        pending = (await self._client.questions.get(self._caller.session)).pending
        if pending is None:
            return f"{denied.reason} It was decided this moment: make your call again."
        return f"{denied.reason} To go on waiting for it, {call_text(pending.request)}."

    def _elicits(self, context: ServerRequestContext[Any, Any]) -> bool:
        declared = context.session.client_capabilities
        return self._options.elicit and declared is not None and declared.elicitation is not None

    async def _form(self, context: ServerRequestContext[Any, Any], request: Request) -> InputRequiredResult | None:
        """Have a client of the newer protocol show the question: it gets a form as the result, and calls again with it.

        Returns:
            The form to show, or None: the client shows none, or has, and now the outcome is waited for.
        """
        if not (_is_modern(context) and self._elicits(context)):
            return None
        filled = (self._params.input_responses or {}).get(_FORM)
        shown, problem = _times_shown(self._params.request_state), ""
        if filled is not None:
            if not isinstance(filled, ElicitResult) or filled.action != "accept":
                return None
            problem = await resolve(self._client, self._caller.session, request, filled.content)
            if not problem or shown >= FORMS:
                return None
            problem += "\n\n"
        message, schema = form_of(request)
        form = ElicitRequest(params=FormParams(message=f"{problem}{message}", requested_schema=schema))
        return InputRequiredResult(input_requests={_FORM: form}, request_state=f"{_SHOWN}{shown + 1}")

    def _place(self, known: Turn | None, ledger: Ledger, _seen: Seen) -> tuple[Ledger, Asked]:
        counted, asked = place_question(reconcile(ledger, known), self._digest, self._caller.by)
        return replace(ledger, asked=counted.asked), asked


def _is_modern(context: ServerRequestContext[Any, Any]) -> bool:
    return context.protocol_version in MODERN_PROTOCOL_VERSIONS


def _times_shown(state: str | None) -> int:
    number = (state or "").removeprefix(_SHOWN)
    return int(number) if number.isascii() and number.isdigit() and len(number) < 3 else 0
