"""Where the console keeps its two files: the tokens, and the secret that cookies are signed with."""

import os
from pathlib import Path

from turngate.settings import Settings


def tokens_path(settings: Settings) -> Path:
    """Return where the tokens are."""
    if settings.console_tokens:
        return Path(settings.console_tokens).expanduser()
    return _state_dir(settings) / "console-tokens.json"


def secret_path(settings: Settings) -> Path:
    """Return where the secret is: beside the tokens, so that consoles with the same tokens share it."""
    return tokens_path(settings).with_name("console-secret")


def _state_dir(settings: Settings) -> Path:
    if settings.state_dir:
        return Path(settings.state_dir).expanduser()
    base = os.environ.get("XDG_STATE_HOME", "")
    # The XDG specification: a path that is not absolute is to be ignored.
    return (Path(base) if base.startswith("/") else Path.home() / ".local" / "state") / "turngate"
