"""Subjects are built from checked ids, taken apart again, and belong to one namespace."""

from collections.abc import Callable

import pytest

from tests.contracts.test_ids import HOSTILE
from turngate_contracts.errors import InvalidId
from turngate_contracts.subjects import Subjects, last_token, pool_sender_session, sender_and_session

S = Subjects("tg")

BUILT: dict[str, Callable[[str], str]] = {
    "turn_report, pool": lambda x: S.turn_report(x, "r", "s"),
    "turn_report, runner": lambda x: S.turn_report("p", x, "s"),
    "turn_report, session": lambda x: S.turn_report("p", "r", x),
    "turn_ended, pool": lambda x: S.turn_ended(x, "r", "s"),
    "turn_ended, runner": lambda x: S.turn_ended("p", x, "s"),
    "turn_ended, session": lambda x: S.turn_ended("p", "r", x),
    "task_finished, pool": lambda x: S.task_finished(x, "r", "s"),
    "esm_result, runner": lambda x: S.esm_result(x, "s"),
    "mailbox_all": S.mailbox_all,
    "prompt, pool": lambda x: S.prompt(x, "p"),
    "prompt, id": lambda x: S.prompt("pool", x),
    "prompts": S.prompts,
    "prompt_consumer": S.prompt_consumer,
    "timer_at, kind": lambda x: S.timer_at(x, "t"),
    "timer_at, id": lambda x: S.timer_at("k", x),
    "timer_due, kind": lambda x: S.timer_due(x, "t"),
    "timer_due, id": lambda x: S.timer_due("k", x),
    "api, caller": lambda x: S.api("turn.get", x),
}


@pytest.mark.parametrize("build", BUILT.values(), ids=BUILT.keys())
@pytest.mark.parametrize("value", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_hostile_id_never_becomes_part_of_a_subject(build: Callable[[str], str], value: str):
    with pytest.raises(InvalidId):
        build(value)


@pytest.mark.parametrize(
    ("subject", "expected"),
    [
        (S.turn_report("web", "run-1", "ses_1"), "tg.turn.report.web.run-1.ses_1"),
        (S.turn_ended("web", "run-1", "ses_1"), "tg.turn.ended.web.run-1.ses_1"),
        (S.task_finished("web", "run-1", "ses_1"), "tg.task.finished.web.run-1.ses_1"),
        (S.esm_result("run-1", "ses_1"), "tg.esm.result.run-1.ses_1"),
        (S.mailbox("run-1", "verdict"), "tg.to.run-1.verdict"),
        (S.mailbox_all("run-1"), "tg.to.run-1.>"),
        (S.prompt("pool-1", "p-1"), "tg.work.pool-1.prompt.p-1"),
        (S.prompts("pool-1"), "tg.work.pool-1.prompt.*"),
        (S.event("turns", "ses_1"), "tg.event.turns.ses_1"),
        (S.key("turns", "ses_1"), "$KV.tg_turns.*.ses_1"),
        (S.revision("turns", "ses_1", wants=True), "$KV.tg_turns.wants.ses_1"),
        (S.revision("turns", "ses_1", wants=False), "$KV.tg_turns.rest.ses_1"),
        (S.key("conclusions", "ses_1.task_1"), "$KV.tg_conclusions.ses_1.task_1"),
        (S.revision("conclusions", "ses_1.task_1", wants=True), "$KV.tg_conclusions.ses_1.task_1"),
        (S.unsplit("turns", "ses_1"), "$KV.tg_turns.ses_1"),
        (S.timer_at("expiry", "t-1"), "tg.timer.at.expiry.t-1"),
        (S.timer_due("expiry", "t-1"), "tg.timer.due.expiry.t-1"),
        (S.dead_letter("TG_TURNS", "TG_TURNS-7-5f3a9c1e"), "tg.dead.TG_TURNS.TG_TURNS-7-5f3a9c1e"),
        (S.dead_letters(), "tg.dead.*.*"),
        (S.dead_letters("TG_TURNS"), "tg.dead.TG_TURNS.*"),
        (S.api("turn.answer", "ann"), "tg.api.turn.answer.ann"),
        (S.api_endpoint("turn.answer"), "tg.api.turn.answer.*"),
        (S.api("runner.join", "run-1", "web"), "tg.api.runner.join.web.run-1"),
        (S.api_endpoint("runner.join", by_pool=True), "tg.api.runner.join.*.*"),
        (S.stream("turns"), "TG_TURNS"),
        (S.bucket("turns"), "tg_turns"),
        (S.bucket_stream("turns"), "KV_tg_turns"),
    ],
)
def test_names_on_the_wire_do_not_change(subject: str, expected: str):
    assert subject == expected


@pytest.mark.parametrize(
    ("bucket", "key", "subject"),
    [
        ("turns", "ses_1", S.revision("turns", "ses_1", wants=True)),
        ("turns", "ses_1", S.revision("turns", "ses_1", wants=False)),
        ("turns", "wants", S.revision("turns", "wants", wants=False)),
        ("turns", "ses_1", S.unsplit("turns", "ses_1")),
        ("turns", "wants", S.unsplit("turns", "wants")),
        ("conclusions", "ses_1.task_1", S.revision("conclusions", "ses_1.task_1", wants=True)),
        ("inbox", "card.ses_1", S.key("inbox", "card.ses_1")),
    ],
)
def test_a_subject_of_a_bucket_tells_its_key(bucket: str, key: str, subject: str):
    assert S.key_of(bucket, subject) == key


@pytest.mark.parametrize("stream", ["TG_TURNS", "KV_other_turns", "KV_tg", ""])
def test_a_stream_that_holds_no_states_is_no_bucket(stream: str):
    assert S.bucket_of(stream) == ""
    assert S.bucket_of(S.bucket_stream("turns")) == "turns"


@pytest.mark.parametrize("build", [S.turn_report, S.turn_ended, S.task_finished])
def test_pool_sender_and_session_come_back_out(build: Callable[[str, str, str], str]):
    assert pool_sender_session(build("web", "run-1", "ses_1")) == ("web", "run-1", "ses_1")
    assert sender_and_session(build("web", "run-1", "ses_1")) == ("run-1", "ses_1")


def test_sender_and_session_of_a_result_come_back_out():
    assert sender_and_session(S.esm_result("run-1", "ses_1")) == ("run-1", "ses_1")


def test_the_caller_comes_back_out():
    assert last_token(S.api("turn.answer", "ann")) == "ann"


@pytest.mark.parametrize("namespace", ["", "T", "a.b", "*", ">", "a b", "a\n"])
def test_a_hostile_namespace_is_refused(namespace: str):
    with pytest.raises(InvalidId):
        Subjects(namespace)
