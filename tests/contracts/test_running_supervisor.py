"""What supervisors and runner hosts really say is what the contract says, message by message.

As in `test_running_service`: everything that crosses the server while objectives live and die is taken down, and looked
up in the generated document.
"""

import asyncio
import json
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests import esm_answers as answers
from tests.contracts.conforming import ESM_CHANNELS, asyncapi, channels_of, header_problems, problems
from tests.contracts.test_running_service import Tap, _wrong
from tests.supervised import Supervised, supervising
from tests.waiting import wait_until
from turngate.jetstream.embedded import EmbeddedServer
from turngate_contracts import codec
from turngate_contracts.asyncapi_channels import QUEUE
from turngate_contracts.beats import BeatAnswer
from turngate_contracts.catalogue import ERROR, REQUESTS
from turngate_contracts.errors import STATUS, ErrorBody
from turngate_contracts.esm import ReleaseRole, RoleReleased, StartObjective
from turngate_contracts.examples import EXAMPLES, PERSON
from turngate_contracts.headers import SCHEMA, block
from turngate_contracts.messages import SCHEMAS
from turngate_contracts.rows import Request
from turngate_contracts.topology import SUPERVISOR

OWN = [row for row in REQUESTS if row.service == SUPERVISOR]
STORED_ONLY = {"event.objectives", "timer.due.continuation", "timer.due.watchdog"}
"""Channels that nobody publishes to: the server itself fills them."""


@pytest_asyncio.fixture
async def supervised(nats_server: EmbeddedServer, namespace: str) -> AsyncIterator[Supervised]:
    async with supervising(nats_server.url, namespace) as made:
        yield made


async def test_the_endpoints_are_those_of_the_catalogue(supervised: Supervised):
    reply = await supervised.requester.request(f"$SRV.INFO.{supervised.subjects.namespace}-{SUPERVISOR}")

    endpoints = json.loads(reply.body)["endpoints"]

    assert {each["subject"]: each["metadata"]["request"] for each in endpoints} == {
        supervised.subjects.api_endpoint(row.name, by_pool=row.by_pool): SCHEMAS[row.request] for row in OWN
    }
    assert {each["queue_group"] for each in endpoints} == {QUEUE}


@pytest.mark.parametrize("row", OWN, ids=lambda row: row.name)
async def test_a_request_is_answered_with_its_reply_or_an_error_that_it_declares(supervised: Supervised, row: Request):
    request = EXAMPLES[row.request]
    head = block({SCHEMA: SCHEMAS[row.request]})

    subject = supervised.subjects.api(row.name, PERSON, "pool-1" if row.by_pool else "")
    reply = await supervised.requester.request(subject, codec.encode(request), head)

    _, fields = reply.headers()
    name = fields[SCHEMA]
    assert name in (SCHEMAS[row.reply], SCHEMAS[ERROR])
    assert header_problems(name, fields) == []
    assert problems(name, json.loads(reply.body)) == []
    if name == SCHEMAS[ERROR]:
        error = codec.decode(reply.body, ErrorBody, "an error")
        assert error.code in row.errors
        assert fields["Nats-Service-Error-Code"] == str(STATUS[error.code])


async def test_everything_about_objectives_that_crosses_the_server_is_in_the_document(supervised: Supervised):
    tap = Tap(supervised.subjects.namespace)
    await supervised.system.connection.listen(">", tap.on_message)
    expected = ESM_CHANNELS - STORED_ONLY

    await _story(supervised)

    await wait_until(lambda: tap.channels() >= expected, 20, "every channel of objectives is used")
    assert set(asyncapi()["channels"]) >= ESM_CHANNELS
    for subject, body, fields in tap.seen:
        assert channels_of(subject, tap.namespace), subject
        assert _wrong(tap.namespace, subject, body, fields) == [], subject


async def _story(supervised: Supervised) -> None:
    """One of everything: an objective that is proven, one that is blocked, commands, a lost runner, a start."""
    person, hand = await supervised.person(), await supervised.runner()
    await supervised.host({"s-*": [answers.COMPLETES | {"worker": answers.BLOCKS}] * 3 + [answers.COMPLETES]})
    await person.create("s-1", "Do all of it")
    await supervised.until_status("s-1", "blocked")
    await person.resume("s-1")
    await supervised.until_status("s-1", "complete")
    await person.create("h-1", "Do all of it", pool="by-hand")
    await person.guide("h-1", "Mind it")
    request = await hand.claim("h-1")
    await hand.client.objectives.update(
        "h-1", "blocked", "no key", run=request.run_id, generation=request.generation, pool="by-hand"
    )
    answer = await hand.beat(request, progress="looks for the key")
    assert isinstance(answer, BeatAnswer)
    await person.edit("h-1", "Do half of it")
    request = await hand.claim("h-1")
    released = ReleaseRole("h-1", request.run_id, request.generation, request.claim_id)
    await hand.client.call("role.release", released, RoleReleased)
    await person.configure("h-1", mode="fast")
    await person.pause("h-1")
    await person.run("h-1")
    await asyncio.gather(person.get("h-1"), person.page(), person.history_page("h-1"), person.runners())
    start = StartObjective("h-1", "cron", "op-1")
    head = block({SCHEMA: SCHEMAS[StartObjective]})
    await supervised.requester.publish(supervised.subjects.esm_start("h-1"), codec.encode(start), head)
    await person.clear("h-1")
