"""What one block of a report must look like: its own fields, then its options.

This is the block part of the rule book that `model` names; `rules` calls it for each block in turn and adds the rules
that look at the report as a whole. Every check appends to the list it is given and goes on: a model that guessed wrong
should learn of everything at once. Nothing is trimmed here, and no text makes a check raise.
"""

import re
from typing import Final

from turngate_protocol.report.model import (
    DETAILS_MAX,
    ID_MAX,
    ID_PATTERN,
    INSTRUCTION_MAX,
    LABEL_MAX,
    OPTIONS_MAX,
    OPTIONS_MIN,
    PREVIEW_MAX,
    SHAPES,
    SUMMARY_MAX,
    TEXT_MAX,
    Block,
    BlockType,
    Effect,
    Option,
    Required,
    ResponseType,
    VerifyStatus,
)
from turngate_protocol.report.problems import Problem, listed, quote
from turngate_protocol.text import byte_length

# Plain strings: comparing a text with an enum member costs several times as much.
_DISPATCH: Final = Effect.DISPATCH.value
_EFFECTS: Final = tuple(effect.value for effect in Effect)
_NEXT_STEP: Final = BlockType.NEXT_STEP.value
_SINGLE: Final = ResponseType.SINGLE.value
_UNVERIFIED: Final = (VerifyStatus.PARTIAL.value, VerifyStatus.NOT_RUN.value)
_VERIFICATION: Final = BlockType.VERIFICATION.value
# A character takes 4 bytes at most: a text of so many characters fits without being measured.
_DETAILS_SURE: Final = DETAILS_MAX // 4
_PREVIEW_SURE: Final = PREVIEW_MAX // 4
_INSTRUCTION_SURE: Final = INSTRUCTION_MAX // 4
_shapes: Final = dict(SHAPES)  # a look-up in the read-only view of it costs twice as much
_is_id: Final = re.compile(ID_PATTERN).fullmatch
_ID_RULE: Final = f"1 to {ID_MAX} characters of a-z, 0-9 and -, not starting with -"


def check_block(block: Block, at: int, seen: set[str], problems: list[Problem]) -> None:
    """Append everything that is wrong with one block.

    Args:
        block: the block.
        at: its index in the report.
        seen: the ids of the blocks before it; its own is added.
        problems: where to append.
    """
    shape = _shapes.get(block.type)
    if shape is None:
        message = f"The block type is {quote(block.type)}; use {listed(tuple(SHAPES))}."
        problems.append(Problem(f"/blocks/{at}/type", "block_type_unknown", message))
        return
    if not _is_id(block.id):
        message = f"The block id is {quote(block.id)}; an id is {_ID_RULE}."
        problems.append(Problem(f"/blocks/{at}/id", "block_id_invalid", message))
    elif block.id in seen:
        message = f"The block id {quote(block.id)} is used by an earlier block; give each block its own."
        problems.append(Problem(f"/blocks/{at}/id", "block_id_duplicate", message))
    seen.add(block.id)
    if not block.summary:
        message = f"The summary is empty; say in one sentence, of at most {SUMMARY_MAX} characters, what this block is."
        problems.append(Problem(f"/blocks/{at}/summary", "summary_empty", message))
    elif len(block.summary) > SUMMARY_MAX:
        message = _too_long("summary", block.summary, SUMMARY_MAX, "put the rest into details")
        problems.append(Problem(f"/blocks/{at}/summary", "summary_too_long", message))
    if len(block.details) > _DETAILS_SURE and byte_length(block.details) > DETAILS_MAX:
        message = _too_large("details are", block.details, DETAILS_MAX, "shorten them or name a file that has the rest")
        problems.append(Problem(f"/blocks/{at}/details", "details_too_large", message))
    required, interactive, recommends = shape
    if required:
        _check_fields(block, required, at, problems)
    if interactive:
        _check_asking(block, recommends, at, problems)
    elif block.options:
        message = f"A {block.type} block asks nothing but has {len(block.options)} options; drop them or use next_step."
        problems.append(Problem(f"/blocks/{at}/options", "options_not_allowed", message))


def _check_fields(block: Block, required: tuple[Required, ...], at: int, problems: list[Problem]) -> None:
    for name, allowed in required:
        value = getattr(block, name)
        if not value:
            if value is not False:
                problems.append(_missing(block, name, at, allowed))
        elif allowed is not None and value not in allowed:
            message = f"{name} is {quote(value)}; use {listed(allowed)}."
            problems.append(Problem(f"/blocks/{at}/{name}", "field_unknown_value", message))
    if (
        block.type == _VERIFICATION
        and block.status in _UNVERIFIED
        and not block.limitation
        and not block.required_to_verify
    ):
        message = (
            f"A verification that is {block.status} must say what was not verified: fill in limitation or"
            " required_to_verify."
        )
        problems.append(Problem(f"/blocks/{at}/limitation", "verification_needs_limitation", message))


