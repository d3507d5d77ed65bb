"""The intruder matrix: each identity tries every subject, reply subject and header, and gets nothing beyond its table.

Nothing runs but the server: what is stored, changed or delivered is the server's own doing. `test_secured_system` has
the services.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator

import pytest

from tests.secured import PEOPLE, RUNNERS, Secured, secured
from tests.system.intruding import WIDE, Heard, Refusals, allowed, everything, holdings, stored_since
from tests.waiting import wait_until
from turngate.auth.directory import ADMIN
from turngate.auth.server_config import access_of
from turngate.jetstream.connect import NotPermitted
from turngate.jetstream.pools import ensure_pool
from turngate.jetstream.provision import provision
from turngate.jetstream.request import JetStreamError, Requester
from turngate.runner.mail import is_mail
from turngate_contracts.headers import block
from turngate_contracts.permissions import Access, Kind
from turngate_contracts.service_permissions import SERVICES

OUTSIDERS = ("r1", "ann", "vic", "console")
EVERYBODY = (*OUTSIDERS, *SERVICES)
VICTIM = {
    "runner": "r2",
    "caller": "r2",
    "pool": "gpu",
    "session": "s1",
    "task": "t1",
    "kind": "card",
    "role": "worker",
}
OTHER_PERSON = VICTIM | {"caller": "bob"}
SEEDED = "victim"


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """A secured server with something of everybody's in each stream."""
    with secured(tmp_path_factory.mktemp("intruders")) as made:
        asyncio.run(_seed(made))
        yield made


async def _seed(system: Secured) -> None:
    async with system.as_(ADMIN) as admin:
        await provision(admin, system.topology)
        for pool in ("web", "gpu"):
            await ensure_pool(admin, system.topology, pool, ["worker", "critic", "audit", "recovery"])
        s = system.subjects
        for subject in (
            *(s.turn_report("web", "r2", SEEDED), s.task_finished("web", "r2", SEEDED), s.esm_result("r2", SEEDED)),
            *(s.prompt("web", SEEDED), s.prompt("gpu", SEEDED), s.presence("r2"), s.timer_due("question", SEEDED)),
            *(s.revision(bucket, SEEDED, wants=False) for bucket in ("turns", "questions", "objectives")),
            *(s.key("conclusions", f"{SEEDED}.t"), s.key("inbox", f"card.{SEEDED}"), s.dead_letter("TG_TURNS", "l1")),
        ):
            await admin.publish(subject, b'{"of":"somebody else"}')
        await wait_until(lambda: _sourced(admin, system, 4), why="the states are sourced into the events")


async def _sourced(admin: Requester, system: Secured, count: int) -> bool:
    info = await admin.api(f"STREAM.INFO.{system.subjects.stream('events')}")
    return int(info["state"]["messages"]) >= count


@pytest.fixture
async def admin(system: Secured) -> AsyncIterator[Requester]:
    async with system.as_(ADMIN) as requester:
        yield requester


def _access(system: Secured, name: str) -> Access:
    listed = system.directory.listed()
    return access_of(listed.topology, next(each for each in listed.identities if each.name == name))


@pytest.mark.parametrize("name", EVERYBODY)
async def test_what_is_not_in_the_table_is_refused_and_nothing_of_it_is_stored_or_heard(
    system: Secured, admin: Requester, name: str
):
    tried = everything(system.topology, VICTIM) | everything(system.topology, OTHER_PERSON)
    refused = tried - allowed(_access(system, name).publish, tried)
    heard, before = Heard(), await holdings(admin, system.topology)
    await admin.connection.listen(">", heard)

    async with system.as_(name) as intruder:
        refusals = Refusals(intruder.connection)
        for subject in refused:
            intruder.connection.send(subject, b'{"mark":"intruder"}', f"_INBOX.{name}.x")
        await intruder.connection.flush()
        await wait_until(lambda: len(refusals.publishes) >= len(refused), why="each is refused")

    assert len(refused) > 300
    assert refusals.publishes == {subject.lower() for subject in refused}
    assert [subject for subject in heard.subjects if subject in refused] == []
    assert stored_since(before, await holdings(admin, system.topology)) == set()


