"""The catalogue is whole: every message is in it, every row has an address, every event is one that the gate makes."""

import json

import pytest

from turngate_contracts.catalogue import ASKS, DEAD, INTAKE, MAILBOX, REQUESTS, STATES, TIMERS, WORK, messages
from turngate_contracts.examples import CARD
from turngate_contracts.ids import is_id
from turngate_contracts.messages import SCHEMAS
from turngate_contracts.rows import Ask, Dead, Intake, Mail, Request, State, Timer, Work, mark, template
from turngate_contracts.subjects import Subjects
from turngate_protocol.conclusion import RefState, StatAnswer, Task, record
from turngate_protocol.question import asked, effects
from turngate_protocol.question.call import request_from_call
from turngate_protocol.question.errors import Refusal
from turngate_protocol.question.model import Answer, Resolution
from turngate_protocol.question.policy import ExpireAfter
from turngate_protocol.question.session import SessionQuestions
from turngate_protocol.report.answering import Changed, Pick, answer, dismiss, enqueue, settled, wants
from turngate_protocol.report.session import Mode, Prompt, SessionTurns
from turngate_protocol.report.turn import Attempt, Ended, GateRules, Judged, TurnEnd, end, submit

Row = Intake | Request | Ask | Mail | Work | State | Timer | Dead
ROWS: list[Row] = [*INTAKE, *REQUESTS, *ASKS, *MAILBOX, *WORK, *STATES, *TIMERS, DEAD]
QUESTION = {
    "header": "Store",
    "question": "Where?",
    "options": [{"label": "A", "description": "first"}, {"label": "B", "description": "second"}],
}
PROMPT = Prompt("p-1", "s", "Go on.", "service", 1)


def test_the_catalogue_and_the_schema_names_know_the_same_messages():
    assert set(messages()) == set(SCHEMAS)


@pytest.mark.parametrize("names", [[row.name for row in INTAKE], [row.name for row in (*REQUESTS, *ASKS)]])
def test_no_two_rows_share_a_name(names: list[str]):
    assert len(set(names)) == len(names)


def test_no_two_rows_share_an_address():
    addresses = [row.address() for row in ROWS]

    assert len(set(addresses)) == len(addresses)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.address())
def test_an_address_begins_with_the_namespace_and_names_its_parts(row: Row):
    address = row.address()

    assert address.startswith(("{namespace}.", "$KV.{namespace}_"))
    assert "--" not in address
    assert row.summary.endswith(".")


@pytest.mark.parametrize("row", INTAKE, ids=lambda row: row.name)
def test_an_intake_subject_names_the_sender_and_the_session(row: Intake):
    sender = ".{runner}" if "runner" in row.parameters else ""  # a service that only starts something is not named

    assert row.address().endswith(f"{sender}.{{session}}")


@pytest.mark.parametrize("row", REQUESTS, ids=lambda row: row.name)
def test_a_request_s_subject_ends_in_its_caller(row: Request):
    bound = "{pool}." if row.by_pool else ""
    assert row.address() == f"{{namespace}}.api.{row.name}.{bound}{{caller}}"
    assert row.callers


def test_marks_are_ids_and_come_back_as_parameters():
    assert is_id(mark("role_run"))
    assert template(f"tg.work.{mark('pool')}.{mark('role_run')}") == "tg.work.{pool}.{role_run}"


def test_the_events_of_turns_are_those_that_the_gate_makes():
    (row,) = (row for row in STATES if row.bucket == "turns")

    assert set(row.events) == set(_every_cause())


def test_the_events_of_questions_are_those_that_the_protocol_makes():
    (row,) = (row for row in STATES if row.bucket == "questions")

    assert set(row.events) == {state.cause.type for state in _every_question()}


def test_the_events_of_conclusions_are_those_that_the_protocol_makes():
    (row,) = (row for row in STATES if row.bucket == "conclusions")

    assert set(row.events) == {state.cause.type for state in _every_conclusion()}


def test_live_events_have_the_subjects_to_which_the_server_republishes():
    (row,) = (row for row in STATES if row.bucket == "turns")

    assert row.event_address() == "{namespace}.event.turns.{session}"
    assert row.live_address() == "{namespace}.live.turns.{session}"
    assert Subjects().live() == "tg.live.>"


