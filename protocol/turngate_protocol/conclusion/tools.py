"""The tool that a delegated agent may conclude with: `conclude`, as a schema, as checked arguments, and as the block.

The rules are those of the specification's conclusion page, but the six fields come as a tool's arguments and are
checked at once, with the model still there to repair them: a block in prose is read tolerantly, because nobody can ask
any more. What passes becomes the very block that `parse` reads.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

from turngate_protocol.conclusion.model import Conclusion
from turngate_protocol.conclusion.parse import CLOSING_TAG, OPENING_TAG, carriable
from turngate_protocol.conclusion.yaml_body import MAX_BODY_CHARS
from turngate_protocol.text import byte_length, is_blank, trim

SUMMARY_BYTES: Final = 64 * 1024
"""Longest summary and longest follow-up that the tool takes, in UTF-8 bytes."""
REF_BYTES: Final = 4_096
"""Longest artifact and longest memory ref, in UTF-8 bytes."""
MAX_REFS: Final = 500
"""Most artifacts, and most memory refs, that the tool takes."""

_STATUSES: Final = ("success", "partial", "failed", "blocked")
_TEXTS: Final = ("summary", "follow_up")
_LISTS: Final = ("artifacts", "memory_refs")

CONCLUDE: Final[dict[str, Any]] = {
    "name": "conclude",
    "description": (
        "Conclude a task that was delegated to you: only if another agent gave you the task, once, as the last thing "
        "that you do. The software looks whether the files exist that you name, and tells whoever delegated the task."
    ),
    "input_schema": {
        "type": "object",
        "properties": {
            "status": {
                "type": "string",
                "enum": list(_STATUSES),
                "description": "success only if all that was asked is done and checked; partial if some of it is.",
            },
            "summary": {
                "type": "string",
                "minLength": 1,
                "description": f"What was done and how it was checked, at most {SUMMARY_BYTES} bytes.",
            },
            "artifacts": {
                "type": "array",
                "items": {"type": "string"},
                "maxItems": MAX_REFS,
                "description": "Paths of the files that you made or changed, as they are now.",
            },
            "memory_refs": {
                "type": "array",
                "items": {"type": "string"},
                "maxItems": MAX_REFS,
                "description": "Ids of the memories that you wrote, if you have any.",
            },
            "follow_up": {"type": "string", "description": "What is left to do, if anything."},
            "confidence": {
                "type": "number",
                "minimum": 0,
                "maximum": 1,
                "description": "How sure you are that it is as you say, 0 to 1.",
            },
        },
        "required": ["status", "summary"],
        "additionalProperties": False,
    },
}
"""The schema of `conclude`."""


class ConclusionProblems(ValueError):
    """The arguments of a call of `conclude` break the schema; the message names every field that does."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("conclude recorded nothing. " + " ".join(problems) + " Call it again with that repaired.")
        self.problems = tuple(problems)


def conclusion_of(arguments: Mapping[str, Any]) -> Conclusion:
    """Return what a call of `conclude` says.

    Raises:
        ConclusionProblems: the call does not have the shape of the schema.
    """
    problems = [
        f"{ascii(name)[:80]} is no field of it."
        for name in arguments
        if name not in CONCLUDE["input_schema"]["properties"]
    ]
    status, confidence = arguments.get("status"), arguments.get("confidence", 0)
    if status not in _STATUSES:
        problems.append(f"status {ascii(status)[:80]} is none of {', '.join(_STATUSES)}.")
    if isinstance(confidence, bool) or not isinstance(confidence, int | float) or not 0 <= confidence <= 1:
        problems.append(f"confidence {ascii(confidence)[:80]} must be a number from 0 to 1.")
    texts = {name: _text(name, arguments.get(name, ""), problems) for name in _TEXTS}
    lists = {name: _refs(name, arguments.get(name, []), problems) for name in _LISTS}
    if isinstance(arguments.get("summary", ""), str) and not texts["summary"]:
        problems.append("summary must say what was done.")
    if problems:
        raise ConclusionProblems(problems)
    found = Conclusion(
        str(status), texts["summary"], lists["artifacts"], lists["memory_refs"], texts["follow_up"], float(confidence)
    )
    if len(block_of(found)) > MAX_BODY_CHARS:
        raise ConclusionProblems([f"In all it is too long; {MAX_BODY_CHARS} characters are taken, escapes included."])
    return found


def block_of(conclusion: Conclusion) -> str:
    """Return the block that an agent would have closed its run with; `parse` of it gives `conclusion` back."""
    body: dict[str, Any] = {"status": conclusion.status, "summary": conclusion.summary}
    for name in ("artifacts", "memory_refs", "follow_up", "confidence"):
        if value := getattr(conclusion, name):
            body[name] = value
    # JSON is YAML but for what it may hold unescaped; no text in it can open or close a block.
    written = "".join(map(_escaped, json.dumps(body, ensure_ascii=False)))
    return f"{OPENING_TAG}\n{written}\n{CLOSING_TAG}"


def _escaped(char: str) -> str:
    if char != "<" and (char.isalnum() or (char.isascii() and char.isprintable())):
        return char
    return f"\\u{ord(char):04x}" if ord(char) < 0x10000 else f"\\U{ord(char):08x}"


def _text(name: str, value: Any, problems: list[str]) -> str:
    if not isinstance(value, str):
        problems.append(f"{name} must be a text.")
        return ""
    text = trim(carriable(value))
    if (size := byte_length(text)) > SUMMARY_BYTES:
        problems.append(f"{name} has {size} bytes; at most {SUMMARY_BYTES} are taken.")
    return text


def _refs(name: str, value: Any, problems: list[str]) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(ref, str) for ref in value):
        problems.append(f"{name} must be a list of texts.")
        return ()
    if len(value) > MAX_REFS:
        problems.append(f"{name} has {len(value)} entries; at most {MAX_REFS} are taken.")
        return ()
    refs = tuple(trim(carriable(ref)) for ref in value)
    for ref in refs:
        if is_blank(ref) or byte_length(ref) > REF_BYTES:
            problems.append(f"an entry of {name} is blank or has over {REF_BYTES} bytes.")
            break
    return refs
