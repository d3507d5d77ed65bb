"""The channels and operations of the AsyncAPI document, one of each for every row of the catalogue.

Operations are the application's, that is Turngate's: it *receives* what runners publish and what is asked for, and
*sends* nudges, work and events. A runner or a user interface does the opposite of each. What AsyncAPI has no word for
(the stream that keeps a message, the durable consumer, the error codes) is in `x-turngate` extensions.
"""

import re
from typing import Any, Final

from msgspec import Struct

from turngate_contracts.asyncapi_messages import ref
from turngate_contracts.catalogue import (
    ASKS,
    DEAD,
    ERROR,
    GENERAL_ERRORS,
    INTAKE,
    MAILBOX,
    PRESENCE,
    PROGRESS,
    REQUESTS,
    STATES,
    TIMERS,
    WORK,
)
from turngate_contracts.errors import STATUS
from turngate_contracts.json_schemas import ID_PATTERN
from turngate_contracts.messages import SCHEMAS
from turngate_contracts.rows import Ask, Request
from turngate_contracts.subjects import DEFAULT_NAMESPACE, STANDINGS, Subjects

BINDING_VERSION: Final = "0.1.0"
QUEUE: Final = "q"
"""The queue group of NATS micro services: each request reaches one process."""
REPLY_LOCATION: Final = "$message.header#/reply-to"
NAMESPACE_PATTERN: Final = "^[a-z][a-z0-9]{0,30}$"
"""What a namespace looks like to readers of the documents; `ids` is what enforces it."""

_NAMES: Final = Subjects()
_IDS: Final = {
    "runner": "The runner's own id. Permissions pin it, so that who sent a message is known and not claimed.",
    "caller": "The id of whoever asks. Permissions pin it, so that who did something is known and not claimed.",
    "session": "The session's id.",
    "pool": "The pool whose runners share the work.",
    "prompt": "The prompt's id, unique for ever: the subject takes one message, a second one is refused.",
    "task": "The id of a task within its session.",
    "kind": "What kind of thing waits, such as `card`.",
    "timer": "The timer's id: setting it again replaces it.",
    "role": "The role: `worker`, `critic`, `audit` or `recovery`.",
    "role_run": "The id of the role run; a name of its own where another session's run was given the same id.",
    "stream": "The stream that the message came from.",
    "letter": "The letter's id: stream, sequence and a digest of the message.",
}
_VARIABLE: Final = re.compile(r"\{([a-z_]+)\}")


class Parts(Struct):
    """What one part of the catalogue adds to the document: channels and operations by their names."""

    channels: dict[str, Any]
    operations: dict[str, Any]


def all_parts() -> Parts:
    """Return the channels and operations of every row of the catalogue."""
    whole = Parts({}, {})
    told = (_intake(), _requests(), _asks(), _mailboxes(), _work())
    for part in (*told, _states(), _events(), _progress(), _timers(), _presence(), _dead()):
        whole.channels |= part.channels
        whole.operations |= part.operations
    return whole


def all_parameters() -> dict[str, Any]:
    """Return what the parts of addresses are, by name."""
    return {
        "namespace": {
            "description": "Prefix of every subject of one system: 1 to 31 lower-case letters and digits.",
            "default": DEFAULT_NAMESPACE,
            "x-pattern": NAMESPACE_PATTERN,
        },
        **{name: {"description": text, "x-pattern": ID_PATTERN} for name, text in _IDS.items()},
        "stream": {"description": "The stream that the message came from.", "examples": [_NAMES.stream("turns")]},
        "standing": {
            "description": "Whether the state wants something done, which the reconciler's consumer filters by.",
            "enum": list(STANDINGS),
        },
    }


