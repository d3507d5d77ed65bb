"""What may kill its process is handled alone; what killed it often enough is buried; everything else is handled."""

from tests.services.jetstream.queues import Queue
from tests.services.jetstream.test_deadletter import dead, make_dead
from tests.waiting import wait_until
from turngate.clock import system_clock
from turngate.jetstream.connect import Connection
from turngate.jetstream.consume import ConsumeLoop, Delivery
from turngate.jetstream.deadletter import DeadLetters
from turngate.jetstream.direct import read_newest
from turngate.jetstream.request import Requester
from turngate.jetstream.suspects import KILLS, Suspects
from turngate_contracts import codec
from turngate_contracts.dead import DeadLetter, FoundBy
from turngate_contracts.errors import ErrorCode
from turngate_contracts.subjects import Subjects
from turngate_contracts.topology import Topology


class Careful:
    """A queue with what stands between it and its handler; trusted are only first deliveries."""

    def __init__(self, connection: Connection, requester: Requester, subjects: Subjects, queue: Queue) -> None:
        self.queue = queue
        self.requester = requester
        self.subjects = subjects
        self.held: list[Delivery] = []
        letters = DeadLetters(requester, subjects, system_clock())
        self.suspects = Suspects(letters, queue.stream, self.held.append, trusted=1)
        self.loop = ConsumeLoop(connection, queue.stream, queue.consumer, self.suspects.on_delivery)

    async def make_suspects(self, count: int) -> None:
        """Have messages delivered for the second time."""
        for number in range(count):
            await self.requester.publish(f"{self.queue.subject[:-1]}{number}", b"")
        await self.loop.start()
        await wait_until(lambda: len(self.held) == count, why="all were delivered once, beside each other")
        while self.held:
            self.held.pop().nak(1)

    async def notes(self) -> list[bytes]:
        stream = self.subjects.stream("suspects")
        return [stored.body for stored in await read_newest(self.requester, stream, [self.subjects.suspects()])]


async def careful(connection: Connection, requester: Requester, subjects: Subjects) -> Careful:
    await make_dead(requester, subjects)
    config = next(each for each in Topology(subjects).streams() if each["name"] == subjects.stream("suspects"))
    await requester.api(f"STREAM.CREATE.{config['name']}", config)
    return Careful(connection, requester, subjects, await Queue.make(requester, subjects.namespace))


async def test_suspects_are_handled_one_after_the_other(
    connection: Connection, requester: Requester, subjects: Subjects
) -> None:
    made = await careful(connection, requester, subjects)
    await made.make_suspects(3)

    for left in (3, 2, 1):
        await wait_until(lambda: len(made.held) == 1, why="one is handled")
        assert await made.queue.unfinished() == left
        made.held.pop().ack()

    await wait_until(made.queue.is_empty)
    await made.loop.stop()


async def test_a_note_is_taken_back_however_the_handling_ends(
    connection: Connection, requester: Requester, subjects: Subjects
) -> None:
    made = await careful(connection, requester, subjects)
    await made.make_suspects(1)
    await wait_until(lambda: made.held, why="it is handled alone")
    assert await made.notes() == [b"1"]

    made.held.pop().nak(1)

    await wait_until(lambda: made.held, why="it comes again")
    made.held.pop().ack()
    await wait_until(lambda: _all_zero(made), why="the note is taken back")
    await made.loop.stop()


async def test_a_slow_suspect_does_not_hold_up_the_others_for_long(
    connection: Connection, requester: Requester, subjects: Subjects
) -> None:
    made = await careful(connection, requester, subjects)
    await made.make_suspects(2)

    await wait_until(lambda: len(made.held) == 2, why="the second does not wait for the first")

    while made.held:
        made.held.pop().ack()
    await wait_until(made.queue.is_empty)
    await made.loop.stop()


async def test_what_was_noted_too_often_is_buried_untouched(
    connection: Connection, requester: Requester, subjects: Subjects
) -> None:
    made = await careful(connection, requester, subjects)
    await made.make_suspects(1)
    await wait_until(lambda: made.held, why="it is handled alone")
    (stored,) = await read_newest(requester, subjects.stream("suspects"), [subjects.suspects()])
    # As three processes leave it that ended while they handled it: noted, and never taken back.
    killer = made.held.pop()
    killer.on_end = None
    await requester.publish(stored.subject, b"%d" % KILLS)
    made.suspects._end(killer)

    killer.nak(1)

    await wait_until(made.queue.is_empty)
    assert made.held == []
    letter = codec.decode((await dead(requester, subjects))[0].body, DeadLetter, "a DeadLetter")
    assert (letter.reason.code, letter.found_by) == (ErrorCode.PROCESS_KILLED, FoundBy.LOOP)
    await made.loop.stop()


async def _all_zero(made: Careful) -> bool:
    return await made.notes() == [b"0"]
