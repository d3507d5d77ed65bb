"""Answering a card: one answer wins, a dismissal closes it, and prompts that only services want wait until then.

Source: `spec/report.md`, "Display" (picking an option) and "The turn gate" (what an unanswered card holds back).

- `answer` picks one option of the current turn's card. Dispatch sends the option's instruction as the next prompt,
  collect gives a text to edit, resolve records a stop. The first answer wins; a repeat of it (same operation) gets the
  same result, any other answer is told who was first.
- `enqueue` is how a service starts work in a session: held while a card waits, else on its way at once.
- `wants` says what the newest state needs done outside of it; `settled` is the state once all of that was done.

Nothing here reads a clock or does I/O.
"""

import hashlib

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from turngate_protocol.cause import Cause
from turngate_protocol.inbox import InboxEntry
from turngate_protocol.report.lookup import RefusalCode, Refused
from turngate_protocol.report.model import Block, Option, Report
from turngate_protocol.report.session import (
    HELD_BYTES,
    MAX_HELD,
    PROMPT_BYTES,
    SENT_IDS,
    Answer,
    Dismissal,
    Phase,
    Prompt,
    SessionTurns,
)
from turngate_protocol.text import byte_length, has_surrogate, is_blank

_encode = msgspec.json.Encoder().encode
_decode_report = msgspec.json.Decoder(Report).decode


class Pick(Struct, frozen=True):
    """Which option a person picks: by its number on the card (1 to 9), or by block id and option id."""

    turn: int
    actor: str
    number: int = 0
    block: str = ""
    option: str = ""
    text: str = ""
    op: str = ""


class Changed(Struct, frozen=True):
    """A new state to save."""

    state: SessionTurns


class Unchanged(Struct, frozen=True):
    """The operation was done before; `state` already says so."""

    state: SessionTurns


class Wants(Struct, frozen=True):
    """What a state needs done: prompts to hand to the pool, and the inbox entry to show (None: show none)."""

    prompts: tuple[Prompt, ...]
    inbox: InboxEntry | None
    clears_inbox: bool


def answer(state: SessionTurns | None, pick: Pick, now: int) -> Changed | Unchanged | Refused:
    """Answer the current turn's card.

    Args:
        state: what is known of the session.
        pick: the option and who picks it.
        now: ms since the epoch.

    Returns:
        The state with the answer, the same state when this very answer is there already, or why it is refused:
        turn_unknown, superseded, no_card, option_unknown, already_answered, already_dismissed, invalid.
    """
    if state is not None and pick.op:
        standing = answer_of(state, pick.turn)
        if standing is not None and standing.op == pick.op:
            return Unchanged(state)
    found = _card(state, pick.turn)
    if isinstance(found, Refused):
        return found
    turn = found.current
    if turn.answer is not None:
        return _already_answered(turn.answer, turn.turn)
    if turn.dismissal is not None:
        return Refused(
            RefusalCode.ALREADY_DISMISSED,
            f"the card of turn {turn.turn} was dismissed by {turn.dismissal.actor}",
            {"turn": turn.turn, "actor": turn.dismissal.actor, "at": turn.dismissal.at},
        )
    if byte_length(pick.text) > PROMPT_BYTES or has_surrogate(pick.text) or "\x00" in pick.text:
        return Refused(
            RefusalCode.INVALID,
            f"text must be valid Unicode without NUL and at most {PROMPT_BYTES} bytes; it has {byte_length(pick.text)}",
            {"field": "text", "limit": PROMPT_BYTES},
        )
    option = _option(found, pick)
    if isinstance(option, Refused):
        return option
    return Changed(_answered(found, pick, *option, now))


def answer_of(state: SessionTurns, turn: int) -> Answer | None:
    """Return the answer that stands for a turn, also once a later one has begun, or None."""
    if turn == state.current.turn:
        return state.current.answer
    return next((past.answer for past in state.history if past.turn == turn), None)


def dismiss(state: SessionTurns | None, turn: int, actor: str, now: int, op: str = "") -> Changed | Unchanged | Refused:
    """Close the current turn's card without an answer; arguments and result as for `answer`."""
    found = _card(state, turn)
    if isinstance(found, Refused):
        return found
    current = found.current
    if current.answer is not None:
        return _already_answered(current.answer, turn)
    if current.dismissal is not None:
        return Unchanged(found)
    return Changed(
        _release(
            replace(
                found,
                current=replace(current, dismissal=Dismissal(actor, now, op)),
                cause=Cause("turn.dismissed", actor, now, turn),
            )
        )
    )


def enqueue(state: SessionTurns, prompt: Prompt, now: int) -> Changed | Unchanged | Refused:
    """Have a service's prompt started in a session: held while a card waits, else on its way. Idempotent by id."""
    waiting = (*state.held, *state.outgoing)
    same = next((p for p in waiting if p.id == prompt.id), None)
    if same is not None and same.text != prompt.text:
        return Refused(
            RefusalCode.PROMPT_CONFLICT,
            f"prompt {prompt.id} of session {state.session} has another text; send it under an id of its own",
            {"session": state.session, "id": prompt.id},
        )
    if same is not None or prompt.id in state.sent:
        return Unchanged(state)
    size = byte_length(prompt.text)
    if size > PROMPT_BYTES or has_surrogate(prompt.text) or is_blank(prompt.text):
        return Refused(
            RefusalCode.INVALID,
            f"a prompt's text must be valid Unicode, not blank, and at most {PROMPT_BYTES} bytes; it has {size}",
            {"field": "text", "limit": PROMPT_BYTES},
        )
    if len(waiting) >= MAX_HELD or len(_encode((*waiting, prompt))) > HELD_BYTES:
        return Refused(
            RefusalCode.OVERLOADED,
            f"session {state.session} holds as many prompts as it can ({MAX_HELD}, or {HELD_BYTES} bytes); "
            "answer or dismiss its card first",
            {"session": state.session, "limit": MAX_HELD, "bytes": HELD_BYTES},
        )
    kind = "turn.prompt_held" if state.waiting else "turn.prompt_released"
    changed = replace(state, cause=Cause(kind, prompt.actor, now, state.current.turn, message=prompt.id))
    if state.waiting:
        return Changed(replace(changed, held=(*state.held, prompt)))
    return Changed(replace(changed, outgoing=(*state.outgoing, prompt)))