@pytest.mark.parametrize("name", EVERYBODY)
async def test_nobody_hears_what_is_for_others(system: Secured, admin: Requester, name: str):
    access = _access(system, name)
    tried = everything(system.topology, VICTIM) | set(WIDE) | {"_INBOX.r2.>", "_INBOX.>", "tg.runner.*.stat", "$SRV.>"}
    refused = tried - allowed(access.subscribe, tried)

    async with system.as_(name) as intruder:
        heard = Heard()
        for subject in refused:
            # All at once: `listen` would wait for the server's answer to each.
            await intruder.connection.subscribe(subject)
        await intruder.connection.flush()
        with pytest.raises(NotPermitted):
            await intruder.connection.listen("tg.to.r2.verdict", heard)
        told = len(
            [text for text in system.server.log_file.read_text().splitlines() if "Subscription Violation" in text]
        )
        for subject in ("tg.to.r2.verdict", "_INBOX.r2.x", "tg.work.gpu.prompt.x1", "tg.api.turn.answer.bob"):
            admin.connection.send(subject, b"secret")
        await admin.connection.flush()
        await intruder.connection.flush()
        assert intruder.connection.stats["in_msgs"] == 0
    assert told >= len(refused)


@pytest.mark.parametrize("name", OUTSIDERS)
async def test_a_reply_subject_never_lands_in_a_stream_nor_reaches_a_service(
    system: Secured, admin: Requester, name: str
):
    access = _access(system, name)
    subjects = allowed(access.publish, everything(system.topology, VICTIM | _own(name)))
    targets = _targets(system)
    asked, landed = Heard(), Heard()

    def answer(subject: bytes, reply: bytes, body: bytes, head: bytes) -> None:
        asked(subject, reply, body, head)
        admin.connection.send(reply.decode(), b'{"answer":"of a service"}', headers=block({"Turngate-Schema": "x.v1"}))

    await admin.connection.listen(f"{system.subjects.namespace}.api.>", answer)
    for target in targets:
        if not target.startswith("$JS.ACK."):
            await admin.connection.listen(target.replace("$JS.CORE.API", "$JS.API"), landed)
    before = await holdings(admin, system.topology)
    async with system.as_(name) as intruder:
        pulled = b'{"batch":1,"no_wait":true}'
        for subject in subjects:
            for target in targets:
                intruder.connection.send(subject, pulled if "MSG.NEXT" in subject else b"{}", target)
        await intruder.connection.flush()
        await admin.connection.flush()
        await intruder.connection.flush()
        new = stored_since(before, await _quiet(admin, system))

    assert new <= subjects, "only what the identity may publish anyway"
    own = subjects | {subject.replace("$JS.CORE.API", "$JS.API") for subject in subjects}
    assert [subject for subject in landed.subjects if subject not in own] == []
    assert {reply[:4] for reply in asked.replies} <= {"_R_."}, "services answer at the server's own subjects"
    assert asked.replies


async def test_an_answer_that_a_runner_sends_to_another_s_mailbox_is_no_mail(system: Secured, admin: Requester):
    mailbox = Heard()
    await admin.connection.listen("tg.api.>", lambda _s, reply, _b, _h: admin.connection.send(reply.decode(), b"{}"))
    async with system.as_("r2") as victim, system.as_("r1") as intruder:
        await victim.connection.listen(system.subjects.mailbox_all("r2"), mailbox)
        intruder.connection.send("tg.turn.report.web.r1.s1", b"{}", "tg.to.r2.verdict")
        intruder.connection.send("tg.api.turn.get.r1", b"{}", "tg.to.r2.verdict")
        pull = "$JS.API.CONSUMER.MSG.NEXT.TG_WORK.prompts-web"
        intruder.connection.send(pull, b'{"batch":1,"no_wait":true}', "tg.to.r2.verdict")
        await wait_until(lambda: len(mailbox.subjects) >= 3, why="the answers get there")

    assert [head for head in mailbox.heads if is_mail(b"verdict", head)] == []


