"""The examples of questions: the story's agent asks, a person answers, and a timer was set in case nobody did.

As in `examples`, the states and outcomes are what the protocol itself makes of the call and the answer.
"""

import json
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from turngate_contracts.questions import (
    AskQuestion,
    GetQuestion,
    QuestionAsked,
    QuestionDue,
    QuestionFound,
    QuestionOutcome,
    RejectQuestion,
    ResolveQuestion,
)
from turngate_protocol.question import asked
from turngate_protocol.question.call import ToolCall, request_from_call
from turngate_protocol.question.errors import Refusal
from turngate_protocol.question.model import Answer, Resolution
from turngate_protocol.question.policy import AnswerAfter
from turngate_protocol.question.session import Lineage, Outcome, PendingQuestion

_HOUR: Final = 3_600_000
_ARGUMENTS: Final[dict[str, Any]] = {
    "questions": [
        {
            "header": "Old rows",
            "question": "What shall become of the orders that are older than ten years?",
            "options": [
                {
                    "label": "Archive",
                    "description": "Moved to the archive, readable there",
                    "preview": "1,204,331 rows",
                },
                {"label": "Keep", "description": "They stay, the table stays large"},
            ],
        }
    ]
}
_CALL: Final = ToolCall("ask_user", "call_h2V8", json.dumps(_ARGUMENTS))
_POLICY: Final = AnswerAfter(_HOUR, (Answer(("Keep",)),))
_TURN: Final = 8


class Story(Struct, frozen=True):
    """Who and what the examples are about, and when they begin."""

    session: str
    runner: str
    pool: str
    person: str
    began: int
    revision: int
    op: str


def of_questions(story: Story) -> tuple[Struct, ...]:
    """Return an example of every message of questions."""
    session, lineage = story.session, Lineage("release-31", "311")
    request = request_from_call(_CALL.name, _CALL.id, _CALL.args)
    command = asked.AskQuestion(session, story.pool, story.runner, request, _POLICY, lineage, _TURN)
    state = _step(asked.ask(None, command, story.began)).state
    pending = state.pending
    if pending is None or pending.expires_at is None:
        raise TypeError("the story goes another way: nothing waits for its time")
    resolution = Resolution(request.id, request.schema_digest, (Answer(("Archive",)),))
    at = story.began + 240_000
    answered = _step(asked.resolve(state, resolution, actor=story.person, op=story.op, now=at))
    outcome = _decided(answered)
    return (
        AskQuestion(session, story.pool, story.runner, _CALL, _POLICY, lineage, _TURN),
        QuestionAsked(session, pending),
        ResolveQuestion(session, request.id, request.schema_digest, resolution.answers, op=story.op),
        QuestionOutcome(session, replace(outcome, request=None)),
        RejectQuestion(session, request.id, request.schema_digest, op=story.op),
        GetQuestion(session, request.id),
        QuestionFound(session, story.pool, story.revision, _waiting(pending)),
        QuestionDue(session, request.id, request.schema_digest, pending.expires_at),
        answered.state,
    )


def _step(result: asked.Step | Refusal) -> asked.Step:
    if isinstance(result, Refusal):
        raise TypeError(f"the story goes another way: {result}")
    return result


def _decided(step: asked.Step) -> Outcome:
    if step.outcome is None:
        raise TypeError("the story goes another way: nothing was decided")
    return step.outcome


def _waiting(pending: PendingQuestion) -> PendingQuestion:
    # Asked for after the runner was replaced.
    return replace(pending, runner=f"{pending.runner[:-1]}2")
