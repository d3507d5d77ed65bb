"""Where settings come from: flags, then TURNGATE_* variables, then a YAML file, then the defaults.

The file is the one that `--config` or TURNGATE_CONFIG names, else ./turngate.yaml where there is one: flat, one
`key: value` a line. What is wrong is told with its key, its value, its place and what would be right.
"""

import argparse
import difflib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from turngate.cli.keys import ENVIRONMENT_PREFIX, KEYS, Key

if TYPE_CHECKING:
    from turngate.settings import Settings

CONFIG_VARIABLE: Final = f"{ENVIRONMENT_PREFIX}CONFIG"
DEFAULT_FILE: Final = "turngate.yaml"
_OTHER_VARIABLES: Final = frozenset(
    {
        CONFIG_VARIABLE,
        "TURNGATE_NATS_SERVER",
        *("TURNGATE_SESSION", "TURNGATE_TASK", "TURNGATE_PARENT", "TURNGATE_RUN"),
        *("TURNGATE_AGENTS_DIR", "TURNGATE_MCP_TOKEN", "TURNGATE_CRASH_AT"),
    }
)
_FLAG: Final = "setting_"
_SHOWN: Final = 80


class ConfigError(Exception):
    """A setting that can't be used; `key` names it as it was written."""

    def __init__(self, message: str, key: str = "") -> None:
        super().__init__(message)
        self.key = key


def add_settings(parser: argparse.ArgumentParser, *names: str) -> None:
    """Give a command the flags of some settings, in a help group of their own."""
    group = parser.add_argument_group(
        "settings", "each may also stand in the environment or in the file; see `turngate --help`"
    )
    # Suppressed, so that one that stands before the command counts too.
    group.add_argument(
        "--config", metavar="FILE", default=argparse.SUPPRESS, help=f"YAML file with settings [{CONFIG_VARIABLE}]"
    )
    for name in names:
        key = KEYS[name]
        # No type: a wrong value is told in the same words wherever it stands.
        group.add_argument(
            key.option,
            dest=_FLAG + name,
            metavar=key.metavar,
            default=argparse.SUPPRESS,
            help=f"{key.help} [{key.variable}]",
        )


def load(args: argparse.Namespace, environment: Mapping[str, str], directory: Path) -> "Settings":
    """Return the settings of a command.

    Args:
        args: the parsed command line.
        environment: the environment variables.
        directory: where ./turngate.yaml would be.

    Raises:
        ConfigError: a key is unknown, a value is wrong, or the file can't be read.
    """
    from turngate.settings import Settings

    found = _from_file(args, environment, directory)
    found |= _from_environment(environment)
    for name, key in KEYS.items():
        text = getattr(args, _FLAG + name, None)
        if text is not None:
            found[name] = _parsed(key, text, key.option, "")
    return Settings(**_typed(found))


def to_environment(settings: "Settings") -> dict[str, str]:
    """Return the environment variables that give another process of ours these settings, whatever its file says."""
    import msgspec

    values = msgspec.to_builtins(settings)
    return {key.variable: str(values[name]) for name, key in KEYS.items() if values[name] != ""}


def _typed(found: dict[str, Any]) -> dict[str, Any]:
    from turngate.settings import EvidenceCheck
    from turngate_contracts.topology import Durability
    from turngate_protocol.report.session import Mode

    kinds = {"durability": Durability, "mode": Mode, "evidence": EvidenceCheck}
    return {name: kinds[name](value) if name in kinds else value for name, value in found.items()}


def _from_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    found = {}
    for name, key in KEYS.items():
        text = environment.get(key.variable, "")
        if text:  # an empty variable is how shells and compose files say "not set"
            found[name] = _parsed(key, text, key.variable, "")
    known = {key.variable for key in KEYS.values()} | _OTHER_VARIABLES
    for variable in environment:
        # Only what is nearly ours is a mistake: Kubernetes, for one, makes TURNGATE_SERVICE_HOST of a service's name.
        if variable.startswith(ENVIRONMENT_PREFIX) and variable not in known:
            meant = _meant(variable, known)
            if meant:
                raise ConfigError(f"the variable {variable} sets nothing; did you mean {meant}?", variable)
    return found


def _from_file(args: argparse.Namespace, environment: Mapping[str, str], directory: Path) -> dict[str, Any]:
    named = getattr(args, "config", None) or environment.get(CONFIG_VARIABLE, "")
    path = Path(named) if named else directory / DEFAULT_FILE
    if not named and not path.is_file():
        return {}
    found = {}
    for name, value in _read(path).items():
        if not isinstance(name, str) or name not in KEYS:
            raise ConfigError(f"{path}: {_quoted(name)} is no setting; {_advice(str(name))}", str(name))
        if not isinstance(value, str):
            raise ConfigError(f"{path}: {name} must be one value, not a list or a mapping", name)
        if value:
            found[name] = _parsed(KEYS[name], value, name, f"{path}: ")
    return found


def _read(path: Path) -> dict[Any, Any]:
    import yaml

    try:
        # BaseLoader makes only texts, lists and mappings: `off` stays "off" and `0x10` is no number.
        loaded = yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.BaseLoader)  # noqa: S506
    except OSError as error:
        raise ConfigError(f"{path} can't be read: {error.strerror}; name another file with --config") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path} is not UTF-8; save it as UTF-8") from None
    except (yaml.YAMLError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        reason = getattr(error, "problem", None) or type(error).__name__
        raise ConfigError(f"{path} is not YAML{where}: {reason}; write one `key: value` a line") from None
    if loaded is None or loaded == "":
        return {}
    if not isinstance(loaded, dict):
        raise ConfigError(f"{path} must hold settings, one `key: value` a line")
    return loaded


def _parsed(key: Key, text: str, written_as: str, place: str) -> Any:
    try:
        return key.parse(text)
    except ValueError:
        raise ConfigError(f"{place}{written_as} is {_quoted(text)}; use {key.rule}", written_as) from None


def _quoted(value: object) -> str:
    from turngate.logs import without_secrets

    text = ascii(without_secrets(value) if isinstance(value, str) else value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def _meant(variable: str, known: set[str]) -> str:
    start = len(ENVIRONMENT_PREFIX)
    close = difflib.get_close_matches(variable[start:], [name[start:] for name in sorted(known)], 1, 0.8)
    return ENVIRONMENT_PREFIX + close[0] if close else ""


def _advice(name: str) -> str:
    close = difflib.get_close_matches(name.replace("-", "_").lower(), KEYS, 1, 0.6)
    return f"did you mean {close[0]}?" if close else f"the settings are {', '.join(sorted(KEYS))}"
