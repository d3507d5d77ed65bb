"""Logging of processes: lines for people on a terminal, JSON lines where a program reads them; never a secret.

Log messages may quote what models and strangers wrote, so control characters are shown as escapes, and credentials
inside of URLs are taken out, whatever logged them.
"""

import json
import logging
import re
import sys
import traceback
from datetime import UTC, datetime
from typing import Any, Final

from turngate import tracing
from turngate_protocol.text import visible

FORMATS: Final = ("auto", "human", "json")
LEVELS: Final = ("debug", "info", "warning", "error")

_TLS_END: Final = "returning true from eof_received"
"""Begins what asyncio says whenever a server closes a connection of TLS; nats-py upgrades connections by itself."""
_CREDENTIALS: Final = re.compile(r"(?<=://)[^@/\s]*@")


def without_secrets(text: str) -> str:
    """Return `text` with the credentials of every URL in it replaced by asterisks."""
    return _CREDENTIALS.sub("***@", text)


def set_up_logging(level: str = "info", form: str = "auto") -> None:
    """Have every logger of this process write to stderr.

    Args:
        level: the least level that is written: one of LEVELS.
        form: `human`, `json`, or `auto` for human lines on a terminal and JSON lines otherwise.
    """
    human = form == "human" or (form == "auto" and sys.stderr.isatty())
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(HumanFormatter() if human else JsonFormatter())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    # It logs each reconnect attempt as an error of its own; our connection says so once.
    logging.getLogger("nats.aio.client").setLevel(logging.CRITICAL)
    logging.getLogger("asyncio").addFilter(_no_end_of_tls)


def silence() -> None:
    """Have nothing logged where nobody set logging up: a command tells its one error itself."""
    logging.getLogger().addHandler(logging.NullHandler())


def _no_end_of_tls(record: logging.LogRecord) -> bool:
    return not record.getMessage().startswith(_TLS_END)


class HumanFormatter(logging.Formatter):
    """`12:01:02 INFO turngate.process: ready`, and a traceback in lines of its own."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as one line, followed by its traceback if it has one."""
        at = datetime.fromtimestamp(record.created).strftime("%H:%M:%S")  # noqa: DTZ006  a person's own clock
        lines = [f"{at} {record.levelname} {record.name}: {record.getMessage()}", *_traceback(record)]
        return "\n".join(visible(without_secrets(line)) for line in lines)


class JsonFormatter(logging.Formatter):
    """One JSON object a line: time (RFC 3339, UTC), level, logger, pid, message, and facts.

    The facts are those of what is being handled, such as its session and its trace, and those given as `extra`.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as one line of JSON in ASCII."""
        fields: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "pid": record.process,
            "message": without_secrets(record.getMessage()),
            **tracing.facts(),
            **getattr(record, "facts", {}),
        }
        if record.exc_info:
            fields["traceback"] = without_secrets("\n".join(_traceback(record)))
        return json.dumps(fields, default=str)


def _traceback(record: logging.LogRecord) -> list[str]:
    if not record.exc_info or record.exc_info[1] is None:
        return []
    return "".join(traceback.format_exception(record.exc_info[1])).rstrip().split("\n")
