"""`turngate events tail`: from a cursor, by session and type, until caught up or for ever."""

import json
import signal

from tests.services.cli.samples import ESCAPES, asking, done, encoded
from tests.services.cli.shell import Background, inside
from tests.waiting import wait_until_sync


def tail(system, *arguments):
    return inside("events", "tail", "--once", *arguments, env=system)


def submit(system, session, turn, report):
    return inside("turn", "submit", session, str(turn), env=system, stdin=encoded(report))


def events_of(system, session, count, *arguments):
    """The events of a session once there are that many: the server copies them into their stream by itself."""

    def all_there():
        events = tail(system, "--session", session, "--json", *arguments).json_lines()
        return events if len(events) >= count else None

    return wait_until_sync(all_there, why=f"{count} events")


def test_a_session_s_events_tell_what_happened_in_order(system, session):
    submit(system, session, 1, {})
    submit(system, session, 2, done())

    events = events_of(system, session, 2)

    types = [event["type"] for event in events]
    assert types[:2] == ["turngate.turn.report_rejected", "turngate.turn.report_accepted"]
    assert all(event["key"] == session and event["kind"] == "turns" for event in events)
    assert events[1]["data"]["current"]["turn"] == 2
    assert events[0]["cursor"] < events[1]["cursor"]


def test_a_cursor_goes_on_after_its_event(system, session):
    submit(system, session, 1, {})
    submit(system, session, 2, {})
    first, *rest = events_of(system, session, 2)

    assert events_of(system, session, len(rest), "--from", str(first["cursor"])) == rest
    assert rest


def test_types_are_chosen_by_pattern(system, session):
    submit(system, session, 1, {})
    submit(system, session, 2, done())

    rejected = events_of(system, session, 1, "--type", "turn.report_rej*")
    accepted = events_of(system, session, 1, "--type", "turngate.turn.report_accepted")

    assert [event["data"]["current"]["turn"] for event in rejected] == [1]
    assert [event["data"]["current"]["turn"] for event in accepted] == [2]


def test_a_line_for_people_begins_with_the_cursor(system, session):
    submit(system, session, 3, asking(ESCAPES))
    events_of(system, session, 1)

    lines = tail(system, "--session", session).out.splitlines()

    cursor, _, kind, key, *cause = lines[0].split()
    assert cursor.isdigit()
    assert (kind, key, " ".join(cause)) == ("turn.report_accepted", session, "turn 3 attempt 1 by tester")
    assert all(line.isprintable() for line in lines)


def test_a_cursor_of_another_server_is_refused(system):
    outcome = tail(system, "--from", "999999999")

    assert outcome.code == 1
    assert "was the server's data replaced?" in outcome.err


def test_a_cursor_that_is_none_is_exit_code_2(system):
    assert tail(system, "--from", "yesterday").code == 2


def test_a_namespace_without_streams_says_what_to_do(system):
    outcome = inside("events", "tail", env=system | {"TURNGATE_NAMESPACE": "nobody"})

    assert outcome.code == 1
    assert "NOBODY_EVENTS does not exist" in outcome.err
    assert "turngate up" in outcome.err


def test_following_shows_what_is_new_until_ctrl_c(system, session, tmp_path):
    submit(system, f"{session}old", 1, done())
    with Background(tmp_path, "events", "tail", "--json", env=system) as following:
        # It says nothing when it begins: events until one is seen.
        turns = iter(range(1, 1000))
        wait_until_sync(
            lambda: submit(system, session, next(turns), done()).code == 0 and following.out, why="the first event"
        )
        submit(system, session, 1000, done())
        wait_until_sync(lambda: '"turn":1000' in following.out, why="the newest event")
        code = following.end(signal.SIGINT)

        assert code == 130
        assert following.err == ""
        events = [json.loads(line) for line in following.out.splitlines()]
        assert f"{session}old" not in {event["key"] for event in events}
        cursors = [event["cursor"] for event in events]
        assert cursors == sorted(set(cursors))
