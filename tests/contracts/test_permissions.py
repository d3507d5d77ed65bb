"""What identities may do is derived from the catalogue, and nobody's list reaches into another's."""

import itertools

import pytest

from tests.matching import covers, meet
from turngate_contracts.catalogue import INTAKE, MAILBOX, REQUESTS
from turngate_contracts.errors import InvalidId
from turngate_contracts.permissions import (
    READING,
    Account,
    Kind,
    exports,
    fill,
    of_console,
    of_person,
    of_runner,
    pulling,
)
from turngate_contracts.rows import Caller
from turngate_contracts.service_permissions import SERVICES, of_service
from turngate_contracts.subjects import Subjects
from turngate_contracts.topology import Topology

S = Subjects()
TOPOLOGY = Topology(S)
RUNNER = of_runner(S, "r1", ["web"])
OTHER = of_runner(S, "r2", ["gpu"])
OPERATOR = of_person(S, "ann", Kind.OPERATOR)
VIEWER = of_person(S, "vic", Kind.VIEWER)
CONSOLE = of_console(S, "console")
OUTSIDE = {"runner": RUNNER, "operator": OPERATOR, "viewer": VIEWER, "console": CONSOLE}
PRIVATE = (
    "$KV.>",
    "$JS.API.STREAM.CREATE.>",
    "$JS.API.STREAM.UPDATE.>",
    "$JS.API.STREAM.DELETE.>",
    "$JS.API.STREAM.PURGE.>",
    "$JS.API.STREAM.MSG.>",
    "$JS.API.STREAM.SNAPSHOT.>",
    "$JS.API.STREAM.RESTORE.>",
    "$JS.API.CONSUMER.CREATE.>",
    "$JS.API.CONSUMER.DURABLE.>",
    "$JS.API.CONSUMER.DELETE.>",
    "$SYS.>",
    "_R_.>",
    "_INBOX.>",
    "tg.to.>",
    "tg.live.>",
    "tg.event.>",
    "tg.work.>",
    "tg.timer.>",
    "tg.presence.>",
    "tg.dead.>",
    "tg.mark.>",
    "tg.suspect.>",
    "tg.esm.start.>",
    "tg.runner.>",
)
"""What only services publish to."""


@pytest.mark.parametrize("who", OUTSIDE)
@pytest.mark.parametrize("private", PRIVATE)
def test_nobody_outside_of_core_publishes_to_what_is_the_services_own(who: str, private: str):
    assert [subject for subject in OUTSIDE[who].publish if meet(subject, private)] == []


@pytest.mark.parametrize(("one", "other"), list(itertools.combinations(("runner", "other", "operator", "viewer"), 2)))
def test_no_two_identities_may_publish_to_the_same_subject_but_to_read_events(one: str, other: str):
    lists = {**OUTSIDE, "other": OTHER}
    shared = [a for a in lists[one].publish for b in lists[other].publish if meet(a, b)]

    assert set(shared) <= {"$JS.API.DIRECT.GET.TG_EVENTS", "$JS.CORE.API.STREAM.INFO.TG_EVENTS"}


def test_no_two_runners_may_subscribe_to_the_same_subject():
    assert [(a, b) for a in RUNNER.subscribe for b in OTHER.subscribe if meet(a, b)] == []


def test_a_runner_acts_as_itself_and_takes_work_of_its_pools_only():
    own = (
        "tg.turn.report.web.r1.s",
        "tg.turn.ended.web.r1.s",
        "tg.task.finished.web.r1.s",
        "tg.esm.result.r1.s",
        "tg.api.role.claim.web.r1",
        "tg.api.question.ask.web.r1",
        "tg.api.esm.update.web.r1",
        *pulling("TG_WORK", "prompts-web"),
        "tg.api.runner.join.web.r1",
    )
    foreign = (
        *("tg.turn.report.web.r2.s", "tg.api.role.claim.web.r2", "tg.api.turn.answer.r1"),
        *(
            "tg.turn.report.gpu.r1.s",
            "tg.turn.ended.gpu.r1.s",
            "tg.task.finished.gpu.r1.s",
            "tg.api.runner.join.gpu.r1",
        ),
        *("tg.api.role.claim.gpu.r1", "tg.api.question.ask.gpu.r1", "tg.api.esm.update.gpu.r1"),
        *("tg.turn.report.r1.s", "tg.api.role.claim.r1"),
    )

    assert [s for s in own if not any(covers(p, s.replace(">", "1")) for p in RUNNER.publish)] == []
    assert [s for s in foreign if any(covers(p, s) for p in RUNNER.publish)] == []
    assert [s for s in pulling("TG_WORK", "prompts-gpu") if any(meet(p, s) for p in RUNNER.publish)] == []