def wants_something(state: SessionTurns) -> bool:
    """Say whether the reconciler has anything to do for this state; cheap, on the hot path of every save."""
    return state.listed or bool(state.outgoing)


def wants(state: SessionTurns) -> Wants:
    """Return what must be done outside of the state; each part may be done more than once with the same result."""
    entry = None
    turn = state.current
    if state.waiting:
        entry = InboxEntry(
            "card",
            state.session,
            state.pool,
            turn.attempts[-1].at if turn.attempts else turn.began_at,
            _decode_report(turn.report).headline,
            turn.turn,
            len(turn.choices),
        )
    return Wants(state.outgoing, entry, state.listed and entry is None)


def settled(state: SessionTurns, done: Wants, now: int) -> SessionTurns | None:
    """Return the state once `done` was done, or None when nothing is left to record."""
    sent = {p.id for p in done.prompts}
    outgoing = tuple(p for p in state.outgoing if p.id not in sent)
    listed = state.listed and not (done.clears_inbox and not state.waiting)
    if len(outgoing) == len(state.outgoing) and listed == state.listed:
        return None
    kind = "turn.prompt_sent" if sent else "turn.inbox_cleared"
    cause = Cause(kind, "turngate", now, state.current.turn)
    kept = (*state.sent, *(p.id for p in state.outgoing if p.id in sent))[-SENT_IDS:]
    return replace(state, outgoing=outgoing, listed=listed, sent=kept, cause=cause)


def prompt_id(session: str, turn: int, what: str) -> str:
    """Return the id of the prompt that something in a turn causes: the same for ever, and always a legal id."""
    return "p-" + hashlib.sha256(f"{session}\0{turn}\0{what}".encode()).hexdigest()[:32]


def _card(state: SessionTurns | None, turn: int) -> SessionTurns | Refused:
    if state is None or turn > state.current.turn:
        return Refused(RefusalCode.TURN_UNKNOWN, f"turn {turn} is not known in this session", {"turn": turn})
    if turn < state.current.turn:
        return Refused(
            RefusalCode.SUPERSEDED,
            f"turn {turn} was replaced by turn {state.current.turn}; its card can't be answered any more",
            {"turn": turn, "current_turn": state.current.turn},
        )
    if state.current.phase is not Phase.ACCEPTED or not state.current.choices:
        return Refused(
            RefusalCode.NO_CARD,
            f"turn {turn} is {state.current.phase.value} and asks nothing",
            {"turn": turn, "phase": state.current.phase.value},
        )
    return state


def _already_answered(winner: Answer, turn: int) -> Refused:
    return Refused(
        RefusalCode.ALREADY_ANSWERED,
        f"turn {turn} was answered by {winner.actor} with option {winner.option}",
        {
            "turn": turn,
            "actor": winner.actor,
            "block": winner.block,
            "option": winner.option,
            "number": winner.number,
            "label": winner.label,
            "at": winner.at,
        },
    )


def _option(state: SessionTurns, pick: Pick) -> tuple[Block, Option, int] | Refused:
    report = _decode_report(state.current.report)
    for choice in state.current.choices:
        block = report.blocks[choice.block]
        option = block.options[choice.option]
        by_number = pick.number > 0 and choice.number == pick.number
        by_id = not pick.number and bool(pick.option) and option.id == pick.option and pick.block in ("", block.id)
        if by_number or by_id:
            return block, option, choice.number
    offered = ", ".join(str(c.number) for c in state.current.choices if c.number)
    named = str(pick.number) if pick.number else f"{pick.block}/{pick.option}"[:140]
    return Refused(
        RefusalCode.OPTION_UNKNOWN,
        f"turn {pick.turn} has no option {named}; its card offers {offered}",
        {"turn": pick.turn, "offered": offered},
    )


def _answered(state: SessionTurns, pick: Pick, block: Block, option: Option, number: int, now: int) -> SessionTurns:
    beside = f"\n\n{pick.text}" if not is_blank(pick.text) else ""
    prompt = None
    if option.effect == "dispatch":
        made = prompt_id(state.session, pick.turn, "answer")
        prompt = Prompt(made, state.session, option.instruction + beside, "answer", now, pick.turn, pick.actor)
    chosen = Answer(
        block.id,
        option.id,
        number,
        option.label,
        option.effect,
        pick.actor,
        now,
        pick.op,
        pick.text,
        prompt.id if prompt else "",
        option.label + beside if option.effect == "collect" else "",
    )
    cause = Cause("turn.answered", pick.actor, now, pick.turn)
    changed = replace(state, current=replace(state.current, answer=chosen), cause=cause)
    # The person's own next step goes out before what services held back.
    return _release(replace(changed, outgoing=(*changed.outgoing, prompt)) if prompt else changed)


def _release(state: SessionTurns) -> SessionTurns:
    return replace(state, outgoing=(*state.outgoing, *state.held), held=())
