"""The AsyncAPI 3.0 document of everything that crosses NATS, derived from the catalogue.

A runner in any language needs only this document (`contracts/asyncapi.yaml`) and NATS. It is written by
`make contracts`; a test keeps the file in step. Nothing here does I/O.
"""

from typing import Any, Final

from turngate_contracts.asyncapi_channels import all_parameters, all_parts
from turngate_contracts.asyncapi_messages import all_messages, all_schemas
from turngate_contracts.topology import TOPOLOGY_VERSION

ASYNCAPI_VERSION: Final = "3.0.0"
CONTRACT_VERSION: Final = "1.0.0"
"""Version of what crosses NATS: the minor number grows with each addition, the major one would break readers."""

_DESCRIPTION: Final = f"""\
Turngate gates the turns of AI agents over NATS JetStream: runners publish what their agents end a turn with, each
attempt gets exactly one verdict, and user interfaces follow every state.

Operations are Turngate's own: it receives what a runner sends, and sends what a runner or a user interface receives.

Rules of all messages:

- Bodies are JSON in UTF-8; bytes in them are base64. The header `Turngate-Schema` names a body and its version.
- Fields are only added, always with a default: ignore the ones that you don't know, and leave out those that you don't
  need.
- Times are milliseconds since the epoch in bodies, and RFC 3339 in UTC in CloudEvents headers.
- Everything may arrive more than once. Numbers (turn, attempt, ending) and operation ids say what is a repeat.
- Sizes are bounded as encoded: a body has at most the server's max_payload less 16 KiB.

The streams and buckets are version {TOPOLOGY_VERSION} of the topology; their names are given for the namespace `tg`.
"""


def document() -> dict[str, Any]:
    """Return the document as plain dicts and lists, new at each call."""
    parts = all_parts()
    return {
        "asyncapi": ASYNCAPI_VERSION,
        "id": "urn:turngate",
        "info": {
            "title": "Turngate",
            "version": CONTRACT_VERSION,
            "description": _DESCRIPTION,
            "license": {"name": "Apache-2.0", "url": "https://www.apache.org/licenses/LICENSE-2.0"},
            "tags": [
                {"name": "intake", "description": "What runners publish durably."},
                {"name": "requests", "description": "What is asked for and answered at once, by NATS micro services."},
                {"name": "asks", "description": "What services ask of runners; no answer in time counts as one."},
                {"name": "mailbox", "description": "Nudges to runners."},
                {"name": "work", "description": "What the runners of a pool take over."},
                {"name": "state", "description": "The buckets, which only services reach."},
                {"name": "events", "description": "Every revision of every state, for user interfaces."},
                {"name": "dead letters", "description": "Messages that nothing can be done with."},
            ],
        },
        "defaultContentType": "application/json",
        "servers": {
            "nats": {
                "host": "{host}:{port}",
                "protocol": "nats",
                "description": "nats-server 2.15 or newer with JetStream, or a cluster of them.",
                "variables": {
                    "host": {"default": "127.0.0.1", "description": "Where the server listens."},
                    "port": {"default": "4222", "description": "Its client port."},
                },
            }
        },
        "channels": parts.channels,
        "operations": parts.operations,
        "components": {
            "parameters": all_parameters(),
            "messages": all_messages(),
            "schemas": all_schemas(),
        },
    }
