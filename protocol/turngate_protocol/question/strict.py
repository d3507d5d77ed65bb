"""Strict JSON for what a model writes: one value, nothing after it, no key twice.

The rule book is the question protocol: arguments are never repaired. Whatever comes in (not UTF-8, nested a million
deep, numbers of any length, NaN), what comes out is a value or an `InvalidQuestionError`.
"""

import json
from typing import Any, NoReturn, TypeVar

import msgspec

from turngate_protocol.question.errors import InvalidQuestionError, shown
from turngate_protocol.text import has_surrogate, visible

_T = TypeVar("_T")
_PROBLEM_CHARACTERS = 200


def load(path: str, document: str | bytes) -> Any:
    """Return the one JSON value that `document` holds.

    Args:
        path: what the document is, for the error.
        document: JSON as text or as UTF-8 bytes.

    Raises:
        InvalidQuestionError: it is not exactly one JSON value, or an object in it has a key twice.
    """
    if isinstance(document, bytes):
        try:
            document = document.decode()
        except UnicodeDecodeError as error:
            raise InvalidQuestionError(path, f"is not UTF-8 at byte {error.start}", "write it in UTF-8") from None

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in items:
            if key in found:
                raise InvalidQuestionError(path, f"has the key {shown(key)} twice in one object", "write each key once")
            if has_surrogate(key):
                raise InvalidQuestionError(path, f"has the key {shown(key)}, not valid Unicode", "use the known keys")
            found[key] = value
        return found

    def no_number(name: str) -> NoReturn:
        raise InvalidQuestionError(path, f"holds {name}, which is not JSON", "leave it out")

    try:
        # No value of the protocol is a number: as floats they are read in no time, however many digits they have.
        return json.loads(document, object_pairs_hook=pairs, parse_constant=no_number, parse_int=float)
    except json.JSONDecodeError as error:
        problem = f"is not JSON ({error.msg} at character {error.pos})"
        raise InvalidQuestionError(path, problem, "write one JSON value and nothing else") from None
    except RecursionError:
        raise InvalidQuestionError(path, "is nested too deep", "write it flat, as its schema has it") from None


def convert(path: str, value: Any, shape: type[_T]) -> _T:
    """Return a loaded JSON value as a structure.

    Args:
        path: what the value is, for the error.
        value: what `load` returned.
        shape: the structure that it must have.

    Raises:
        InvalidQuestionError: it has another shape.
    """
    try:
        return msgspec.convert(value, shape)
    except UnicodeEncodeError:  # of a text where an object belongs
        raise InvalidQuestionError(path, "is a text that is not valid Unicode", "follow the tool's schema") from None
    except msgspec.ValidationError as error:
        problem, _, where = visible(str(error)[:_PROBLEM_CHARACTERS]).partition(" - at `$")
        raise InvalidQuestionError(
            f"{path}{where.rstrip('`')}", f"does not have the right shape ({problem})", "follow the tool's schema"
        ) from None
