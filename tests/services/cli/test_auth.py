"""`turngate auth` and `turngate up --secure`: identities are made, known to the server at once, and taken away."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.services.cli.samples import asking, encoded
from tests.services.cli.shell import Background, Outcome, inside, turngate
from tests.waiting import wait_until_sync


class System:
    """A system that `turngate up --secure --tls` runs."""

    def __init__(self, place: dict[str, Any], state: Path) -> None:
        self.place = place
        self.state = state

    def env(self, name: str) -> dict[str, str]:
        return {
            "TURNGATE_NATS_URL": self.place["url"],
            "TURNGATE_STATE_DIR": str(self.state),
            "TURNGATE_TLS_CA": self.place["tls_ca"],
            "TURNGATE_NATS_SEED_FILE": str(self.seed(name)),
        }

    def seed(self, name: str) -> Path:
        return self.state / "auth" / "seeds" / f"{name}.seed"

    def auth(self, *arguments: str) -> Outcome:
        return inside("auth", *arguments, env=self.env("admin"))


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    base = tmp_path_factory.mktemp("secure")
    arguments = ("--secure", "--tls", "--port", "0", "--console-port", "0", "--durability", "relaxed", "--json")
    with Background(base / "up", "up", "--state-dir", str(base / "state"), *arguments, env={"USER": "ann"}) as up:
        wait_until_sync(lambda: up.out.endswith("\n") or up.process.poll() is not None, 60, "it is ready")
        assert up.process.poll() is None, up.err
        yield System(json.loads(up.out), base / "state")
        assert up.end() == 0, up.err
        assert "Traceback" not in up.err
        seeds = [path.read_text().split()[-1] for path in (base / "state" / "auth" / "seeds").glob("*.seed")]
        log = (base / "state" / "nats-server.log").read_text()
        assert [seed for seed in seeds if seed in up.err + up.out + log] == []


def events_seen_by(system: System, name: str) -> list[Any]:
    events = inside("events", "tail", "--once", "--json", env=system.env(name))
    assert (events.code, events.err) == (0, "")
    return events.json_lines()


def test_a_system_is_secured_and_used_from_the_first_command_on(system: System):
    added = system.auth("add-runner", "r1", "--pool", "web", "--json")
    submitted = inside("turn", "submit", "s1", "1", "--pool", "web", env=system.env("r1"), stdin=encoded(asking()))
    answered = inside("turn", "answer", "s1", "1", "1", env=system.env("ann"))
    examined = inside("doctor", "--json", env=system.env("admin"))

    assert added.json()["server"] == {"url": system.place["url"], "knows": True}
    assert submitted.code == 0, submitted.err
    assert answered.code == 0, answered.err
    assert "ann" in inside("turn", "show", "s1", "--json", env=system.env("ann")).out
    # The server copies events into their stream by itself, in its own time.
    wait_until_sync(lambda: len(events_seen_by(system, "ann")) >= 2, why="the turn and its answer are events")
    failed = [check for check in examined.json()["checks"] if check["status"] == "fail"]
    assert failed == []


def test_who_may_not_is_told_so_in_a_sentence(system: System):
    system.auth("add-ui", "vic", "--role", "viewer")

    looked = inside("inbox", env=system.env("vic"))
    answered = inside("turn", "answer", "s1", "1", "1", env=system.env("vic"))
    nobody = inside("inbox", env=system.env("vic") | {"TURNGATE_NATS_SEED_FILE": ""})
    impostor = inside("inbox", env=system.env("vic") | {"TURNGATE_IDENTITY": "ann"})

    assert looked.code == 0
    assert answered.code == 1
    assert "this identity may not publish to tg.api.turn.answer.vic" in answered.err
    assert nobody.code == 3
    assert "put the path of a seed that `turngate auth` made into TURNGATE_NATS_SEED_FILE" in nobody.err
    assert impostor.code == 1
    assert "is the seed of vic, not of ann" in impostor.err


def test_what_is_said_of_a_new_runner_is_all_that_it_needs(system: System):
    added = system.auth("add-runner", "r4", "--pool", "web", "--pool", "gpu")
    said = dict(line.split()[1].split("=") for line in added.out.splitlines() if line.startswith("  export "))

    where = {"TURNGATE_NATS_URL": system.place["url"], "TURNGATE_STATE_DIR": str(system.state)}
    submitted = inside("turn", "submit", "s4", "1", env=said | where, stdin=encoded(asking()))
    elsewhere = inside("turn", "submit", "s4", "2", "--pool", "db", env=said | where, stdin=encoded(asking()))

    assert "r4 is a runner of gpu, web" in added.out
    assert said.keys() == {"TURNGATE_NATS_SEED_FILE", "TURNGATE_TLS_CA", "TURNGATE_POOL"}
    assert (submitted.code, submitted.err) == (0, "")
    assert elsewhere.code == 1
    assert "act in a pool that is its own (TURNGATE_POOL)" in elsewhere.err
    assert "zoe is an operator" in system.auth("add-ui", "zoe").out


def test_a_revoked_identity_is_out_at_once_and_its_seed_is_gone(system: System):
    system.auth("add-runner", "r9")
    kept = system.seed("r9").read_bytes()

    revoked = system.auth("revoke", "r9", "--json")
    again = system.auth("revoke", "r9")

    assert revoked.json() == {"revoked": "r9", "server": {"url": system.place["url"], "knows": True}}
    assert not system.seed("r9").exists()
    assert list(system.seed("r9").parent.glob("r9*")) == []
    assert (again.code, again.out) == (0, "r9 was revoked before\n")
    copy = system.state / "copy.seed"
    copy.touch(0o600)
    copy.write_bytes(kept)
    refused = inside("inbox", env=system.env("ann") | {"TURNGATE_NATS_SEED_FILE": str(copy)})
    assert refused.code == 3
    assert f"refuses this identity, that of {copy}" in refused.err
    assert system.auth("add-runner", "r9").code == 0
    assert system.seed("r9").read_bytes() != kept


def test_a_runner_is_given_other_pools_and_keeps_its_key(system: System):
    first = system.auth("add-runner", "r7", "--pool", "web", "--json").json()
    second = system.auth("add-runner", "r7", "--pool", "gpu", "--pool", "web", "--json").json()
    shown = system.auth("show", "r7", "--json").json()

    assert second["identity"] == first["identity"] | {"pools": ["gpu", "web"]}
    assert "tg.api.runner.join.gpu.r7" in shown["publish"]
    assert "tg.api.runner.join.other.r7" not in shown["publish"]


def test_everybody_is_listed_and_no_seed_is_shown(system: System):
    plain, listed = system.auth("show"), system.auth("show", "--json")

    kinds = {each["name"]: (each["kind"], each["account"]) for each in listed.json()["identities"]}
    assert kinds["admin"] == ("admin", "CORE")
    assert kinds["ann"] == ("operator", "UI")
    assert kinds["validation"] == ("service", "CORE")
    seed = system.seed("admin").read_text().split()[-1]
    assert seed not in plain.out + listed.out
    assert "admin" in plain.out


def test_a_system_with_identities_is_not_opened_without_them(system: System):
    outcome = turngate("up", "--port", "0", "--state-dir", str(system.state))

    assert outcome.code == 2
    assert "use `turngate up --secure`" in outcome.err


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("show",), 1, "holds no identities; run `turngate auth init` first"),
        (("add-runner", "r1"), 1, "run `turngate auth init` first"),
        (("add-runner", "a.b"), 2, "identity 'a.b' is not an id"),
        (("add-runner", "*"), 2, "is not an id"),
        (("init", "--tls", "--tls-cert", "x"), 2, "leave it out to use the one of --tls-cert"),
        (("init", "--tls-cert", "/nowhere"), 2, "give --tls-cert and --tls-key together"),
        (("init", "--tls-host", "a b"), 2, "is no host name"),
    ],
)
def test_what_can_not_be_done_is_a_sentence(tmp_path: Path, arguments: tuple[str, ...], code: int, says: str):
    outcome = inside("auth", *arguments, "--state-dir", str(tmp_path / "state"))

    assert outcome.code == code
    assert says in outcome.err
    assert "Traceback" not in outcome.err


def test_names_are_one_identity_s_only_and_init_again_changes_nothing(tmp_path: Path):
    where = ("--state-dir", str(tmp_path), "--nats-url", "nats://127.0.0.1:1")
    first = inside("auth", "init", "--state-dir", str(tmp_path), "--json").json()
    inside("auth", "add-runner", "r1", *where)
    config = Path(first["config"]).read_text()

    again = inside("auth", "init", "--state-dir", str(tmp_path), "--json").json()
    taken = inside("auth", "add-ui", "r1", *where)
    unknown = inside("auth", "revoke", "nobody", *where)

    inside("auth", "revoke", "validation", *where)
    renewed = inside("auth", "init", "--state-dir", str(tmp_path), "--json").json()

    assert again["created"] == []
    assert renewed["created"] == ["validation"]
    assert len(set(config.splitlines()) - set(Path(first["config"]).read_text().splitlines())) == 1, (
        "its key is another"
    )
    assert taken.code == 1
    assert "r1 is an identity already, of kind runner" in taken.err
    assert unknown.code == 1
    assert "there is no identity 'nobody'; there are " in unknown.err


def test_a_command_that_was_cut_off_is_finished_by_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    where = ("--state-dir", str(tmp_path), "--nats-url", "nats://127.0.0.1:1")
    inside("auth", "init", "--state-dir", str(tmp_path))
    inside("auth", "add-runner", "r1", *where)
    config = tmp_path / "auth" / "nats-auth.conf"
    before = config.read_text()
    with monkeypatch.context() as patch:
        patch.setattr(
            "turngate.auth.directory.render", lambda *_: 1 / 0
        )  # killed between the list and the server's file
        inside("auth", "add-runner", "r2", *where)
    assert config.read_text() == before

    inside("auth", "add-runner", "r2", *where)

    assert "# runner r2" in config.read_text()
    assert "# runner r1" in config.read_text()