HEADERS = {
    "roll up the subject": {"Nats-Rollup": "sub"},
    "roll up the stream": {"Nats-Rollup": "all"},
    "schedule elsewhere": {
        "Nats-Schedule": "@at 2020-01-01T00:00:00Z",
        "Nats-Schedule-Target": "tg.timer.due.question.x",
    },
    "schedule a state": {"Nats-Schedule": "@every 1s", "Nats-Schedule-Target": "$KV.tg_turns.wants.victim"},
    "expire": {"Nats-TTL": "1s"},
    "never expire": {"Nats-TTL": "never"},
    "be a copy of another's": {"Nats-Msg-Id": "somebody-else-s"},
    "expect another stream": {"Nats-Expected-Stream": "KV_tg_turns"},
    "expect of another subject": {
        "Nats-Expected-Last-Subject-Sequence": "0",
        "Nats-Expected-Last-Subject-Sequence-Subject": "tg.turn.report.web.r2.>",
    },
    "begin a batch": {"Nats-Batch-Id": "b", "Nats-Batch-Sequence": "1", "Nats-Batch-Commit": "1"},
    "count": {"Nats-Incr": "5"},
    "delete": {"KV-Operation": "PURGE"},
    "mark a removal": {"Nats-Marker-Reason": "Remove"},
    "trace to another": {"Nats-Trace-Dest": "tg.esm.result.r2.s1"},
    "trace instead": {"Nats-Trace-Dest": "tg.to.r2.verdict", "Nats-Trace-Only": "true"},
    "come from another stream": {"Nats-Stream-Source": "KV_tg_turns 1 > >", "Nats-Sequence": "1"},
}


@pytest.mark.parametrize("what", HEADERS)
async def test_a_header_reaches_nothing_but_the_runner_s_own_message(system: Secured, admin: Requester, what: str):
    s = system.subjects
    own = {
        s.turn_report("web", "r1", "s1"),
        s.turn_ended("web", "r1", "s1"),
        s.task_finished("web", "r1", "s1"),
        s.esm_result("r1", "s1"),
    }
    mailbox, elsewhere = Heard(), Heard()
    await admin.connection.listen("tg.esm.result.r2.>", elsewhere)
    before = await holdings(admin, system.topology)

    async with system.as_("r2") as victim, system.as_("r1") as intruder:
        await victim.connection.listen(s.mailbox_all("r2"), mailbox)
        for subject in own:
            intruder.connection.send(subject, b"{}", "", block(HEADERS[what]))
        await intruder.connection.flush()
        new = stored_since(before, await _quiet(admin, system))

    assert new <= own
    assert (mailbox.subjects, elsewhere.subjects) == ([], [])


async def test_a_service_can_not_wipe_its_own_states_by_a_header(system: Secured, admin: Requester):
    before = await holdings(admin, system.topology)

    async with system.as_("validation") as service:
        for how in ("sub", "all"):
            with pytest.raises(JetStreamError, match="rollup not permitted"):
                await service.publish("$KV.tg_turns.rest.victim", b"{}", block({"Nats-Rollup": how}))

    assert stored_since(before, await holdings(admin, system.topology)) == set()


async def test_a_runner_takes_the_work_of_its_pools_and_acknowledges_no_other(system: Secured, admin: Requester):
    await admin.publish(system.subjects.prompt("gpu", "for-r3"), b"{}")
    async with system.as_("r3") as owner, system.as_("r1") as intruder:
        pull = "$JS.API.CONSUMER.MSG.NEXT.TG_WORK.prompts-gpu"
        # A prompt comes on its own subject, not on the reply's.
        got = Heard()
        await owner.connection.listen("_INBOX.r3.pull.>", got)
        owner.connection.send(pull, b'{"batch":1,"no_wait":true}', "_INBOX.r3.pull.1")
        await wait_until(lambda: got.subjects, why="the owner gets it")
        with pytest.raises(NotPermitted):
            await intruder.request(pull, b'{"batch":1,"no_wait":true}', timeout_ms=1_000)
        pending = await _ack_pending(admin, "prompts-gpu")
        with pytest.raises(NotPermitted):
            await intruder.request("$JS.ACK.TG_WORK.prompts-gpu.1.2.1.1.0", b"+ACK", timeout_ms=1_000)

        assert await _ack_pending(admin, "prompts-gpu") == pending == 1


