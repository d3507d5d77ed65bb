"""Where the console is: its address, and its two files with the tokens and the secret that cookies are signed with."""

import ipaddress
import os
from pathlib import Path
from typing import Final

from turngate.settings import Settings

ANY: Final = ("", "0.0.0.0", "::")  # noqa: S104  what they mean is the point
"""What stands for every address of this machine."""


def tokens_path(settings: Settings) -> Path:
    """Return where the tokens are."""
    if settings.console_tokens:
        return Path(settings.console_tokens).expanduser()
    return _state_dir(settings) / "console-tokens.json"


def secret_path(settings: Settings) -> Path:
    """Return where the secret is: beside the tokens, so that consoles with the same tokens share it."""
    return tokens_path(settings).with_name("console-secret")


def is_loopback(host: str) -> bool:
    """Say whether only this machine reaches an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def url_of(host: str, port: int) -> str:
    """Return the address to open in a browser."""
    name = "127.0.0.1" if host in ANY else host
    return f"http://[{name}]:{port}/" if ":" in name else f"http://{name}:{port}/"


def _state_dir(settings: Settings) -> Path:
    if settings.state_dir:
        return Path(settings.state_dir).expanduser()
    base = os.environ.get("XDG_STATE_HOME", "")
    # The XDG specification: a path that is not absolute is to be ignored.
    return (Path(base) if base.startswith("/") else Path.home() / ".local" / "state") / "turngate"
