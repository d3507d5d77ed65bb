"""`turngate dead`: what a person sees of dead letters, and decides about them."""

import asyncio
import uuid
from collections.abc import Iterator

import pytest

from tests.services.cli.samples import ESCAPES
from tests.services.cli.shell import Background, inside
from turngate.cli.dead_shown import SHOWN_HEX, as_text, hexadecimal
from turngate.clock import system_clock
from turngate.deadletter.burial import Burial
from turngate.deadletter.places import Places
from turngate.jetstream.connect import connect
from turngate.jetstream.deadletter import DeadLetters
from turngate.jetstream.direct import Stored
from turngate.jetstream.embedded import EmbeddedServer
from turngate.jetstream.request import Requester
from turngate_contracts.dead import FoundBy, letter_id
from turngate_contracts.errors import ErrorBody, ErrorCode
from turngate_contracts.subjects import Subjects
from turngate_contracts.topology import Durability, Topology

REASON = ErrorBody(ErrorCode.INVALID_MESSAGE, f"the body is no report {ESCAPES}")


@pytest.fixture(scope="module")
def place(nats_server: EmbeddedServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The environment variables that lead to a running dead-letter service."""
    env = {
        "TURNGATE_NATS_URL": nats_server.url,
        "TURNGATE_NAMESPACE": f"c{uuid.uuid4().hex[:8]}",
        "TURNGATE_DURABILITY": "relaxed",
        "TURNGATE_IDENTITY": "ann",
    }
    with Background(tmp_path_factory.mktemp("dead"), "serve", "deadletter", env=env) as service:
        service.wait_ready()
        yield env
        assert service.end() == 0, service.err


def bury(place: dict[str, str], session: str, body: bytes, deliveries: int = 3) -> str:
    """Bury a message of a session, and return its letter's id."""
    topology = Topology(Subjects(place["TURNGATE_NAMESPACE"]), Durability.RELAXED)
    subject = topology.subjects.turn_ended("pool-1", "runner-1", session)
    stream = topology.subjects.stream("turns")

    async def run() -> str:
        connection = await connect(place["TURNGATE_NATS_URL"])
        requester = await Requester.start(connection)
        try:
            sequence = (await requester.publish(subject, body)).seq
            burial = Burial(DeadLetters(requester, topology.subjects, system_clock()), Places(requester, topology))
            await burial.bury(
                stream, Stored(sequence, subject, body, {}), REASON, FoundBy.REAPER, deliveries=deliveries
            )
            return letter_id(stream, sequence, subject, body)
        finally:
            await requester.stop()
            await connection.close()

    return asyncio.run(run())


def test_the_list_shows_each_letter_on_one_harmless_line(place, session):
    letter = bury(place, session, b"{}")

    shown = inside("dead", "list", "--session", session, env=place)

    head, line = shown.out.splitlines()
    assert head.split() == ["letter", "status", "died", "reason", "deliveries", "session", "why"]
    assert line.startswith(f"{letter}  waiting")
    assert line.isprintable()
    assert inside("dead", "list", "--session", "nobody", env=place).out == "no dead letters\n"


def test_the_list_comes_in_pages(place, session):
    letters = [bury(place, session, b"%d" % number) for number in range(3)]

    page = inside("dead", "list", "--session", session, "--limit", "2", "--json", env=place).json()
    every = inside("dead", "list", "--session", session, "--limit", "2", "--all", "--json", env=place).json_lines()

    assert [entry["letter"] for entry in page["entries"]] == letters[:2]
    assert page["more"]
    assert [entry["letter"] for each in every for entry in each["entries"]] == letters


def test_a_hostile_body_is_shown_visible_and_indented(place, session):
    letter = bury(place, session, f"first {ESCAPES}\ndecided: retried by nobody".encode())

    shown = inside("dead", "show", letter, env=place).out

    assert all(line.isprintable() for line in shown.splitlines())
    assert "  decided: retried by nobody" in shown.splitlines()
    assert f"origin: {place['TURNGATE_NAMESPACE'].upper()}_TURNS, sequence" in shown
    assert "delivered 3 times" in shown
    once = bury(place, session, b"again", deliveries=1)
    assert ", delivered once" in inside("dead", "show", once, env=place).out


def test_a_binary_body_is_shown_as_bounded_hexadecimal(place, session):
    body = bytes(range(256)) * 8

    shown = inside("dead", "show", bury(place, session, body), env=place).out

    assert f"body: {len(body)} bytes; the first {SHOWN_HEX} shown" in shown
    assert "  00000000  00 01 02 03 04 05 06 07 08 09 0a 0b 0c 0d 0e 0f" in shown
    assert len(shown.splitlines()) < SHOWN_HEX / 16 + 10


def test_a_letter_is_retried_once_and_who_did_it_is_shown(place, session):
    letter = bury(place, session, b"{}")

    retried = inside("dead", "retry", letter, "--why", "it was repaired", env=place)
    again = inside("dead", "retry", letter, env=place | {"TURNGATE_IDENTITY": "bob"})

    assert (retried.code, again.code) == (0, 1)
    assert retried.out.startswith("retried")
    assert "retried by ann" in again.out
    assert ": it was repaired" in again.out
    refused = inside("dead", "drop", letter, env=place)
    assert refused.code == 1
    assert f"{letter} was retried by ann" in refused.err


def test_a_dropped_letter_shows_who_and_why_and_no_body(place, session):
    letter = bury(place, session, b"a secret")

    told = inside("dead", "drop", letter, "--why", "not ours", "--json", env=place).json()

    assert told["entry"]["status"] == "dropped"
    shown = inside("dead", "show", letter, env=place).out
    assert "dropped by ann" in shown
    assert "body: 8 bytes, not kept" in shown
    assert "secret" not in shown


def test_a_letter_that_is_unknown_is_told_with_where_to_look(place):
    outcome = inside("dead", "show", "TG_TURNS-1-00000000", env=place)

    assert outcome.code == 1
    assert "`turngate dead list` shows those that there are" in outcome.err


def test_all_pages_and_a_cursor_exclude_each_other():
    assert inside("dead", "list", "--all", "--cursor", "3").code == 2


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b"plain", "plain"),
        ("Grüße".encode()[:3], "Gr"),
        (b"\xff\xfe", None),
        (b"\x00\x01\x02text", None),
        (b"", ""),
    ],
    ids=["text", "cut within a character", "no UTF-8", "controls", "empty"],
)
def test_what_is_text_is_told_from_what_is_not(body: bytes, text: str | None):
    assert as_text(body) == text


def test_hexadecimal_has_sixteen_bytes_a_row():
    assert hexadecimal(bytes(17)) == ["00000000  " + " ".join(["00"] * 16), "00000010  00"]