async def test_a_runner_answers_only_what_it_is_asked_and_once(system: Secured, admin: Requester):
    asked = Heard()
    async with system.as_("r1") as runner, system.as_("r2") as other:
        await runner.connection.listen(system.subjects.runner_stat("r1"), asked)
        waiting = asyncio.create_task(admin.request(system.subjects.runner_stat("r1"), b"{}"))
        await wait_until(lambda: asked.replies, why="the question gets there")
        refusals = Refusals(other.connection)
        other.connection.send(asked.replies[0], b"forged")
        await other.connection.flush()
        await wait_until(lambda: refusals.publishes, why="another may not answer")
        runner.connection.send(asked.replies[0], b"true")
        assert (await waiting).body == b"true"
        own = Refusals(runner.connection)
        runner.connection.send(asked.replies[0], b"again")
        await runner.connection.flush()
        await wait_until(lambda: own.publishes, why="a second answer is refused")


async def test_people_read_events_and_nothing_else_that_is_stored(system: Secured):
    async with system.as_("vic") as viewer:
        read = "$JS.API.DIRECT.GET.TG_EVENTS"
        reply = await viewer.request(read, json.dumps({"last_by_subj": "tg.event.turns.victim"}).encode())
        assert reply.body == b'{"of":"somebody else"}'
        asked = json.dumps({"last_by_subj": "$KV.tg_inbox.card.victim"}).encode()
        assert (await viewer.request(read, asked)).head.startswith(b"NATS/1.0 404")


def test_the_matrix_has_every_kind_of_identity(system: Secured):
    kinds = {each.name: each.kind for each in system.directory.listed().identities}

    assert {kinds[name] for name in EVERYBODY} == set(Kind) - {Kind.ADMIN}
    assert set(kinds) == {ADMIN, "console", *SERVICES, *RUNNERS, *PEOPLE}


def _own(name: str) -> dict[str, str]:
    return {"runner": name, "caller": name, "pool": "web"}


def _targets(system: Secured) -> set[str]:
    """Where a reply would do harm: every stored subject, and what services listen to."""
    s = system.subjects
    return {
        *(
            s.turn_report("web", "r2", "s1"),
            s.turn_ended("web", "r2", "s1"),
            s.task_finished("web", "r2", "s1"),
            s.esm_result("r2", "s1"),
        ),
        *(s.esm_start("s1"), s.prompt("gpu", "x"), s.role_offer("gpu", "worker", "x"), s.timer_due("question", "x")),
        *(s.timer_at("question", "x"), s.presence("r2"), s.dead_letter("TG_TURNS", "x"), s.event("turns", "s1")),
        *("tg.live.turns.s1", s.mark("TG_TURNS"), s.suspect("x"), "tg.memory.check", s.runner_stat("r2")),
        *(s.revision(bucket, "s1", wants=True) for bucket in ("turns", "questions", "objectives")),
        *(s.key("conclusions", "s1"), s.key("inbox", "s1")),
        *("$JS.API.STREAM.PURGE.TG_TURNS", "$JS.API.STREAM.DELETE.KV_tg_turns", "tg.api.esm.clear.bob"),
        *("$JS.ACK.TG_TURNS.validation.1.1.1.1.0", "_INBOX.validation.x", "$SRV.PING"),
        *("$JS.CORE.API.STREAM.INFO.TG_NONE", "$JS.CORE.API.CONSUMER.INFO.TG_TURNS.validation"),
    }


async def _quiet(admin: Requester, system: Secured) -> dict[str, object]:
    """What is held once nothing more comes."""
    found = await holdings(admin, system.topology)
    while (again := await holdings(admin, system.topology)) != found:
        found = again
    return found


async def _ack_pending(admin: Requester, consumer: str) -> int:
    info = await admin.api(f"CONSUMER.INFO.TG_WORK.{consumer}")
    return int(info["num_ack_pending"])
