"""No server, no service, no permission: one sentence, the right exit code, never a traceback."""

import pytest

from tests.services.cli.samples import done, encoded
from tests.services.cli.shell import inside, turngate
from turngate.jetstream.embedded import EmbeddedServer

NOWHERE = {"TURNGATE_NATS_URL": "nats://me:secret@127.0.0.1:1", "TURNGATE_CONNECT_TIMEOUT_MS": "300"}


@pytest.mark.parametrize(
    "arguments",
    [
        ["turn", "submit", "s1", "1"],
        ["turn", "end", "s1", "1"],
        ["turn", "show", "s1"],
        ["turn", "answer", "s1", "1", "1"],
        ["turn", "dismiss", "s1", "1"],
        ["inbox"],
        ["events", "tail"],
        ["doctor"],
    ],
    ids=" ".join,
)
def test_without_a_server_every_command_is_exit_code_3_and_says_what_to_do(arguments):
    outcome = inside(*arguments, env=NOWHERE, stdin=encoded(done()))

    assert outcome.code == 3
    assert outcome.out == ""
    assert outcome.err.startswith("turngate: no NATS server at nats://")
    assert outcome.err.endswith("start one with `turngate up` or set TURNGATE_NATS_URL\n")
    assert len(outcome.err.splitlines()) == 1
    assert "secret" not in outcome.err


def test_a_service_without_a_server_is_exit_code_3():
    outcome = turngate("serve", "validation", env=NOWHERE)

    assert outcome.code == 3
    assert outcome.out == ""
    assert outcome.err.startswith("turngate: no NATS server at ")


def test_scripts_get_the_error_as_json_too():
    outcome = inside("doctor", "--json", env=NOWHERE)

    error = outcome.json()["error"]
    assert outcome.code == 3
    assert error["code"] == "unavailable"
    assert "secret" not in outcome.out + outcome.err


def test_without_a_service_a_request_is_exit_code_3(nats_server, namespace):
    env = {"TURNGATE_NATS_URL": nats_server.url, "TURNGATE_NAMESPACE": namespace}

    outcome = inside("turn", "show", "s1", env=env)

    assert outcome.code == 3
    assert "nobody answers" in outcome.err
    assert "turngate doctor" in outcome.err


def test_a_verdict_that_does_not_come_in_time_says_whether_the_turn_is_stored(nats_server, namespace):
    env = {"TURNGATE_NATS_URL": nats_server.url, "TURNGATE_NAMESPACE": namespace}

    outcome = inside("turn", "submit", "s1", "1", "--timeout", "0.5", "--json", env=env, stdin=encoded(done()))

    assert outcome.code == 3
    assert outcome.json()["error"]["details"] == {"stored": "not_stored"}
    assert "it is not stored: send it again" in outcome.err


def test_a_server_that_refuses_us_is_told_apart_from_one_that_is_away(tmp_path):
    users = 'authorization { user: "me", password: "secret" }'
    with EmbeddedServer(tmp_path, sync_always=False, extra_config=users) as server:
        outcome = inside("inbox", env={"TURNGATE_NATS_URL": server.url, "TURNGATE_CONNECT_TIMEOUT_MS": "500"})
        known = inside(
            "doctor", "--json", env={"TURNGATE_NATS_URL": server.url.replace("nats://", "nats://me:secret@")}
        )

    assert outcome.code == 3
    assert "refuses this identity" in outcome.err
    assert known.code == 1
    assert "secret" not in known.out


def test_a_server_without_jetstream_is_told_by_the_doctor(tmp_path):
    accounts = "accounts { PLAIN { users: [ {user: plain, password: plain} ] } }\nno_auth_user: plain"
    with EmbeddedServer(tmp_path, sync_always=False, extra_config=accounts) as server:
        outcome = inside("doctor", "--json", env={"TURNGATE_NATS_URL": server.url})

    checks = {check["name"]: check for check in outcome.json()["checks"]}
    assert outcome.code == 1
    assert checks["jetstream"]["status"] == "fail"
    assert checks["jetstream"]["do"] == "start nats-server with JetStream (-js)"
