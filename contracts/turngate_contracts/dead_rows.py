"""The catalogue's rows for dead letters; `catalogue` puts them beside the others."""

from typing import Final

from turngate_contracts.dead import (
    DeadDecided,
    DeadFound,
    DeadLetter,
    DeadPage,
    DropDead,
    GetDead,
    ListDead,
    RetryDead,
)
from turngate_contracts.errors import ErrorCode
from turngate_contracts.rows import Caller, Dead, Request
from turngate_contracts.topology import DEADLETTER

DEAD_REQUESTS: Final = (
    Request(
        "dead.list",
        ListDead,
        DeadPage,
        DEADLETTER,
        (Caller.PERSON,),
        "List dead letters, the longest unchanged first, a page at a time.",
        (ErrorCode.INVALID_ARGUMENT,),
    ),
    Request(
        "dead.get",
        GetDead,
        DeadFound,
        DEADLETTER,
        (Caller.PERSON,),
        "Get one dead letter with its body.",
        (ErrorCode.NOT_FOUND,),
    ),
    Request(
        "dead.retry",
        RetryDead,
        DeadDecided,
        DEADLETTER,
        (Caller.PERSON,),
        "Have a dead message published again as it was, once; its handler knows what of it was done before.",
        (ErrorCode.NOT_FOUND, ErrorCode.ALREADY_RESOLVED, ErrorCode.INVALID, ErrorCode.INVALID_ARGUMENT),
    ),
    Request(
        "dead.drop",
        DropDead,
        DeadDecided,
        DEADLETTER,
        (Caller.PERSON,),
        "Remove a dead message's body for good; who did it and why is kept.",
        (ErrorCode.NOT_FOUND, ErrorCode.ALREADY_RESOLVED, ErrorCode.INVALID_ARGUMENT),
    ),
)
"""What people ask of the dead-letter service."""

DEAD_ROW: Final = Dead(DeadLetter, "dead", "A message that nothing can be done with, with its reason and its origin.")
