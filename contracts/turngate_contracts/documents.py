"""The generated files as texts.

`contracts/generate.py` writes them, and a test compares them with what is in the tree.
"""

from typing import Any, Final

import msgspec
import yaml

from turngate_contracts import codec
from turngate_contracts.asyncapi import document
from turngate_contracts.examples import EXAMPLES
from turngate_contracts.json_schemas import message_schema
from turngate_contracts.messages import SCHEMAS
from turngate_contracts.permissions_document import document as permissions_document

FOLDERS: Final = ("schemas", "examples")
"""The folders that hold nothing but generated files."""

_BANNER: Final = "# Written by `make contracts` from the package turngate_contracts; change that, not this file.\n"


class _Dumper(yaml.SafeDumper):
    """Plain YAML 1.1 that 1.2 reads alike: no aliases, and texts of several lines as blocks."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002  PyYAML's hook
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _text)


def files() -> dict[str, str]:
    """Return every generated file: its path below `contracts/`, and what it holds."""
    found = {"asyncapi.yaml": _BANNER + to_yaml(document()), "permissions.md": permissions_document()}
    for kind, name in SCHEMAS.items():
        found[f"schemas/{name}.json"] = _pretty(codec.encode(message_schema(kind)))
        found[f"examples/{name}.json"] = _pretty(codec.encode(EXAMPLES[kind]))
    return found


def to_yaml(value: Any) -> str:
    """Return plain dicts and lists as YAML, in their own order."""
    text: str = yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110)
    return text


def _pretty(data: bytes) -> str:
    return msgspec.json.format(data, indent=2).decode() + "\n"
