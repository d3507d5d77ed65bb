"""`turngate serve`: ready, drain, a second signal, further processes, and what becomes of orphans."""

import asyncio
import os
import signal

import pytest

from tests.services.cli.samples import done, encoded
from tests.services.cli.shell import Background, environment, inside, is_alive, turngate
from tests.waiting import wait_until, wait_until_sync
from turngate.children import Children
from turngate.cli.failures import explain
from turngate.jetstream.connect import connect
from turngate.jetstream.embedded import EmbeddedServer
from turngate.process import ConnectionClosed, Ending, serve
from turngate.runner import TurnClient
from turngate.settings import Settings
from turngate_contracts.topology import Durability


@pytest.fixture
def place(nats_server, namespace):
    return {"TURNGATE_NATS_URL": nats_server.url, "TURNGATE_NAMESPACE": namespace, "TURNGATE_DURABILITY": "relaxed"}


def test_a_service_says_that_it_is_ready_and_drains_on_sigterm(place, tmp_path):
    with Background(tmp_path, "serve", "validation", env=place) as service:
        service.wait_ready()
        code = service.end(signal.SIGTERM)

        assert code == 0
        assert service.out == ""
        record = service.ready()[0]
        assert record["ready"] == ["validation"]
        assert record["namespace"] == place["TURNGATE_NAMESPACE"]
        assert record["pid"] == service.process.pid
        assert [r["message"] for r in service.records()][-2:] == ["draining: SIGTERM", "ended"]


def test_ctrl_c_drains_too(place, tmp_path):
    with Background(tmp_path, "serve", "validation", env=place) as service:
        service.wait_ready()

        assert service.end(signal.SIGINT) == 0


def test_people_get_lines_instead_of_json(place, tmp_path):
    with Background(tmp_path, "serve", "validation", "--log-format", "human", env=place) as service:
        service.wait_for("INFO turngate.process.ready: ready: validation on nats://")
        service.end()


def test_the_ready_line_is_written_at_any_level_and_without_secrets(place, tmp_path):
    url = place["TURNGATE_NATS_URL"].replace("nats://", "nats://me:secret@")

    with Background(tmp_path, "serve", "validation", "--log-level", "error", "--nats-url", url, env=place) as service:
        service.wait_ready()
        service.end()

        assert len(service.records()) == 1
        assert "secret" not in service.err


async def test_a_drain_loses_no_turn(place, tmp_path):
    namespace = place["TURNGATE_NAMESPACE"]
    first = Background(tmp_path / "first", "serve", "validation", env=place)
    second = Background(tmp_path / "second", "serve", "validation", env=place)
    with first, second:
        for service in (first, second):
            await asyncio.to_thread(service.wait_ready)
        async with await TurnClient.connect("r1", url=place["TURNGATE_NATS_URL"], namespace=namespace) as client:
            verdicts = [
                asyncio.create_task(client.submit_report(f"s{n}", 1, encoded(done()), timeout_ms=60_000))
                for n in range(300)
            ]
            await wait_until(lambda: any(task.done() for task in verdicts), why="the first verdict")
            first.process.terminate()

            outcomes = {verdict.outcome for verdict in await asyncio.gather(*verdicts)}

        assert outcomes == {"accepted"}
        assert await asyncio.to_thread(first.process.wait, 60) == 0, first.err


def test_a_second_signal_ends_it_at_once(own_server, namespace, tmp_path):
    env = {"TURNGATE_NATS_URL": own_server.url, "TURNGATE_NAMESPACE": namespace, "TURNGATE_DURABILITY": "relaxed"}
    with Background(tmp_path, "serve", "validation", env=env) as service:
        service.wait_ready()
        # A server that answers nothing keeps the drain from ending.
        os.kill(own_server.pid, signal.SIGSTOP)
        try:
            service.process.terminate()
            service.wait_for("draining")
            assert service.end(signal.SIGTERM) == 128 + signal.SIGTERM
        finally:
            os.kill(own_server.pid, signal.SIGCONT)


