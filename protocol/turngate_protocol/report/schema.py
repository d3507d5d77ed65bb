"""The JSON Schema of a report, as a model sees it.

One object schema with flat blocks and no oneOf: endpoints differ in what they make of a union, and a model that can't
read the schema sends nothing usable. So the description of each field says which block types require it, read from the
same table as the validator, and the validator enforces it. The limits are stated here, not enforced: a model should
learn from the validator's sentence what to shorten.
"""

from collections.abc import Iterable
from enum import StrEnum
from typing import Any, Final

from turngate_protocol.report.model import (
    BLOCKS_MAX,
    CHOICES_MAX,
    DETAILS_MAX,
    HEADLINE_MAX,
    ID_MAX,
    INSTRUCTION_MAX,
    INTERACTIVE,
    LABEL_MAX,
    OPTIONS_MAX,
    OPTIONS_MIN,
    PREVIEW_MAX,
    SHAPES,
    SUMMARY_MAX,
    TEXT_MAX,
    BlockType,
    Effect,
    Level,
    ResponseType,
    Status,
    VerifyStatus,
)
from turngate_protocol.report.problems import listed

_ID: Final = (
    f"1 to {ID_MAX} characters: lower-case letters, digits and hyphens, the first one not a hyphen. Unique within"
)
_ASKING: Final = tuple(kind for kind in SHAPES if kind in INTERACTIVE)


def json_schema(max_blocks: int = BLOCKS_MAX) -> dict[str, Any]:
    """Return the schema of the report, for instance as the parameters of a model's tool.

    Args:
        max_blocks: the most blocks that the turn's rules allow; 0 or less selects 20.

    Returns:
        A new dict at each call.
    """
    limit = max_blocks if max_blocks > 0 else BLOCKS_MAX
    return _object(
        {
            "task_status": _enum(
                Status,
                "What the turn came to. completed and completed_with_notes: the work is done, and a verification block"
                " says how it was checked if anything was changed. needs_action: a decision, question or next_step"
                " block waits for an answer. blocked: a blocked block says by what. failed: a finding, warning or"
                " blocked block says why.",
            ),
            "headline": _text(f"One line of at most {HEADLINE_MAX} characters that says what the turn came to."),
            "blocks": {
                "type": "array",
                "items": _block(),
                "description": f"What is behind the headline, one item a block; at most {limit} blocks.",
            },
        },
        required=("task_status", "headline", "blocks"),
    )


def _block() -> dict[str, Any]:
    return _object(
        {
            "type": _enum(
                BlockType,
                "change: work that was done. finding: something learned that matters. verification: how the work was"
                " checked. warning: a risk. decision: a choice that only the user can make. question: information that"
                " only the user has. blocked: work that can't go on. next_step: a continuation for the user to accept."
                " unclassified: nothing else fits.",
            ),
            "id": _text(f"{_ID} the report."),
            "summary": _text(f"The block in one sentence of at most {SUMMARY_MAX} characters."),
            "details": _text(f"Markdown for whoever wants more; at most {DETAILS_MAX} bytes."),
            "related_files": {
                "type": "array",
                "items": {"type": "string"},
                "description": "Paths of the files that the block is about.",
            },
            **_own_fields(),
            "options": {
                "type": "array",
                "items": _option(),
                "description": (
                    f"The ways forward: {OPTIONS_MIN} to {OPTIONS_MAX} of them. {_required_for(_ASKING)}, where a"
                    " next_step needs a dispatch option and a collect or resolve one; not allowed for other types."
                    f" The first {CHOICES_MAX} of a report get a digit key."
                ),
            },
            "response_type": _enum(ResponseType, f"How the user answers. {_required_for(_ASKING)}."),
            "recommendation": _text(
                "What you advise. In a block with options, the id of one of them."
                f" {_required_for(kind for kind, shape in SHAPES.items() if shape.recommends)}."
            ),
            "recommendation_reason": _text(f"Why you advise it. {_required_for(_ASKING)}."),
        },
        required=("type", "id", "summary"),
    )


def _own_fields() -> dict[str, Any]:
    """The fields that belong to some types only, and are required by those that the table names."""
    return {
        "impact": _text(f"What follows from it. {_requires('impact')}."),
        "importance": _enum(Level, f"How much it matters. {_requires('importance')}."),
        "blocks_current_task": {
            "type": "boolean",
            "description": f"Whether the task can't be finished because of it. {_requires('blocks_current_task')}.",
        },
        "status": _enum(
            VerifyStatus,
            f"How the check went. {_requires('status')}; partial and not_run also need limitation or"
            " required_to_verify.",
        ),
        "evidence": _text("What shows the result of a verification: the command and what it printed."),
        "limitation": _text("What a verification did not cover, and why."),
        "required_to_verify": _text("What someone has to do to verify the rest."),
        "severity": _enum(Level, f"How bad it would be. {_requires('severity')}."),
        "question": _text(f"The question to the user. {_requires('question')}."),
        "blocker": _text(f"What stands in the way. {_requires('blocker')}."),
        "required_action": _text(f"What has to happen before work goes on. {_requires('required_action')}."),
        "reason_unclassified": _text(f"Why no other type fits. {_requires('reason_unclassified')}."),
        "suggested_type": _text("The block type you would have wanted, for an unclassified block."),
    }


def _option() -> dict[str, Any]:
    return _object(
        {
            "id": _text(f"{_ID} the block."),
            "label": _text(f"The option in at most {LABEL_MAX} characters."),
            "description": _text(f"What it means; at most {TEXT_MAX} characters."),
            "consequence": _text(f"What follows from picking it; at most {TEXT_MAX} characters."),
            "preview": _text(f"An excerpt of what it would give, such as a diff; at most {PREVIEW_MAX} bytes."),
            "effect": _enum(
                Effect,
                "What picking it does. dispatch: the instruction is sent as the next prompt. collect: the user edits an"
                " answer before it is sent. resolve: the work stops here.",
            ),
            "instruction": _text(
                f"The next prompt, complete in itself; at most {INSTRUCTION_MAX} bytes. Required for effect dispatch,"
                " not allowed for others."
            ),
        },
        required=("id", "label", "effect"),
    )


def _requires(name: str) -> str:
    return _required_for(kind for kind, shape in SHAPES.items() if any(field.name == name for field in shape.required))


def _required_for(kinds: Iterable[str]) -> str:
    return f"Required for {listed(tuple(kinds)).replace(' or ', ' and ')}"


def _object(properties: dict[str, Any], required: tuple[str, ...]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required)}


def _text(description: str) -> dict[str, Any]:
    return {"type": "string", "description": description}


def _enum(vocabulary: type[StrEnum], description: str) -> dict[str, Any]:
    return {"type": "string", "enum": [member.value for member in vocabulary], "description": description}
