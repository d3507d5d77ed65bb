"""Whoever may not connect is told why and what to do; seeds that can't be used are named and never shown."""

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.secured import Secured, secured
from tests.services.cli.shell import Background
from tests.waiting import wait_until
from turngate.auth.directory import ADMIN
from turngate.jetstream._connect_errors import IdentityRefused, NoServer, NotConnected, TlsFailed
from turngate.jetstream._refusals import Refusals
from turngate.jetstream.connect import connect
from turngate.jetstream.embedded import EmbeddedServer
from turngate.jetstream.provision import provision
from turngate.login import CredentialsUnusable, Login
from turngate.runner import TurnClient
from turngate_contracts.permissions import Kind


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    with secured(tmp_path_factory.mktemp("refused"), tls=True) as made:
        yield made


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A seed that is sound and that no server knows."""
    from turngate.auth.directory import AuthDirectory
    from turngate_contracts.topology import Topology

    directory = AuthDirectory(tmp_path_factory.mktemp("stranger") / "auth")
    directory.init(Topology(), certificates=None)
    directory.add("r1", Kind.RUNNER)
    return directory.seed_file("r1")


async def _refusal(url: str, login: Login) -> str:
    with pytest.raises(NoServer) as refused:
        await connect(url, timeout_ms=700, login=login)
    assert type(refused.value) in (IdentityRefused, TlsFailed), refused.value
    return str(refused.value)


async def test_the_identities_of_a_server_connect_over_tls(system: Secured):
    connection = await system.connection("r1")

    assert connection.is_connected
    assert connection.new_inbox().startswith("_INBOX.r1.")
    await connection.close()


async def test_no_key_is_refused(system: Secured):
    said = await _refusal(system.server.url, Login(tls_ca=system.tls_ca))

    assert "refuses this identity, which has no key" in said
    assert "TURNGATE_NATS_SEED_FILE" in said


async def test_a_wrong_key_is_refused(system: Secured, stranger: Path):
    said = await _refusal(system.server.url, Login(str(stranger), tls_ca=system.tls_ca))

    assert f"refuses this identity, that of {stranger}" in said
    assert "turngate auth show" in said


async def test_a_plain_connection_to_a_tls_port_is_refused(system: Secured):
    said = await _refusal(system.server.url, Login(str(system.directory.seed_file("r1"))))
    reader, writer = await asyncio.open_connection("127.0.0.1", system.server.port)
    assert b'"tls_required":true' in await reader.readline()
    writer.write(b'CONNECT {"verbose":false}\r\nPING\r\n')
    answered = await asyncio.wait_for(reader.read(), 10)
    writer.close()

    assert "wants TLS" in said
    assert "TURNGATE_TLS_CA" in said
    assert b"PONG" not in answered


async def test_a_server_that_another_authority_signed_is_refused(system: Secured, tmp_path: Path):
    from turngate.auth.certificates import make_certificates

    other = make_certificates(tmp_path / "tls", ["127.0.0.1"])

    said = await _refusal(system.server.url, Login(str(system.directory.seed_file("r1")), tls_ca=other.ca))

    assert "must name the certificate that signed the server's" in said


async def test_nothing_is_sent_to_a_server_without_tls_where_tls_is_wanted(
    system: Secured, nats_server: EmbeddedServer
):
    said = await _refusal(nats_server.url, Login(tls_ca=system.tls_ca))

    assert "offers no TLS" in said
    assert "nothing was sent to it" in said


async def test_who_acts_must_be_who_the_seed_says(system: Secured):
    with pytest.raises(CredentialsUnusable, match="is the seed of r1, not of r2; act as r1"):
        await TurnClient.connect("r2", url=system.server.url, login=system.login("r1"))


@pytest.mark.parametrize(
    ("text", "mode", "says"),
    [
        ("SUAIBDPBAUTWCWBKIO6XHQNINK5FWJW4OHLXC3HQ2KFE4PEJUA44CNHTX4", 0o600, "holds no NKEY user seed"),
        ("", 0o600, "holds no NKEY user seed"),
        ("something secret", 0o644, "can be read by others; run `chmod 600 "),
        ("\udcff", 0o600, "is no text"),
        (None, 0o600, "can't be read: No such file or directory"),
    ],
)
async def test_a_seed_file_that_can_not_be_used_is_named_and_not_shown(tmp_path: Path, text, mode, says):
    path = tmp_path / "a.seed"
    if text is not None:
        path.write_bytes(text.encode("utf-8", "surrogateescape"))
        path.chmod(mode)

    with pytest.raises(CredentialsUnusable) as refused:
        await connect("nats://127.0.0.1:1", login=Login(str(path)))

    assert says in str(refused.value)
    assert str(path) in str(refused.value)
    assert not text or text not in str(refused.value)


async def test_certificates_that_are_none_are_named(tmp_path: Path):
    path = tmp_path / "ca.pem"
    path.write_text("no certificate")

    for login in (Login(tls_ca=str(path)), Login(tls_ca="/nowhere.pem"), Login(tls_cert=str(path), tls_key=str(path))):
        with pytest.raises(CredentialsUnusable, match="PEM"):
            await connect("nats://127.0.0.1:1", login=login)


async def test_revoking_ends_that_client_at_once_and_leaves_the_others(system: Secured):
    system.directory.add("leaver", Kind.RUNNER, ["web"])
    system.reload()
    await wait_until(lambda: _admitted(system, "leaver"), why="the server knows the new one")
    leaver, stayer, person = [await system.connection(name) for name in ("leaver", "r1", "ann")]

    aside = system.directory.revoke("leaver")
    system.reload()
    await wait_until(lambda: not leaver.is_connected, 3, "it is put out")
    await wait_until(lambda: leaver.refusals.identity, 10, "it learns why")
    with pytest.raises(NotConnected, match=r"the NATS server refuses this identity \(.*Authorization Violation"):
        leaver.send("tg.turn.ended.web.leaver.s1", b"{}")

    assert aside is not None
    assert [c.stats["reconnects"] for c in (stayer, person)] == [0, 0]
    assert stayer.is_connected
    assert person.is_connected
    said = await _refusal(system.server.url, Login(str(aside), tls_ca=system.tls_ca))
    assert "it was revoked" in said
    for connection in (leaver, stayer, person):
        await connection.close()


def test_that_an_identity_is_refused_is_logged_once_however_often_it_asks(caplog: pytest.LogCaptureFixture):
    refusals = Refusals()

    for _ in range(3):
        refusals.note("nats: 'Authorization Violation'")

    assert refusals.identity == "nats: 'Authorization Violation'"
    (said,) = caplog.messages
    assert said.startswith("the NATS server refuses this identity ('Authorization Violation'); it was revoked, or ")


async def test_the_end_of_a_tls_connection_is_no_warning(system: Secured, tmp_path: Path):
    env = {
        "TURNGATE_NATS_URL": system.server.url,
        "TURNGATE_NATS_SEED_FILE": str(system.directory.seed_file("console")),
        "TURNGATE_TLS_CA": system.tls_ca,
        "TURNGATE_CONSOLE_PORT": "0",
        "TURNGATE_STATE_DIR": str(tmp_path / "state"),
    }
    async with system.as_(ADMIN) as admin:
        await provision(admin, system.topology)
    with Background(tmp_path / "console", "serve", "console", env=env) as console:
        await asyncio.to_thread(console.wait_ready)
        await asyncio.to_thread(system.server.restart)
        await asyncio.to_thread(console.wait_for, "reconnected to the NATS server")

    assert "eof_received" not in console.err


async def _admitted(system: Secured, name: str) -> bool:
    try:
        connection = await system.connection(name)
    except IdentityRefused:
        return False
    await connection.close()
    return True


def test_seeds_and_keys_are_their_owner_s_alone_and_not_in_what_the_server_reads(system: Secured):
    private = [path for path in system.directory.path.rglob("*") if path.is_file()]

    assert {oct(path.stat().st_mode & 0o777) for path in private} == {"0o600"}
    assert {oct(p.stat().st_mode & 0o777) for p in system.directory.path.rglob("*") if p.is_dir()} == {"0o700"}
    seeds = [p.read_text().split()[-1] for p in (system.directory.path / "seeds").iterdir() if p.suffix == ".seed"]
    texts = system.directory.config_file.read_text() + (system.directory.path / "identities.json").read_text()
    assert len(seeds) >= 12
    assert [seed for seed in seeds if seed in texts or seed in system.server.log_file.read_text()] == []


def test_no_file_is_ever_open_to_others_however_the_umask_is(tmp_path: Path):
    from turngate.auth.directory import AuthDirectory
    from turngate_contracts.topology import Topology

    before = os.umask(0)
    try:
        directory = AuthDirectory(tmp_path / "auth")
        directory.init(Topology(), certificates=None)
    finally:
        os.umask(before)

    assert {oct(p.stat().st_mode & 0o777) for p in directory.path.rglob("*") if p.is_file()} == {"0o600"}
    assert oct(directory.path.stat().st_mode & 0o777) == "0o700"
