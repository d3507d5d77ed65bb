"""Changes of JSON value by value: changed byte by byte it hardly stays JSON for long enough to reach our rules."""

import io
import json
import random
from collections.abc import Callable
from typing import Any, Final

_VALUES: Final[tuple[Any, ...]] = (
    *(None, True, False, 0, 1, -1, 2**31, 2**53, 2**63, 2**64, -(2**63) - 1, 10**400, 0.5, 1e308, -0.0),
    *("", " ", "\x00", "\n", "\x1b[2J", "\u202e", "\ud800", "\U0001f600", "İ", "a" * 300, "a" * 5_000, "../x", "```\n"),
    *([], {}, [None], [[]], [{}], {"": None}, [0] * 50, ["a"] * 50),
)
_DEPTH: Final = (3, 90, 300)
_STEPS: Final = 8
_MOST: Final = 64 * 1024


def mutate_json(data: bytes, seed: int) -> bytes | None:
    """Return JSON with some values replaced, doubled, moved, nested or gone; None for no JSON, or too much of it."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return None
    chance = random.Random(seed)
    for _ in range(chance.randint(1, 3)):
        value = _changed(value, chance)
    text = io.StringIO()
    try:
        # Piece by piece: three lists in one another that are all made longer would not fit into memory.
        for piece in json.JSONEncoder(ensure_ascii=chance.random() < 0.5).iterencode(value):
            if text.tell() > _MOST:
                return None
            text.write(piece)
    except (ValueError, RecursionError):
        return None
    return text.getvalue().encode("utf-8", "surrogatepass")


def _changed(value: Any, chance: random.Random) -> Any:
    """Change one place, on a walk from the top that ends somewhere."""
    if isinstance(value, dict) and value and chance.random() < 0.85:
        return _changed_object(dict(value), chance)
    if isinstance(value, list) and value and chance.random() < 0.85:
        return _changed_list(list(value), chance)
    return chance.choice(_LEAVES)(value, chance)


def _changed_object(value: dict[str, Any], chance: random.Random) -> dict[str, Any]:
    name = chance.choice(list(value))
    step = chance.randrange(_STEPS)
    if step == 0:
        del value[name]
    elif step == 1:
        value[str(chance.choice(_VALUES))[:40]] = value[name]
    elif step == 2:
        value[name] = chance.choice(list(value.values()))
    else:
        value[name] = _changed(value[name], chance)
    return value


def _changed_list(value: list[Any], chance: random.Random) -> list[Any]:
    at = chance.randrange(len(value))
    step = chance.randrange(_STEPS)
    if step == 0:
        del value[at]
    elif step == 1:
        value.insert(at, chance.choice(value))
    elif step == 2:
        value[at:at] = [value[at]] * chance.choice((2, 20, 200))
    else:
        value[at] = _changed(value[at], chance)
    return value


def _another(_value: Any, chance: random.Random) -> Any:
    return chance.choice(_VALUES)


def _spliced(value: Any, chance: random.Random) -> Any:
    if not isinstance(value, str):
        return value
    at = chance.randint(0, len(value))
    return value[:at] + str(chance.choice(_VALUES)) + value[at + chance.randint(0, 3) :]


def _as_text(value: Any, _chance: random.Random) -> Any:
    return json.dumps(value)


def _nested(value: Any, chance: random.Random) -> Any:
    for _ in range(chance.choice(_DEPTH)):
        value = [value]
    return value


_LEAVES: Final[tuple[Callable[[Any, random.Random], Any], ...]] = (
    _another,
    _another,
    _spliced,
    _spliced,
    _as_text,
    _nested,
)
