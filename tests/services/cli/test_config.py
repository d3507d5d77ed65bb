"""Settings: flags before variables before the file before defaults, and errors that name what is wrong."""

import argparse
from pathlib import Path

import pytest

from tests.services.cli.shell import turngate
from turngate.cli.config import ConfigError, add_settings, load, to_environment
from turngate.cli.keys import KEYS
from turngate.settings import Settings
from turngate_contracts.topology import Durability
from turngate_protocol.report.session import Mode


def loaded(tmp_path: Path, *flags: str, env: dict[str, str] | None = None, file: str | bytes | None = None) -> Settings:
    if file is not None:
        (tmp_path / "turngate.yaml").write_bytes(file if isinstance(file, bytes) else file.encode())
    parser = argparse.ArgumentParser()
    add_settings(parser, *KEYS)
    return load(parser.parse_args(flags), env or {}, tmp_path)


def test_without_anything_the_defaults_stand(tmp_path):
    assert loaded(tmp_path) == Settings()


def test_every_field_of_the_settings_has_a_key_and_no_key_is_without_a_field():
    assert tuple(KEYS) == Settings.__struct_fields__


def test_a_flag_wins_over_a_variable_and_a_variable_over_the_file(tmp_path):
    file = "namespace: file\npool: file\nidentity: file\n"
    env = {"TURNGATE_NAMESPACE": "env", "TURNGATE_POOL": "env"}

    settings = loaded(tmp_path, "--namespace", "flag", env=env, file=file)

    assert (settings.namespace, settings.pool, settings.identity) == ("flag", "env", "file")


def test_values_become_what_the_services_use(tmp_path):
    settings = loaded(tmp_path, "--port", "0", file="durability: relaxed\nmode: off\nmax_blocks: 8\n")

    assert settings.durability is Durability.RELAXED
    assert settings.mode is Mode.OFF  # YAML 1.1 would read `off` as false
    assert settings.max_blocks == 8
    assert settings.server_port == 0


def test_the_config_flag_and_the_variable_name_another_file(tmp_path):
    (tmp_path / "a.yaml").write_text("namespace: a\n")
    (tmp_path / "b.yaml").write_text("namespace: b\n")
    env = {"TURNGATE_CONFIG": str(tmp_path / "a.yaml")}

    assert loaded(tmp_path, env=env).namespace == "a"
    assert loaded(tmp_path, "--config", str(tmp_path / "b.yaml"), env=env).namespace == "b"


@pytest.mark.parametrize("file", ["", "# nothing\n", "namespace:\n", "namespace: ''\n"])
def test_a_file_that_sets_nothing_is_fine(tmp_path, file):
    assert loaded(tmp_path, file=file) == Settings()


def test_an_empty_variable_sets_nothing(tmp_path):
    assert loaded(tmp_path, env={"TURNGATE_NAMESPACE": ""}) == Settings()


@pytest.mark.parametrize(
    ("flags", "env", "file", "named"),
    [
        (["--durability", "fast"], {}, None, "--durability is 'fast'; use strict or relaxed"),
        ([], {"TURNGATE_DURABILITY": "fast"}, None, "TURNGATE_DURABILITY is 'fast'; use strict or relaxed"),
        ([], {}, "durability: fast", "durability is 'fast'; use strict or relaxed"),
        (["--max-blocks", "0"], {}, None, "--max-blocks is '0'; use a whole number from 1 to 1000"),
        (["--max-blocks", "1_0"], {}, None, "--max-blocks is '1_0'"),
        (["--max-blocks", "٣"], {}, None, "--max-blocks is '\\u0663'"),
        (["--port", "65536"], {}, None, "--port is '65536'; use a whole number from 0 to 65535"),
        (["--namespace", "a.b"], {}, None, "--namespace is 'a.b'; use 1 to 31 lower-case letters"),
        (["--namespace", "tg\n"], {}, None, "--namespace is 'tg\\n'"),
        (["--namespace", ""], {}, None, "--namespace is ''"),
        (["--identity", "a b"], {}, None, "--identity is 'a b'; use 1 to 128 characters"),
        (["--nats-url", "localhost"], {}, None, "--nats-url is 'localhost'; use a URL such as nats://"),
        ([], {"TURNGATE_NAMESPCE": "x"}, None, "TURNGATE_NAMESPCE sets nothing; did you mean TURNGATE_NAMESPACE?"),
        ([], {}, "namespce: x", "'namespce' is no setting; did you mean namespace?"),
        ([], {}, "colour: x", "'colour' is no setting; the settings are bucket_mib, "),
        ([], {}, "nats-url: nats://x", "'nats-url' is no setting; did you mean nats_url?"),
        ([], {}, "namespace: [a]", "namespace must be one value"),
        ([], {}, "- a", "must hold settings"),
        ([], {}, "namespace: [", "is not YAML at line 1"),
        ([], {}, b"namespace: \xff", "is not UTF-8"),
        (["--config", "/nowhere.yaml"], {}, None, "/nowhere.yaml can't be read: No such file"),
    ],
)
def test_what_is_wrong_is_named_with_its_value_and_what_would_be_right(tmp_path, flags, env, file, named):
    with pytest.raises(ConfigError) as caught:
        loaded(tmp_path, *flags, env=env, file=file)

    assert named in str(caught.value)
    assert str(caught.value).isprintable()


def test_an_error_in_a_file_names_the_file(tmp_path):
    with pytest.raises(ConfigError, match=r"turngate\.yaml: window is 'many'"):
        loaded(tmp_path, file="window: many")


def test_an_error_does_not_repeat_a_password(tmp_path):
    with pytest.raises(ConfigError) as caught:
        loaded(tmp_path, "--nats-url", "http://user:secret@host")

    assert "secret" not in str(caught.value)


def test_variables_of_other_programs_are_let_be(tmp_path):
    # Kubernetes makes these of a service that is called turngate.
    env = {"TURNGATE_SERVICE_HOST": "10.0.0.1", "TURNGATE_PORT_4222_TCP": "tcp://10.0.0.1:4222"}

    assert loaded(tmp_path, env=env) == Settings()


def test_an_environment_carries_all_settings_to_another_process(tmp_path):
    settings = loaded(
        tmp_path,
        *("--mode", "always", "--durability", "relaxed", "--clock-offset-ms=-3600000", "--identity", "me"),
        *("--nats-url", "nats://u:p@h:1, nats://h:2"),
    )

    assert loaded(tmp_path, env=to_environment(settings), file="namespace: other") == settings


def test_a_command_reads_the_file_of_its_directory(tmp_path):
    (tmp_path / "turngate.yaml").write_text("max_blocks: some\n")

    outcome = turngate("report", "schema", cwd=tmp_path)

    assert outcome.code == 2
    file = tmp_path / "turngate.yaml"
    assert outcome.err == f"turngate: {file}: max_blocks is 'some'; use a whole number from 1 to 1000\n"


def test_a_file_may_be_named_before_or_after_the_command(tmp_path):
    (tmp_path / "t.yaml").write_text("max_blocks: 7\n")
    file = str(tmp_path / "t.yaml")

    assert "at most 7 blocks" in turngate("--config", file, "report", "schema").out
    assert "at most 7 blocks" in turngate("report", "schema", "--config", file).out
