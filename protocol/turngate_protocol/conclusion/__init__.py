"""Conclusions: parse what a delegated agent ends with, complete it, check its evidence, show it to the parent.

The rules are those of the specification's conclusion page. `parse` and `enrich` make a `Conclusion` of a `Task`;
`refs_to_check` says what has to be asked on the runner's host and `verify` judges by the answers; `format_for_parent`
is what the parent reads. All of it is pure: no file, clock or network.
"""

from turngate_protocol.conclusion.enrich import enrich
from turngate_protocol.conclusion.model import (
    BYTE_LIMITS,
    MAX_CHECKED_REFS,
    MAX_OUTPUT_BYTES,
    MAX_TAIL_BYTES,
    STATUSES,
    TERMINAL_STATES,
    Conclusion,
    Excess,
    GateResult,
    Project,
    RefState,
    StartRecord,
    StatAnswer,
    Task,
    is_terminal,
    keep_end,
    over_limits,
)
from turngate_protocol.conclusion.parse import CLOSING_TAG, OPENING_TAG, parse
from turngate_protocol.conclusion.present import (
    Resolver,
    Resolvers,
    artifact_resolver,
    brief_instruction,
    format_for_parent,
    memory_resolver,
)
from turngate_protocol.conclusion.verify import GateOptions, RefsToCheck, refs_to_check, verify

__all__ = [
    "BYTE_LIMITS",
    "CLOSING_TAG",
    "MAX_CHECKED_REFS",
    "MAX_OUTPUT_BYTES",
    "MAX_TAIL_BYTES",
    "OPENING_TAG",
    "STATUSES",
    "TERMINAL_STATES",
    "Conclusion",
    "Excess",
    "GateOptions",
    "GateResult",
    "Project",
    "RefState",
    "RefsToCheck",
    "Resolver",
    "Resolvers",
    "StartRecord",
    "StatAnswer",
    "Task",
    "artifact_resolver",
    "brief_instruction",
    "enrich",
    "format_for_parent",
    "is_terminal",
    "keep_end",
    "memory_resolver",
    "over_limits",
    "parse",
    "refs_to_check",
    "verify",
]
