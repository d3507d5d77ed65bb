"""The systemd units: systemd understands them, they are hardened, and what they run works."""

import asyncio
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.deploy.files import COMMAND, ROOT, Process, unit
from turngate.jetstream.embedded import find_binary

UNITS = sorted(path.name for path in (ROOT / "deploy" / "systemd").glob("*.service"))
needs_systemd = pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not here")


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """The units with programs that exist here."""
    for name in UNITS:
        text = (ROOT / "deploy" / "systemd" / name).read_text()
        (tmp_path / name).write_text(re.sub(r"/opt/turngate/bin/[a-z-]+", "/bin/true", text))
    return tmp_path


@needs_systemd
@pytest.mark.parametrize("name", UNITS)
def test_systemd_understands_a_unit(installed, name):
    instance = name.replace("@.", "@validation.")
    if instance != name:
        (installed / name).rename(installed / instance)

    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", str(installed / instance)],
        capture_output=True,
        text=True,
        env=os.environ | {"SYSTEMD_UNIT_PATH": f"{installed}:"},
    )

    complaints = [line for line in done.stderr.splitlines() if name.split("@")[0].split(".")[0] in line]
    assert not complaints, done.stderr


@pytest.mark.parametrize("name", UNITS)
def test_a_unit_has_few_rights_and_drains(name):
    settings = unit(name)

    assert settings["NoNewPrivileges"] == ["yes"]
    assert settings["ProtectSystem"] == ["strict"]
    assert settings["CapabilityBoundingSet"] == [""]
    assert settings["User"] != ["root"]
    assert settings["UMask"] == ["0077"]
    assert settings["Restart"] == ["always"]
    assert int(settings["TimeoutStopSec"][0]) >= 40


def arguments(name: str, instance: str, environment: dict[str, str]) -> list[str]:
    """The command line of a unit as systemd makes it: specifiers, ${ONE} word, and $MANY words."""
    (line,) = unit(name)["ExecStart"]
    words: list[str] = []
    for word in shlex.split(line.replace("%i", instance)):
        if word.startswith("${"):
            words.append(environment[word[2:-1]])
        elif word.startswith("$"):
            words += environment[word[1:]].split()
        else:
            words.append(word)
    return words


def test_what_the_service_unit_runs_takes_work_and_drains(nats_server, namespace, tmp_path):
    argv = arguments("turngate@.service", "validation", {})
    assert argv[0] == "/opt/turngate/bin/turngate"
    env = {"TURNGATE_NATS_URL": nats_server.url, "TURNGATE_NAMESPACE": namespace, "TURNGATE_DURABILITY": "relaxed"}
    own = dict(pair.split("=", 1) for pair in unit("turngate@.service")["Environment"][0].split())

    with Process([*COMMAND, *argv[1:]], own | env, tmp_path / "log") as process:
        process.wait_ready()

        assert process.end() == 0


async def test_what_the_runner_unit_runs_takes_work_and_drains(system, nats_server, namespace, tmp_path):
    given = {"TURNGATE_AGENT": "cat -", "TURNGATE_AGENT_OUTPUT": "plain"}
    argv = arguments("turngate-runner@.service", "web", given)
    argv[argv.index("/var/lib/turngate-runner")] = str(tmp_path)
    env = {"TURNGATE_NATS_URL": nats_server.url, "TURNGATE_NAMESPACE": namespace, "TURNGATE_LOG_FORMAT": "json"}

    assert argv[-3:] == ["--", "cat", "-"]
    with Process([*COMMAND, *argv[1:]], given | env, tmp_path / "log") as process:
        await asyncio.to_thread(process.wait_ready)

        assert await asyncio.to_thread(process.end) == 0


def test_what_the_server_unit_runs_accepts_its_configuration(tmp_path):
    argv = arguments("turngate-nats.service", "", {})
    assert argv == ["/opt/turngate/bin/nats-server", "--config", "/etc/turngate/nats.conf"]
    config = tmp_path / "nats.conf"
    text = (ROOT / "deploy" / "nats" / "single.conf").read_text()
    config.write_text(text.replace("/var/lib/turngate-nats", str(tmp_path)))

    done = subprocess.run([str(find_binary()), "-t", *argv[1:-1], str(config)], capture_output=True, text=True)

    assert done.returncode == 0, done.stderr