def test_a_service_outlives_a_restart_of_its_server(own_server, namespace, tmp_path):
    env = {"TURNGATE_NATS_URL": own_server.url, "TURNGATE_NAMESPACE": namespace, "TURNGATE_DURABILITY": "relaxed"}
    with Background(tmp_path, "serve", "validation", env=env) as service:
        service.wait_ready()
        own_server.kill()
        own_server.start()
        service.wait_for("reconnected")

        outcome = inside("turn", "submit", "s1", "1", env=env, stdin=encoded(done()))

        assert outcome.code == 0
        assert service.end() == 0


def test_several_processes_share_a_service_and_end_with_their_parent(place, tmp_path):
    with Background(tmp_path, "serve", "validation", "--processes", "3", env=place) as service:
        service.wait_ready(processes=3)
        pids = {record["pid"] for record in service.ready()}

        checks = inside("doctor", "--json", env=place).json()["checks"]
        code = service.end()

        assert code == 0
        assert len(pids) == 3
        assert next(c for c in checks if c["name"] == "validation")["facts"]["processes"] == 3
        assert not any(map(is_alive, pids))


def test_a_process_that_is_killed_is_started_again(place, tmp_path):
    with Background(tmp_path, "serve", "validation", "--processes", "2", env=place) as service:
        service.wait_ready(processes=2)
        killed = next(record["pid"] for record in service.ready() if record["pid"] != service.process.pid)
        os.kill(killed, signal.SIGKILL)

        service.wait_ready(processes=3)

        assert service.end() == 0


def test_children_of_a_parent_that_was_killed_drain_by_themselves(place, tmp_path):
    with Background(tmp_path, "serve", "validation", "--processes", "2", env=place) as service:
        service.wait_ready(processes=2)
        child = next(record["pid"] for record in service.ready() if record["pid"] != service.process.pid)
        service.process.kill()

        wait_until_sync(lambda: not is_alive(child), why="the child ends")

        assert "draining: the process that started this one has ended" in service.err


async def test_a_connection_that_is_closed_for_good_ends_the_process(place, monkeypatch):
    opened = []

    async def remembering(*arguments, **options):
        opened.append(await connect(*arguments, **options))
        return opened[0]

    monkeypatch.setattr("turngate.process.connect", remembering)
    settings = Settings(place["TURNGATE_NATS_URL"], place["TURNGATE_NAMESPACE"], Durability.RELAXED)
    closing = []

    with pytest.raises(ConnectionClosed, match="closed the connection for good") as caught:
        await serve(
            settings,
            ["validation"],
            Ending(),
            on_ready=lambda: closing.append(asyncio.create_task(opened[0].close())),
        )

    assert explain(caught.value).code == 3


def test_a_revoked_user_is_told_in_the_log_and_the_process_drains_when_told(tmp_path):
    users = 'authorization { user: "me", password: "old" }'
    with EmbeddedServer(tmp_path / "server", sync_always=False, extra_config=users) as server:
        url = server.url.replace("nats://", "nats://me:old@")
        with Background(tmp_path / "out", "serve", "validation", env={"TURNGATE_NATS_URL": url}) as service:
            service.wait_ready()
            server.config_file.write_text(server.config_file.read_text().replace('"old"', '"new"'))
            os.kill(server.pid, signal.SIGHUP)
            service.wait_for("Authorization Violation")

            assert service.end() == 0
            assert "old" not in service.err
            assert "Traceback" not in service.err


def test_a_service_that_does_not_exist_is_exit_code_2():
    assert turngate("serve", "nothing").code == 2


async def test_children_that_do_not_drain_are_killed(monkeypatch):
    monkeypatch.setattr("turngate.children.KILL_AFTER_S", 0.3)
    stubborn = (
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('x', flush=True); time.sleep(60)"
    )
    children = Children(1, ["python3", "-c", stubborn], lambda _number: environment())
    children.start()
    pid = (await wait_until(lambda: children.pids, why="it runs"))[0]

    await children.stop()

    assert not is_alive(pid)
