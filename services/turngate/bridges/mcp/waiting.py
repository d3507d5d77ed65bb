"""Waiting for a person, however long: with progress for the client, and the question in the client too where it can.

Whoever answers first decides, wherever that is: an answer in the client is sent as every other one, and what the call
returns is the outcome that the service recorded. When the call is cancelled or its client goes away, the question
stays; when the answer comes from elsewhere, the form in the client is taken back.
"""

import itertools
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import anyio
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from turngate.bridges.mcp.elicitation import Unanswered, answer_of, form_of
from turngate_contracts.errors import ErrorCode, Refusal, TurngateError, Unavailable
from turngate_protocol.question.model import Request
from turngate_protocol.question.session import Outcome

if TYPE_CHECKING:
    from turngate.runner import TurnClient

PROGRESS_S: Final = 5.0
"""How often a client that wants to know is told that the person has not answered yet."""
FORMS: Final = 3
"""How often a form is shown whose answer does not fit."""
_RETRY_S: Final = 1.0
_REPAIRABLE: Final = frozenset({ErrorCode.INVALID, ErrorCode.BLANK_ANSWER, ErrorCode.INVALID_MESSAGE})

log = logging.getLogger(__name__)


async def wait_for_person(
    context: ServerRequestContext[Any, Any], client: "TurnClient", session: str, request: Request, *, elicit: bool
) -> Outcome:
    """Wait until a question is decided, and return how.

    Raises:
        TurngateError: it neither waits nor is remembered any more.
    """
    outcome: Outcome | None = None
    failure: TurngateError | None = None
    async with anyio.create_task_group() as beside:
        beside.start_soon(_tell_progress, context)
        if elicit:
            beside.start_soon(_ask_in_client, context, client, session, request)
        try:
            outcome = await client.wait(request, session)
        except TurngateError as error:
            failure = error
        beside.cancel_scope.cancel()
    if outcome is None:
        raise failure or Unavailable("waiting for the person ended")
    return outcome


async def resolve(client: "TurnClient", session: str, request: Request, content: "Mapping[str, Any] | None") -> str:
    """Send what a person filled into a form as the answer; returns why it is none, for the person, or nothing."""
    try:
        answers, chat = answer_of(request, content)
    except Unanswered as error:
        return str(error)
    while True:
        try:
            await client.questions.resolve(session, request, answers=answers, chat=chat)
        except Refusal as error:
            if error.code in _REPAIRABLE:
                return error.message
            if error.code not in (ErrorCode.ALREADY_RESOLVED, ErrorCode.NO_PENDING):
                log.warning("the answer in the client was refused: %s", error.message)
        except Unavailable:
            # The person has answered: that is not lost because the server is away for a while.
            await anyio.sleep(_RETRY_S)
            continue
        except TurngateError as error:
            if error.code in _REPAIRABLE:
                return error.message
            # On a server with accounts only people's identities answer, and this is a runner's.
            log.warning("the answer in the client could not be sent: %s", error.message)
        return ""


async def _tell_progress(context: ServerRequestContext[Any, Any]) -> None:
    for told in itertools.count():
        try:
            await context.session.report_progress(told, None, "waiting for the person's answer")
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            return  # nobody is there to be told; the call itself ends when that is certain
        await anyio.sleep(PROGRESS_S)


async def _ask_in_client(
    context: ServerRequestContext[Any, Any], client: "TurnClient", session: str, request: Request
) -> None:
    message, schema = form_of(request)
    problem = ""
    for _ in range(FORMS):
        try:
            answered = await context.session.elicit_form(f"{problem}{message}", schema, context.request_id)
        except (MCPError, ValidationError) as error:
            log.info("the client did not show the question: %s", error)
            return
        if answered.action != "accept":
            # Nobody at the client, or nobody who wants to answer there: the question waits for others.
            return
        problem = await resolve(client, session, request, answered.content)
        if not problem:
            return
        problem = f"{problem}\n\n"
