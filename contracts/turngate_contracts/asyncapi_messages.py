"""The messages of the AsyncAPI document: payload, headers and example of each.

The headers are those that our own processes write; the server adds its own (`Nats-Sequence` and the like) on reading.
"""

import re
from datetime import UTC, datetime
from typing import Any, Final

from msgspec import Struct

from turngate_contracts import codec
from turngate_contracts import headers as h
from turngate_contracts.catalogue import (
    ASKS,
    DEAD,
    ERROR,
    INTAKE,
    MAILBOX,
    PRESENCE,
    PROGRESS,
    REQUESTS,
    STATES,
    TIMERS,
    WORK,
)
from turngate_contracts.dead import DeadLetter
from turngate_contracts.errors import STATUS, ErrorBody
from turngate_contracts.examples import EXAMPLES, REVISION
from turngate_contracts.headers import SCHEMA
from turngate_contracts.json_schemas import components, draft_07, names
from turngate_contracts.messages import SCHEMAS
from turngate_contracts.rows import State
from turngate_contracts.subjects import DEFAULT_NAMESPACE, SPLIT

TRACE_PARENT_PATTERN: Final = "^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$"
SERVICE_ERROR: Final = "Nats-Service-Error"
SERVICE_ERROR_CODE: Final = "Nats-Service-Error-Code"
LIVE_SEQUENCE: Final = "Nats-Sequence"

_TRACE: Final = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
_REF: Final = "#/components/schemas/{name}"


def all_messages() -> dict[str, dict[str, Any]]:
    """Return the message object of every `SCHEMAS` entry, by its schema name."""
    called = names(SCHEMAS)
    headers: dict[type[Struct], tuple[dict[str, Any], list[str], dict[str, str]]] = {
        **{row.message: _intake() for row in INTAKE},
        **{row.message: _nothing() for row in (*MAILBOX, *WORK)},
        **{kind: _nothing() for row in (*REQUESTS, *ASKS) for kind in (row.request, row.reply)},
        **{row.message: _event(row) if row.events else _entry() for row in STATES},
        **{row.message: _timer() for row in TIMERS},
        PROGRESS.message: _progress(),
        PRESENCE.message: _nothing(),
        DEAD.message: _letter(),
        ERROR: _error(),
    }
    return {SCHEMAS[kind]: _message(kind, called[kind], *headers[kind]) for kind in SCHEMAS}


def all_schemas() -> dict[str, Any]:
    """Return the schemas that the messages' payloads refer to, in the dialect that AsyncAPI 3.0 reads."""
    found: dict[str, Any] = draft_07(components(SCHEMAS, _REF))
    return found


def ref(kind: type[Struct]) -> dict[str, str]:
    """Return a reference to a message of the document."""
    return {"$ref": f"#/components/messages/{SCHEMAS[kind]}"}


def _message(
    kind: type[Struct], called: str, fields: dict[str, Any], required: list[str], shown: dict[str, str]
) -> dict[str, Any]:
    name = SCHEMAS[kind]
    text = re.sub(r"\s+", " ", (kind.__doc__ or "").partition("\n\n")[0]).strip()
    own = {SCHEMA: {"type": "string", "const": name, "description": "Name and version of the body."}}
    return {
        "name": name,
        "title": called,
        "summary": text,
        "contentType": "application/json",
        "headers": {"type": "object", "properties": {**own, **fields}, "required": [SCHEMA, *required]},
        "payload": {"$ref": _REF.format(name=called)},
        "examples": [
            {
                "name": name.partition(".")[0],
                "summary": f"From contracts/examples/{name}.json.",
                "headers": {SCHEMA: name, **shown},
                "payload": codec.to_builtins(EXAMPLES[kind]),
            }
        ],
    }


def _nothing() -> tuple[dict[str, Any], list[str], dict[str, str]]:
    return {}, [], {}


def _trace() -> dict[str, Any]:
    text = "W3C trace context of what caused the message; one that is malformed is ignored."
    return {h.TRACE_PARENT: {"type": "string", "pattern": TRACE_PARENT_PATTERN, "description": text}}


def _intake() -> tuple[dict[str, Any], list[str], dict[str, str]]:
    return _trace(), [], {h.TRACE_PARENT: _TRACE}


def _progress() -> tuple[dict[str, Any], list[str], dict[str, str]]:
    fields = {
        "ce-specversion": {"type": "string", "const": "1.0", "description": "CloudEvents, binary content mode."},
        "ce-id": _text("The role run and when it was told: unique within its source."),
        "ce-source": _text("The namespace, as `/turngate/NAMESPACE/progress`."),
        "ce-type": {"type": "string", "const": f"turngate.{PROGRESS.event}"},
        "ce-subject": _text("The session."),
        "ce-time": {"type": "string", "format": "date-time", "description": "When it was told, in UTC."},
        "content-type": {"type": "string", "const": "application/json"},
    }
    optional = {
        h.MESSAGE_TTL: _text("For how long it is kept, in seconds, such as `600s`."),
        LIVE_SEQUENCE: _digits("Added by the server, on live events only: the cursor."),
    }
    plain = codec.to_builtins(EXAMPLES[PROGRESS.message])
    at = datetime.fromtimestamp(plain["at"] / 1000, UTC).isoformat(timespec="milliseconds")[:-6]
    shown = {
        "ce-specversion": "1.0",
        "ce-id": f"{plain['role_run']}.{plain['at']}",
        "ce-source": f"/turngate/{DEFAULT_NAMESPACE}/progress",
        "ce-type": f"turngate.{PROGRESS.event}",
        "ce-subject": plain["session"],
        "ce-time": f"{at}Z",
        "content-type": "application/json",
        h.MESSAGE_TTL: "600s",
    }
    return {**fields, **optional}, [*fields], shown


