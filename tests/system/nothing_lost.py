"""What "nothing lost" means once the faults have stopped: each account that a client holds agrees with the server's.

- Every attempt has exactly one verdict in the history of its session, and it is the one that its runner was told.
- Whoever asks again, or sends the same attempt again, is told the same, and nothing changes by it.
- The newest revision of each session is the replay of its history, and its newest event.
- Nothing is left in the queues but what is decided; every prompt is there once; the inbox lists what waits.
"""

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from tests.system.ledger import Ledger, Number, Reported, submit
from tests.system.observer import Observer
from tests.system.patience import each, patiently
from tests.system.replay import replayed
from turngate.jetstream.direct import Stored
from turngate.jetstream.events import StreamEvent
from turngate_contracts import codec
from turngate_contracts.messages import ReportSubmitted, TurnEnded, Verdict
from turngate_protocol.report.problems import Problem
from turngate_protocol.report.session import NO_REPORT, Prompt, SessionTurns
from turngate_protocol.report.turn import remember

SENT_AGAIN: Final = 3
"""Of so many attempts one is sent again: each costs as much as the first time."""

Verdicts = dict[Number, set[tuple[str, str, int]]]
"""For each attempt, every (content digest, outcome, time) that any revision gives it."""


async def assert_nothing_lost(observer: Observer, ledger: Ledger) -> None:
    """Settle the accounts of a test; the faults are over and the load has ended."""
    await assert_the_server_agrees(observer, ledger)
    await assert_the_same_is_told_again(observer, ledger)


async def assert_the_server_agrees(observer: Observer, ledger: Ledger) -> None:
    """Fail when what the server holds is not what the clients were told."""
    await observer.hasten()
    await observer.quiet()
    await assert_leftovers_are_decided(observer, ledger)
    await observer.events_are_complete()
    history = await observer.history(observer.turns)
    assert_one_verdict_each(ledger, history)
    await assert_newest_is_the_replay(observer, ledger, history)
    assert_events_tell_all(history, await observer.events())
    await assert_prompts_are_there_once(observer, ledger)
    await assert_inbox_lists_what_waits(observer, history)
    await assert_no_dead_letters(observer)
    await observer.assert_sequences_rise()


def assert_one_verdict_each(ledger: Ledger, history: dict[str, list[Stored]]) -> None:
    """Fail when an attempt has no verdict in the state, or more than one, or not the one that was told."""
    given = verdicts_in(history)
    lost = [number for number in ledger.reports if number not in given]
    assert not lost, f"{len(lost)} of {len(ledger.reports)} attempts have no verdict in the state, such as {lost[:5]}"
    several = {number: found for number, found in given.items() if len(found) > 1}
    assert not several, f"{len(several)} attempts have several verdicts, such as {list(several.items())[:3]}"
    strangers = [number for number in given if number not in ledger.reports]
    assert not strangers, f"{len(strangers)} verdicts are for attempts that nobody sent: {strangers[:5]}"
    for number, entry in ledger.reports.items():
        assert entry.verdict is not None, f"the runner never learned the verdict of {number}"
        ((_, outcome, at),) = given[number]
        told = (entry.verdict.outcome.value, entry.verdict.at)
        assert told == (outcome, at), f"the runner was told {told} about {number}, the state says {(outcome, at)}"


def verdicts_in(history: dict[str, list[Stored]]) -> Verdicts:
    """Return every verdict that any revision of any session gives."""
    given: Verdicts = {}
    for session, revisions in history.items():
        for revision in revisions:
            state = codec.decode(revision.body, SessionTurns, "a session's state")
            for turn in (remember(state.current), *state.history):
                for known in turn.attempts:
                    fact = (known.digest, known.outcome.value, known.at)
                    given.setdefault((session, turn.turn, known.attempt), set()).add(fact)
    return given


async def assert_newest_is_the_replay(observer: Observer, ledger: Ledger, history: dict[str, list[Stored]]) -> None:
    """Fail when a session's newest revision is not what its history makes it."""
    newest = await observer.newest(observer.turns, history)
    for session, revisions in history.items():
        state = replayed(session, revisions, ledger)
        assert newest[session].revision == revisions[-1].sequence, f"{session} has a newer revision than its history"
        assert newest[session].value == codec.encode(state), f"{session} is not the replay of its history"
    gone = ledger.sessions - history.keys()
    assert not gone, f"{len(gone)} sessions are unknown to the bucket, such as {sorted(gone)[:5]}"


def assert_events_tell_all(history: dict[str, list[Stored]], events: Sequence[StreamEvent]) -> None:
    """Fail when the events are not the revisions: every one once, in order, the newest last."""
    cursors = [event.cursor for event in events]
    assert cursors == sorted(set(cursors)), "the events' sequences do not rise"
    told: dict[str, list[bytes]] = {}
    for event in events:
        if event.kind == "turns":
            told.setdefault(event.key, []).append(event.data)
    for session, revisions in history.items():
        seen = told.get(session, [])
        assert seen, f"{session} has no event"
        assert seen[-1] == revisions[-1].body, f"the newest state of {session} is not its newest event"
        assert seen == [r.body for r in revisions], (
            f"{session} has {len(revisions)} revisions, and {len(seen)} events that are not these, once and in order"
        )
    strangers = told.keys() - history.keys()
    assert not strangers, f"events tell of sessions that the bucket does not have: {sorted(strangers)[:5]}"