def _check_asking(block: Block, recommends: bool, at: int, problems: list[Problem]) -> None:
    options = block.options
    if not OPTIONS_MIN <= len(options) <= OPTIONS_MAX:
        message = f"There are {len(options)} options; a {block.type} block needs {OPTIONS_MIN} to {OPTIONS_MAX}."
        problems.append(Problem(f"/blocks/{at}/options", "options_count", message))
    seen: set[str] = set()
    dispatches = alternatives = False
    for index, option in enumerate(options):
        _check_option(option, at, index, seen, problems)
        if option.effect == _DISPATCH:
            dispatches = True
        elif option.effect in _EFFECTS:
            alternatives = True
    if block.response_type != _SINGLE:
        message = f"response_type is {quote(block.response_type)}; the only one is {_SINGLE}."
        problems.append(Problem(f"/blocks/{at}/response_type", "response_type_invalid", message))
    if not block.recommendation_reason:
        problems.append(_missing(block, "recommendation_reason", at))
    if block.recommendation:
        if block.recommendation not in seen:
            message = (
                f"The recommendation {quote(block.recommendation)} is no option of this block; name one by its id."
            )
            problems.append(Problem(f"/blocks/{at}/recommendation", "recommendation_unknown", message))
    elif recommends:
        problems.append(_missing(block, "recommendation", at))
    if block.type == _NEXT_STEP:
        _check_next_step(at, dispatches, alternatives, problems)


def _check_next_step(at: int, dispatches: bool, alternatives: bool, problems: list[Problem]) -> None:
    if not dispatches:
        message = "None of the options is a dispatch; a next_step needs one that takes the step."
        problems.append(Problem(f"/blocks/{at}/options", "next_step_needs_dispatch", message))
    if not alternatives:
        message = "None of the options is a collect or resolve; a next_step needs one that does not take the step."
        problems.append(Problem(f"/blocks/{at}/options", "next_step_needs_alternative", message))


def _check_option(option: Option, at: int, index: int, seen: set[str], problems: list[Problem]) -> None:
    if not _is_id(option.id):
        message = f"The option id is {quote(option.id)}; an id is {_ID_RULE}."
        problems.append(Problem(f"/blocks/{at}/options/{index}/id", "option_id_invalid", message))
    elif option.id in seen:
        message = f"The option id {quote(option.id)} is used by an earlier option of this block; give each its own."
        problems.append(Problem(f"/blocks/{at}/options/{index}/id", "option_id_duplicate", message))
    seen.add(option.id)
    if not option.label:
        message = f"The label is empty; name the option in at most {LABEL_MAX} characters."
        problems.append(Problem(f"/blocks/{at}/options/{index}/label", "option_label_empty", message))
    elif len(option.label) > LABEL_MAX:
        message = _too_long("label", option.label, LABEL_MAX, "put the rest into description")
        problems.append(Problem(f"/blocks/{at}/options/{index}/label", "option_label_too_long", message))
    if len(option.description) > TEXT_MAX:
        message = _too_long("description", option.description, TEXT_MAX, "put the rest into preview or details")
        problems.append(Problem(f"/blocks/{at}/options/{index}/description", "option_text_too_long", message))
    if len(option.consequence) > TEXT_MAX:
        message = _too_long("consequence", option.consequence, TEXT_MAX, "put the rest into preview or details")
        problems.append(Problem(f"/blocks/{at}/options/{index}/consequence", "option_text_too_long", message))
    if len(option.preview) > _PREVIEW_SURE and byte_length(option.preview) > PREVIEW_MAX:
        message = _too_large("preview is", option.preview, PREVIEW_MAX, "show only the part that decides")
        problems.append(Problem(f"/blocks/{at}/options/{index}/preview", "option_preview_too_large", message))
    _check_effect(option, at, index, problems)


def _check_effect(option: Option, at: int, index: int, problems: list[Problem]) -> None:
    if option.effect == _DISPATCH:
        if not option.instruction:
            message = "The instruction is empty; a dispatch option sends its instruction as the next prompt."
            problems.append(
                Problem(f"/blocks/{at}/options/{index}/instruction", "option_instruction_required", message)
            )
        elif len(option.instruction) > _INSTRUCTION_SURE and byte_length(option.instruction) > INSTRUCTION_MAX:
            message = _too_large("instruction is", option.instruction, INSTRUCTION_MAX, "say it in fewer words")
            problems.append(
                Problem(f"/blocks/{at}/options/{index}/instruction", "option_instruction_too_large", message)
            )
        return
    if option.effect not in _EFFECTS:
        message = f"The effect is {quote(option.effect)}; use {listed(_EFFECTS)}."
        problems.append(Problem(f"/blocks/{at}/options/{index}/effect", "option_effect_unknown", message))
    if option.instruction:
        message = (
            f"The effect is {quote(option.effect)} but there is an instruction; only a dispatch option has one, drop it"
            " or dispatch."
        )
        problems.append(Problem(f"/blocks/{at}/options/{index}/instruction", "option_instruction_not_allowed", message))


def _missing(block: Block, name: str, at: int, allowed: tuple[str, ...] | None = None) -> Problem:
    if name == "blocks_current_task":
        allowed = ("true", "false")
    wanted = f"use {listed(allowed)}" if allowed else "fill it in"
    message = f"A {block.type} block requires {name}, which is missing or empty; {wanted}."
    return Problem(f"/blocks/{at}/{name}", "field_required", message)


def _too_long(name: str, value: str, limit: int, way_out: str) -> str:
    return f"The {name} has {len(value)} characters, {quote(value)}; at most {limit} are allowed, {way_out}."


def _too_large(name: str, value: str, limit: int, way_out: str) -> str:
    return f"The {name} {byte_length(value)} bytes in UTF-8; at most {limit} are allowed, {way_out}."