def _intake() -> Parts:
    part = Parts({}, {})
    for row in INTAKE:
        kept = {"stream": _NAMES.stream(row.stream), "consumer": row.consumer}
        part.channels[row.name] = _channel(
            row.address(),
            row.message,
            f"{row.summary} Publish it with JetStream and wait for the confirmation; without one, publish it again.",
            kept,
        )
        part.operations[f"receive_{_snake(row.name)}"] = _operation("receive", row.name, row.summary, "intake")
    return part


def _requests() -> Parts:
    part = Parts({}, {})
    for row in REQUESTS:
        _add_request(part, row)
        operation = _operation("receive", row.name, row.summary, "requests", _request_text(row))
        operation["reply"] = _reply(row)
        operation["bindings"] = {"nats": {"queue": QUEUE, "bindingVersion": BINDING_VERSION}}
        operation["x-turngate"] = {
            "service": row.service,
            "callers": [caller.value for caller in row.callers],
            "errors": {code.value: STATUS[code] for code in (*row.errors, *GENERAL_ERRORS)},
        }
        part.operations[f"answer_{_snake(row.name)}"] = operation
    return part


def _asks() -> Parts:
    part = Parts({}, {})
    for row in ASKS:
        _add_request(part, row)
        operation = _operation("send", row.name, row.summary, "asks")
        operation["reply"] = _reply(row)
        operation["x-turngate"] = {"service": row.service}
        part.operations[f"ask_{_snake(row.name)}"] = operation
    return part


def _add_request(part: Parts, row: Request | Ask) -> None:
    part.channels[row.name] = _channel(row.address(), row.request, row.summary, None)
    part.channels[f"{row.name}.reply"] = {
        "address": None,
        "title": f"Answers to {row.name}",
        "description": "The reply subject that the request names.",
        "messages": {SCHEMAS[kind]: ref(kind) for kind in (row.reply, ERROR)},
    }


def _reply(row: Request | Ask) -> dict[str, Any]:
    answers = f"#/channels/{row.name}.reply"
    return {
        "address": {
            "location": REPLY_LOCATION,
            "description": "The reply subject of the NATS request: a part of the protocol, not a header line.",
        },
        "channel": {"$ref": answers},
        "messages": [{"$ref": f"{answers}/messages/{SCHEMAS[kind]}"} for kind in (row.reply, ERROR)],
    }


def _request_text(row: Request) -> str:
    own = ", ".join(f"`{code.value}`" for code in row.errors)
    return (
        "A NATS micro service. Asking again has the same result, so ask again while nobody answers. An error carries"
        f" the header `Nats-Service-Error-Code`{f'; this request may be refused as {own}' if own else ''}."
    )


def _mailboxes() -> Parts:
    part = Parts({}, {})
    for row in MAILBOX:
        name = f"mailbox.{row.kind}"
        part.channels[name] = _channel(
            row.address(),
            row.message,
            f"{row.summary} A nudge that may be lost, `{row.truth}` is the truth. A runner subscribes to all kinds,"
            " `{namespace}.to.{runner}.>`.",
            None,
        )
        part.operations[f"send_{_snake(name)}"] = _operation("send", name, row.summary, "mailbox")
    return part


def _work() -> Parts:
    part = Parts({}, {})
    for row in WORK:
        name = f"work.{row.name}"
        text = f"{row.summary} Join first (`runner.join`), then pull from the pool's consumer and acknowledge."
        part.channels[name] = _channel(row.address(), row.message, text, {"stream": _NAMES.stream(row.stream)})
        part.operations[f"send_{_snake(name)}"] = _operation("send", name, row.summary, "work")
    return part


def _states() -> Parts:
    part = Parts({}, {})
    for row in STATES:
        name = f"state.{row.bucket}"
        kept = {"stream": _NAMES.bucket_stream(row.bucket), "bucket": _NAMES.bucket(row.bucket), "audience": "services"}
        text = f"{row.summary} A key of a JetStream bucket, which only services reach."
        part.channels[name] = _channel(row.address(), row.message, text, kept)
        part.operations[f"save_{_snake(row.bucket)}"] = _operation("send", name, row.summary, "state")
    return part