async def assert_leftovers_are_decided(observer: Observer, ledger: Ledger) -> None:
    """Fail when the intake holds a message that was not decided.

    A server that was killed may leave messages at or below its consumer's ack floor, which are never delivered again:
    their acknowledgements were lost with the kill, their effects were not.
    """
    stream = observer.subjects.stream("turns")
    floor = (await observer.consumer(stream, "validation"))["ack_floor"]["stream_seq"]
    left = [stored async for stored in observer.messages(stream, f"{observer.subjects.namespace}.turn.>")]
    if left:
        print(f"{len(left)} messages were left in the intake, at or below the ack floor {floor}")
    for stored in left:
        assert stored.sequence <= floor, f"message {stored.sequence} is still to be delivered, the floor is {floor}"
        assert _was_told(stored, ledger), f"message {stored.sequence} is in the intake for ever and was not decided"


def _was_told(stored: Stored, ledger: Ledger) -> bool:
    if ".turn.report." in stored.subject:
        report = codec.decode(stored.body, ReportSubmitted, "a ReportSubmitted")
        return ledger.reports[report.session, report.turn, report.attempt].verdict is not None
    ended = codec.decode(stored.body, TurnEnded, "a TurnEnded")
    return ledger.endings[ended.session, ended.turn, ended.ending].outcome is not None


async def assert_prompts_are_there_once(observer: Observer, ledger: Ledger) -> None:
    """Fail when a pool lacks a prompt, has one twice, or has one that nobody wanted."""
    stream = observer.subjects.stream("work")
    subjects = f"{observer.subjects.namespace}.work.>"
    found = [codec.decode(stored.body, Prompt, "a Prompt").id async for stored in observer.messages(stream, subjects)]
    assert len(found) == len(set(found)), "a prompt is in the pool's queue twice"
    lost, odd = ledger.expected_prompts - set(found), set(found) - ledger.expected_prompts
    assert not odd, f"{len(odd)} prompts were sent that nobody asked for, such as {sorted(odd)[:5]}"
    # What a service sent is still held where the card of its session was left open.
    held = await _held(observer, {ledger.prompts[p].session for p in lost if p in ledger.prompts})
    assert lost == held, f"{len(lost - held)} prompts were lost, such as {sorted(lost - held)[:5]}"


async def _held(observer: Observer, sessions: Iterable[str]) -> set[str]:
    newest = await observer.newest(observer.turns, sessions)
    states = (codec.decode(entry.value or b"", SessionTurns, "a session's state") for entry in newest.values())
    return {prompt.id for state in states for prompt in state.held}


async def assert_inbox_lists_what_waits(observer: Observer, history: dict[str, list[Stored]]) -> None:
    """Fail when the inbox lists other sessions than those whose card waits for a person."""
    states = (codec.decode(revisions[-1].body, SessionTurns, "a state") for revisions in history.values())
    waiting = {state.session for state in states if state.waiting}
    entries, cursor, more = await observer.inbox.page(0, 100_000)
    assert not more, f"the inbox has more than {len(entries)} entries at {cursor}"
    listed = {entry.key.removeprefix("card.") for entry in entries}
    assert listed == waiting, (
        f"the inbox lacks {sorted(waiting - listed)[:5]} and lists {sorted(listed - waiting)[:5]} for nothing"
    )


async def assert_no_dead_letters(observer: Observer) -> None:
    """Fail when a message was given up."""
    stream = observer.subjects.stream("dead")
    dead = [stored async for stored in observer.messages(stream, f"{observer.subjects.namespace}.dead.>")]
    assert not dead, f"{len(dead)} messages were given up, the first: {dead[0].body[:300]!r}"


async def assert_the_same_is_told_again(observer: Observer, ledger: Ledger) -> None:
    """Ask for each verdict, and send every third attempt, again: the answers are the same and nothing is saved."""
    before = await last_revision(observer)
    newest_turn: dict[str, int] = {}
    for session, turn, _ in (*ledger.reports, *ledger.endings):
        newest_turn[session] = max(turn, newest_turn.get(session, 0))

    def what(entry: Reported) -> str:
        return f"attempt {entry.sent.attempt} of turn {entry.sent.turn} of {entry.sent.session}"

    def expected(entry: Reported) -> Verdict:
        assert entry.verdict is not None
        current = newest_turn[entry.sent.session] == entry.sent.turn
        return entry.verdict if current else as_remembered(entry.verdict)

    async def ask(entry: Reported) -> None:
        sent, client = entry.sent, entry.client
        found = await patiently(lambda: client.get(sent.session, sent.turn, attempt=sent.attempt))
        assert_same(found.verdict, expected(entry), f"asking for {what(entry)}")

    async def send(entry: Reported) -> None:
        assert_same(await submit(entry.client, entry.sent), expected(entry), f"sending again {what(entry)}")

    reports = list(ledger.reports.values())
    await each(reports, ask)
    await each(reports[::SENT_AGAIN], send)
    await observer.quiet()
    after = await last_revision(observer)
    assert after == before, f"asking again saved {after - before} revisions"


def assert_same(told: Verdict | None, expected: Verdict, how: str) -> None:
    """Fail when a verdict is told otherwise than before."""
    assert told is not None, f"{how} tells nothing"
    assert msgspec.json.encode(told) == msgspec.json.encode(expected), f"{how} tells {told}, not {expected}"


def as_remembered(told: Verdict) -> Verdict:
    """Return what is told of a verdict once a later turn began: the report and the sentences of problems are gone."""
    problems = tuple(Problem(p.path, p.code, p.code) for p in told.problems)
    text = told.text
    for problem in told.problems:
        text = text.replace(problem.message, problem.code)
    return replace(told, report=NO_REPORT, as_submitted=False, choices=(), problems=problems, text=text)


async def last_revision(observer: Observer) -> int:
    """Return the newest revision of all sessions."""
    return int((await observer.stream(observer.turns.stream))["state"]["last_seq"])
