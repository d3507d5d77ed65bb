"""Stored messages are read in pages without a consumer; nothing is left out without a word."""

import asyncio

import pytest

from tests.services.jetstream.raw import RawClient
from turngate.jetstream import direct
from turngate.jetstream.connect import Connection
from turngate.jetstream.direct import NotServed, Stored, read_newest, read_page, read_subjects
from turngate.jetstream.request import NoResponders, Requester
from turngate_contracts import headers as h

MALFORMED = [b"NATS/1.0", b"NATS/1.0\r\n", b"\r\n\r\n", b"NATS/1.0 \xff\r\n\r\n", b"NATS/1.0\r\nA: b", b"A: b\r\n\r\n"]


class Stream:
    """A stream with direct gets."""

    def __init__(self, requester: Requester, namespace: str) -> None:
        self.requester = requester
        self.name = f"{namespace}_STREAM".upper()
        self.prefix = f"{namespace}.s"
        self.all = f"{self.prefix}.>"

    async def publish(self, *keys: str, body: bytes = b"x", head: bytes = b"") -> None:
        for key in keys:
            await self.requester.publish(f"{self.prefix}.{key}", body, head)

    async def page(self, after: int, count: int, keys: str = ">") -> tuple[list[str], bool]:
        found, more = await read_page(self.requester, self.name, after, count, f"{self.prefix}.{keys}")
        return self.keys(found), more

    async def newest(self, *keys: str) -> list[Stored]:
        return await read_newest(self.requester, self.name, [f"{self.prefix}.{key}" for key in keys])

    def keys(self, found: list[Stored]) -> list[str]:
        return [stored.subject.removeprefix(f"{self.prefix}.") for stored in found]


@pytest.fixture
async def stream(requester: Requester, namespace: str) -> Stream:
    made = Stream(requester, namespace)
    config = {"name": made.name, "subjects": [made.all], "storage": "file", "allow_direct": True}
    await requester.api(f"STREAM.CREATE.{made.name}", config)
    return made


# Pages


async def test_a_page_holds_the_oldest_messages_after_a_sequence(stream: Stream) -> None:
    await stream.publish("a", "b", "c", "d")

    assert await stream.page(0, 2) == (["a", "b"], True)
    assert await stream.page(2, 2) == (["c", "d"], False)
    assert await stream.page(4, 2) == ([], False)
    assert await stream.page(99, 2) == ([], False)


async def test_an_empty_stream_has_an_empty_page(stream: Stream) -> None:
    assert await stream.page(0, 2) == ([], False)


async def test_a_page_holds_what_matches_only(stream: Stream) -> None:
    await stream.publish("a.1", "b.1", "a.2", "b.2", "a.3")

    assert await stream.page(0, 2, "a.*") == (["a.1", "a.2"], True)
    assert await stream.page(3, 2, "a.*") == (["a.3"], False)


async def test_deleted_messages_are_passed_over(stream: Stream) -> None:
    await stream.publish("a", "b", "c")
    await stream.requester.api(f"STREAM.MSG.DELETE.{stream.name}", {"seq": 2})

    assert await stream.page(0, 10) == (["a", "c"], False)


