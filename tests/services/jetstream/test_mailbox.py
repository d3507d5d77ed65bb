"""A nudge arrives when it can, and never stands in anybody's way."""

from tests.waiting import wait_until
from turngate.jetstream.connect import Connection
from turngate.jetstream.embedded import EmbeddedServer
from turngate.jetstream.mailbox import Mailboxes
from turngate_contracts import codec
from turngate_contracts.headers import SCHEMA, block
from turngate_contracts.messages import TurnAnswered
from turngate_contracts.subjects import Subjects

NUDGE = TurnAnswered("session", 1)


async def test_a_nudge_arrives_in_the_runner_s_mailbox(connection: Connection, subjects: Subjects) -> None:
    heard: list[tuple[bytes, bytes, bytes]] = []
    await connection.listen(subjects.mailbox_all("runner"), lambda s, _, body, head: heard.append((s, body, head)))

    Mailboxes(connection, subjects).nudge("runner", "answered", NUDGE)
    Mailboxes(connection, subjects).nudge("other", "answered", NUDGE)
    await wait_until(lambda: heard)
    await connection.flush()

    subject = subjects.mailbox("runner", "answered").encode()
    assert heard == [(subject, codec.encode(NUDGE), block({SCHEMA: "turn_answered.v1"}))]


async def test_a_nudge_to_nobody_is_forgotten(connection: Connection, subjects: Subjects) -> None:
    Mailboxes(connection, subjects).nudge("nobody", "answered", NUDGE)
    await connection.flush()

    assert connection.stats["reconnects"] == 0


async def test_a_nudge_that_is_too_large_is_forgotten(connection: Connection, subjects: Subjects) -> None:
    large = TurnAnswered("x" * connection.max_payload, 1)

    Mailboxes(connection, subjects).nudge("runner", "answered", large)
    await connection.flush()

    assert connection.stats["reconnects"] == 0


async def test_a_nudge_while_disconnected_is_forgotten(
    own_connection: Connection, own_server: EmbeddedServer, subjects: Subjects
) -> None:
    own_server.kill()
    await wait_until(lambda: not own_connection.is_connected)

    Mailboxes(own_connection, subjects).nudge("runner", "answered", NUDGE)

    assert not own_connection.is_closed