def test_every_request_is_open_to_exactly_its_callers():
    for row in REQUESTS:
        asked = fill(row.address(), S, caller="r1", pool="web")
        assert any(covers(p, asked) for p in RUNNER.publish) is (Caller.RUNNER in row.callers), row.name
        asked = fill(row.address(), S, caller="ann")
        assert any(covers(p, asked) for p in OPERATOR.publish) is (Caller.PERSON in row.callers), row.name


def test_a_viewer_changes_nothing():
    by_name = {row.name for row in REQUESTS if row.name.split(".")[-1] in ("get", "list", "history", "check", "schema")}

    assert by_name == READING & {row.name for row in REQUESTS} == READING
    changing = [row for row in REQUESTS if row.name not in READING]
    assert [row.name for row in changing if any(meet(fill(row.address(), S), p) for p in VIEWER.publish)] == []


def test_no_request_of_a_runner_is_answered_with_what_mail_is():
    """A runner may have an answer sent to another's mailbox; there, its schema gives it away."""
    mail = {row.message for row in MAILBOX}

    assert [row.name for row in REQUESTS if Caller.RUNNER in row.callers and row.reply in mail] == []


@pytest.mark.parametrize(
    ("kind", "access"), [(Kind.RUNNER, RUNNER), (Kind.OPERATOR, OPERATOR), (Kind.CONSOLE, CONSOLE)]
)
def test_what_an_identity_may_reach_of_core_is_exported_to_its_account(kind: Kind, access):
    open_to = [e.local or e.subject for e in exports(S) if e.to is kind.account and not e.stream]

    assert [s for s in access.publish if not any(covers(subject, s) for subject in open_to)] == []


def test_every_service_that_crosses_has_a_wildcard():
    """The server would hand answers on to one that has none."""
    assert [e.subject for e in exports(S) if not e.stream and "*" not in e.subject] == []


def test_nothing_is_exported_that_nobody_may_use():
    users = {Account.RUN: (RUNNER,), Account.UI: (OPERATOR, VIEWER, CONSOLE), Account.CORE: ()}

    unused = [
        e.subject
        for e in exports(S)
        if e.owner is Account.CORE
        and not any(meet(e.local or e.subject, s) for each in users[e.to] for s in (*each.publish, *each.subscribe))
    ]

    assert unused == []


def test_every_durable_consumer_is_one_service_s_to_pull_from():
    lists = {name: of_service(TOPOLOGY, name).publish for name in SERVICES}

    for stream, config in TOPOLOGY.consumers():
        pull = f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{config['durable_name']}"
        assert len([name for name, publish in lists.items() if pull in publish]) == 1, pull


def test_every_request_and_intake_has_a_service_that_may_take_it():
    for row in REQUESTS:
        takers = [n for n in SERVICES if fill(row.address(), S) in of_service(TOPOLOGY, n).subscribe]
        assert takers == [row.service], row.name
    assert {row.consumer for row in INTAKE} <= set(SERVICES)


@pytest.mark.parametrize("service", SERVICES)
def test_no_service_may_change_the_topology(service: str):
    publish = of_service(TOPOLOGY, service).publish
    changing = [f"$JS.API.STREAM.{verb}.>" for verb in ("CREATE", "UPDATE", "DELETE", "RESTORE", "SNAPSHOT")]

    assert [s for s in publish for verb in changing if meet(s, verb)] == []


@pytest.mark.parametrize("name", ["a.b", "*", ">", "", "a b", "a\n"])
def test_a_name_can_not_become_a_wildcard_or_another_subject(name: str):
    with pytest.raises(InvalidId):
        of_runner(S, name, [])
    with pytest.raises(InvalidId):
        of_runner(S, "r1", [name])
    with pytest.raises(InvalidId):
        of_person(S, name, Kind.OPERATOR)
    with pytest.raises(InvalidId):
        of_console(S, name)