async def test_a_page_ends_after_so_many_bytes(stream: Stream, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(direct, "PAGE_BYTES", 2500)
    await stream.publish("a", "b", "c", "d", body=b"x" * 1000)
    await stream.publish("large", body=b"x" * 10_000)

    found, more = await stream.page(0, 10)

    assert (found, more) == (["a", "b", "c"], True)
    assert await stream.page(3, 10) == (["d", "large"], False)
    assert await stream.page(4, 10) == (["large"], False)


async def test_a_stored_message_knows_its_place_and_keeps_its_headers(stream: Stream) -> None:
    await stream.publish("a", body=b"1", head=h.block({"A": "b"}))
    await stream.publish("b", body=b"", head=h.block({"A": "c"}))

    found, _ = await read_page(stream.requester, stream.name, 0, 10, stream.all)

    assert [(stored.sequence, stored.body, stored.fields["A"]) for stored in found] == [(1, b"1", "b"), (2, b"", "c")]


async def test_headers_of_a_message_can_not_forge_its_place(stream: Stream) -> None:
    forged = {"Nats-Sequence": "99", "Nats-Subject": "other", "Nats-Num-Pending": "7", "Nats-Last-Sequence": "98"}
    await stream.publish("a", body=b"", head=h.block(forged))

    found, more = await read_page(stream.requester, stream.name, 0, 10, stream.all)

    assert [(stored.sequence, stored.subject) for stored in found] == [(1, f"{stream.prefix}.a")]
    assert not more


@pytest.mark.parametrize("head", MALFORMED)
@pytest.mark.parametrize("body", [b"", b"x"])
async def test_a_message_with_a_malformed_header_block_hides_no_other(
    stream: Stream, raw: RawClient, head: bytes, body: bytes
) -> None:
    await stream.publish("a")
    await raw.publish(f"{stream.prefix}.bad".encode(), body, headers=head)
    await stream.publish("b")

    found, more = await stream.page(0, 10)
    newest = await stream.newest("a", "bad", "b")

    assert ([key for key in found if key != "bad"], more) == (["a", "b"], False)
    assert [key for key in stream.keys(newest) if key != "bad"] == ["a", "b"]


async def test_a_subject_that_is_not_utf8_hides_no_other(stream: Stream, raw: RawClient) -> None:
    await stream.publish("a")
    await raw.publish(f"{stream.prefix}.".encode() + b"\xff", b"x")
    await stream.publish("b")

    assert await stream.page(0, 10) == (["a", "\ufffd", "b"], False)


# The newest of many


async def test_the_newest_of_each_subject_is_read_and_others_are_left_out(stream: Stream) -> None:
    await stream.publish("a", "b", "c", body=b"1")
    await stream.publish("a", body=b"2")

    found = await stream.newest("a", "b", "unknown")

    assert [(stored.sequence, stored.body) for stored in found] == [(2, b"1"), (4, b"2")]
    assert await stream.newest("unknown") == []
    assert await stream.newest() == []


async def test_the_newest_of_thousands_are_read(stream: Stream) -> None:
    keys = [f"k{number}" for number in range(2500)]
    await asyncio.gather(*(stream.publish(key) for key in keys))

    assert sorted(stream.keys(await stream.newest(*keys, "unknown"))) == sorted(keys)


async def test_the_newest_are_read_however_large_they_are(stream: Stream, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(direct, "PAGE_BYTES", 2500)
    keys = [f"k{number}" for number in range(20)]
    for size in (10, 1000):
        await stream.publish(*keys, body=b"x" * size)
    await stream.publish("k7", body=b"x" * 10_000)

    found = await stream.newest(*keys)

    assert sorted(stream.keys(found)) == sorted(keys)
    assert sorted({len(stored.body) for stored in found}) == [1000, 10_000]


async def test_a_subject_is_returned_once_though_it_is_written_meanwhile(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(direct, "PAGE_BYTES", 2500)
    keys = [f"k{number}" for number in range(50)]
    await stream.publish(*keys, body=b"x" * 1000)

    found, _ = await asyncio.gather(stream.newest(*keys), stream.publish(*keys, body=b"y" * 1000))

    assert sorted(stream.keys(found)) == sorted(keys)


async def test_the_subjects_of_a_stream_are_named_sorted(stream: Stream) -> None:
    assert await read_subjects(stream.requester, stream.name, stream.all) == []

    await stream.publish("b.1", "a.2", "a.1", "a.1")

    assert await read_subjects(stream.requester, stream.name, f"{stream.prefix}.a.*") == [
        f"{stream.prefix}.a.1",
        f"{stream.prefix}.a.2",
    ]


# What goes wrong


async def test_a_stream_that_does_not_exist_is_told(requester: Requester) -> None:
    with pytest.raises(NoResponders):
        await read_page(requester, "NONE", 0, 10, ">")
    with pytest.raises(NoResponders):
        await read_newest(requester, "NONE", ["x"])


@pytest.mark.parametrize("status", ["408 Bad Request", "413 Too Many Results", "429 Too Many Requests"])
async def test_a_refusal_is_not_taken_for_an_empty_page(
    connection: Connection, requester: Requester, namespace: str, status: str
) -> None:
    def refuse(_subject: bytes, reply: bytes, _body: bytes, _head: bytes) -> None:
        connection.send(reply.decode(), b"", headers=f"NATS/1.0 {status}\r\n\r\n".encode())

    await connection.listen(f"$JS.API.DIRECT.GET.{namespace}", refuse)

    with pytest.raises(NotServed, match=status):
        await read_page(requester, namespace, 0, 10, ">")
    with pytest.raises(NotServed, match=status):
        await read_newest(requester, namespace, ["x"])