def _event(row: State) -> tuple[dict[str, Any], list[str], dict[str, str]]:
    fields = {
        "ce-specversion": {"type": "string", "const": "1.0", "description": "CloudEvents, binary content mode."},
        "ce-id": _text("The key and the revision that this one was derived from: unique within its source."),
        "ce-source": _text("The namespace and the bucket, as `/turngate/NAMESPACE/BUCKET`."),
        "ce-type": {"type": "string", "enum": [f"turngate.{event}" for event in row.events]},
        "ce-subject": _text("The key whose state this is."),
        "ce-time": {"type": "string", "format": "date-time", "description": "When it happened, in UTC."},
        "content-type": {"type": "string", "const": "application/json"},
    }
    optional = {
        h.EXPECTED_SEQUENCE: _digits("The revision that this one was derived from, on saves only: a compare-and-set."),
        **(
            {h.EXPECTED_SUBJECT: _text("On saves only: what the revision is compared over.")}
            if row.bucket in SPLIT
            else {}
        ),
        LIVE_SEQUENCE: _digits("Added by the server, on live events only: the cursor."),
        h.WANTS: {"type": "string", "const": "1", "description": "The state wants something done outside of it."},
        **_trace(),
    }
    plain = codec.to_builtins(EXAMPLES[row.message])
    key = ".".join(plain.get(part) or plain[f"{part}_id"] for part in row.key)
    at = datetime.fromtimestamp(plain["cause"]["at"] / 1000, UTC).isoformat(timespec="milliseconds")[:-6]
    shown = {
        "ce-specversion": "1.0",
        "ce-id": f"{key}.{REVISION - 1}",
        "ce-source": f"/turngate/{DEFAULT_NAMESPACE}/{row.bucket}",
        "ce-type": f"turngate.{row.prefix}{plain['cause']['type']}",
        "ce-subject": key,
        "ce-time": f"{at}Z",
        "content-type": "application/json",
        h.WANTS: "1",
    }
    return {**fields, **optional}, list(fields), shown


def _entry() -> tuple[dict[str, Any], list[str], dict[str, str]]:
    fields = {
        h.SOURCE_REVISION: _digits("The revision of the state that the entry was derived from; the newest one wins."),
        h.EXPECTED_SEQUENCE: _digits("The entry's own revision that this one replaces, 0 for none."),
    }
    return fields, list(fields), {h.SOURCE_REVISION: str(REVISION), h.EXPECTED_SEQUENCE: "0"}


def _timer() -> tuple[dict[str, Any], list[str], dict[str, str]]:
    fields = {
        h.SCHEDULE: _text("When it is due, as `@at TIME`; on the subject where it is set."),
        h.SCHEDULE_TARGET: _text("The subject where it arrives; on the subject where it is set."),
    }
    return fields, [], {}


def _letter() -> tuple[dict[str, Any], list[str], dict[str, str]]:
    letter = EXAMPLES[DeadLetter]
    if not isinstance(letter, DeadLetter):
        raise TypeError("the example of a DeadLetter is another message")
    fields = {
        h.REASON: _text("The error code that sent it here."),
        h.ORIGIN_SEQUENCE: _digits("Its sequence in the stream that it came from."),
        h.DELIVERIES: _digits("How often it was delivered."),
        h.EXPECTED_SEQUENCE: _digits("The letter's own revision that this one replaces, 0 for none."),
    }
    shown = {
        h.REASON: letter.reason.code.value,
        h.ORIGIN_SEQUENCE: str(letter.sequence),
        h.DELIVERIES: str(letter.deliveries),
        h.EXPECTED_SEQUENCE: "0",
    }
    return fields, list(fields), shown


def _error() -> tuple[dict[str, Any], list[str], dict[str, str]]:
    error = EXAMPLES[ErrorBody]
    if not isinstance(error, ErrorBody):
        raise TypeError("the example of an ErrorBody is another message")
    fields = {
        SERVICE_ERROR: _text("The body's sentence for micro service clients, in ASCII and cut to 200 characters."),
        SERVICE_ERROR_CODE: {
            "type": "string",
            "enum": sorted({str(status) for status in STATUS.values()}),
            "description": "A number in the manner of HTTP, beside the code in the body.",
        },
    }
    return fields, list(fields), {SERVICE_ERROR: error.message, SERVICE_ERROR_CODE: str(STATUS[error.code])}


def _text(description: str) -> dict[str, Any]:
    return {"type": "string", "description": description}


def _digits(description: str) -> dict[str, Any]:
    return {"type": "string", "pattern": "^[0-9]+$", "description": description}