def _events() -> Parts:
    part = Parts({}, {})
    for row in STATES:
        if not row.events:
            continue
        stored, live = f"event.{row.bucket}", f"live.{row.bucket}"
        kept = {"stream": _NAMES.stream("events"), "kind": row.bucket}
        part.channels[stored] = _channel(
            row.event_address(),
            row.message,
            f"{row.summary} Stored revisions; the stream's sequence is the cursor from which a reader goes on. A body"
            " is empty, beside the header `KV-Operation`, where the state was deleted.",
            kept,
        )
        part.channels[live] = _channel(
            row.live_address(),
            row.message,
            f"{row.summary} The same revisions as they come, for any number of readers; `Nats-Sequence` is the cursor."
            " Fill a gap by reading the stream.",
            {"republished": stored},
        )
        part.operations[f"store_{_snake(stored)}"] = _operation("send", stored, row.summary, "events")
        part.operations[f"send_{_snake(live)}"] = _operation("send", live, row.summary, "events")
    return part


def _progress() -> Parts:
    text, stored, live = PROGRESS.summary, "event.progress", "live.progress"
    return Parts(
        {
            stored: _channel(
                PROGRESS.address(),
                PROGRESS.message,
                text,
                {"stream": _NAMES.stream("events"), "kind": "progress"},
            ),
            live: _channel(PROGRESS.live_address(), PROGRESS.message, text, {"republished": stored}),
        },
        {
            f"{verb}_{_snake(name)}": _operation("send", name, text, "events")
            for verb, name in (("store", stored), ("send", live))
        },
    )


def _timers() -> Parts:
    part = Parts({}, {})
    for row in TIMERS:
        set_at, due = f"timer.at.{row.kind}", f"timer.due.{row.kind}"
        kept = {"stream": _NAMES.stream("timers"), "audience": "services"}
        part.channels[set_at] = _channel(
            row.schedule_address(), row.message, f"{row.summary} The server keeps it until then.", kept
        )
        kept = {**kept, "consumer": _NAMES.timer_consumer(row.kind)}
        part.channels[due] = _channel(row.address(), row.message, f"{row.summary} It arrives here, once set.", kept)
        part.operations[f"set_{_snake(set_at)}"] = _operation("send", set_at, row.summary, "timers")
        part.operations[f"receive_{_snake(due)}"] = _operation("receive", due, row.summary, "timers")
    return part


def _presence() -> Parts:
    kept = {"stream": _NAMES.stream(PRESENCE.stream), "audience": "services"}
    return Parts(
        {"presence": _channel(PRESENCE.address(), PRESENCE.message, PRESENCE.summary, kept)},
        {"store_presence": _operation("send", "presence", PRESENCE.summary, "presence")},
    )


def _dead() -> Parts:
    address, text = DEAD.address(), DEAD.summary
    kept = {"stream": _NAMES.stream(DEAD.stream), "audience": "people"}
    return Parts(
        {"dead": _channel(address, DEAD.message, text, kept)},
        {"send_dead_letter": _operation("send", "dead", text, "dead letters")},
    )


def _channel(address: str, message: type[Struct], description: str, kept: dict[str, Any] | None) -> dict[str, Any]:
    channel: dict[str, Any] = {
        "address": address,
        "description": description,
        "messages": {SCHEMAS[message]: ref(message)},
        "parameters": {name: {"$ref": f"#/components/parameters/{name}"} for name in _VARIABLE.findall(address)},
    }
    return {**channel, "x-turngate": kept} if kept else channel


def _operation(action: str, channel: str, summary: str, tag: str, description: str = "") -> dict[str, Any]:
    return {
        "action": action,
        "channel": {"$ref": f"#/channels/{channel}"},
        "summary": summary,
        **({"description": description} if description else {}),
        "tags": [{"name": tag}],
    }


def _snake(name: str) -> str:
    return name.replace(".", "_")