def _every_cause() -> list[str]:
    """The cause of every kind of revision, by a walk through the gate."""
    made: list[SessionTurns] = []
    rejected = _submit(None, 1, 1, b"{}")
    exhausted = rejected
    for attempt in (2, 3, 4):
        exhausted = _submit(exhausted, 1, attempt, b'{"n":%d}' % attempt)
    made += [rejected, exhausted]
    ending: SessionTurns | None = None
    for number in (1, 2, 3):
        ending = _end(ending, number, Mode.ALWAYS)
        made.append(ending)
    made.append(_end(None, 1, Mode.OFF))
    card = _submit(None, 1, 1, CARD)
    held = _changed(enqueue(card, PROMPT, 2))
    answered = _changed(answer(held, Pick(1, "ann", number=1), 3))
    sent = settled(answered, wants(answered), 4)
    dismissed = _changed(dismiss(card, 1, "ann", 3))
    cleared = settled(dismissed, wants(dismissed), 4)
    released = _changed(enqueue(rejected, PROMPT, 2))
    assert sent is not None
    assert cleared is not None
    made += [card, held, answered, sent, dismissed, cleared, released]
    return [state.cause.type for state in made]


def _every_question() -> list[SessionQuestions]:
    """A state of every kind that questions come to, by a walk through their life."""
    request = request_from_call("ask_user_text", "call-1", '{"question": "Go on?"}')
    key = (request.id, request.schema_digest)
    waiting = _asked(asked.ask(None, asked.AskQuestion("s", "pool", "runner", request, ExpireAfter(1)), 1))
    moved = _asked(asked.ask(waiting, asked.AskQuestion("s", "pool", "other", request), 1))
    chat = _asked(asked.resolve(waiting, Resolution(*key, chat="Yes."), actor="ann", op="", now=1))
    cancelled = _asked(asked.cancel(waiting, *key, actor="ann", op="", now=1))
    expired = _asked(asked.expire(waiting, *key, 2))
    settled = effects.settled(expired, 2)
    assert settled is not None
    call = request_from_call("ask_user", "call-2", json.dumps({"questions": [QUESTION]}))
    structured = _asked(asked.ask(None, asked.AskQuestion("s", "pool", "runner", call), 1))
    resolution = Resolution(call.id, call.schema_digest, (Answer(("A",)),))
    answered = _asked(asked.resolve(structured, resolution, actor="ann", op="", now=1))
    return [waiting, moved, chat, cancelled, expired, settled, answered]


def _every_conclusion() -> list[record.TaskConclusion]:
    """A state of every kind that a task comes to."""
    block = "<pando:conclusion>\nstatus: success\nartifacts: [/a]\n</pando:conclusion>"
    task = Task("t", "completed", output=block)
    received = record.receive(None, record.Finished("s", "pool", "runner", task), 1).state
    assert received is not None
    other = record.Finished("s", "pool", "runner", Task("t", "failed"))
    conflict = record.receive(received, other, 2).state
    judged = record.judge(received, record.Findings({}), 3)
    downgraded = record.judge(received, record.Findings({"/a": StatAnswer(RefState.MISSING)}), 3)
    assert judged is not None
    sent = record.told(judged, None, 4)
    refused = record.told(judged, record.PromptRefusal("invalid", "no"), 4)
    made = [received, conflict, judged, downgraded, sent, refused]
    return [state for state in made if state is not None]


def _asked(result: asked.Step | Refusal) -> SessionQuestions:
    assert isinstance(result, asked.Step), result
    return result.state


def _submit(state: SessionTurns | None, turn: int, attempt: int, report: bytes) -> SessionTurns:
    judged = submit(state, Attempt("s", "pool", "runner", turn, attempt, report), GateRules(), 1)
    assert isinstance(judged, Judged)
    assert judged.state is not None
    return judged.state


def _end(state: SessionTurns | None, ending: int, mode: Mode) -> SessionTurns:
    ended = end(state, TurnEnd("s", "pool", "runner", 1, ending), GateRules(mode), 1)
    assert isinstance(ended, Ended)
    assert ended.state is not None
    return ended.state


def _changed(result: object) -> SessionTurns:
    assert isinstance(result, Changed)
    return result.state
