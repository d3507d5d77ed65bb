"""Why bytes are not a report: every wrong type by its JSON Pointer, or the byte at which they stop being JSON.

A typed decode stops at the first error; a model should learn of all of them at once. This reads the JSON without types
and compares it with the records of `model`. JSON null is taken for an absent value at any depth, as the original of the
rule book takes it, so bytes that failed only for a null come out as a report. Nothing here raises for any bytes.
"""

import json
from collections.abc import Callable
from typing import Any, Final, Never

import msgspec
from msgspec.structs import fields

from turngate_protocol.report.model import (
    JUDGED_BLOCKS,
    JUDGED_OPTIONS,
    REPORT_MAX,
    Block,
    Option,
    RecoveredReport,
    Report,
)
from turngate_protocol.report.problems import PROBLEMS_COUNTED, Problem, quote
from turngate_protocol.report.rules import missing_report
from turngate_protocol.text import has_surrogate

_KINDS: Final = {
    bool: "true or false",
    int: "a number",
    float: "a number",
    str: "text",
    list: "a list",
    dict: "an object",
}
_ROOT: Final = ""

# A reader takes a value that is not null, its pointer and the list of problems, and gives back what Report wants there.
_Reader = Callable[[Any, str, list[Problem]], Any]


class _NotJsonError(ValueError):
    """A literal that Python's parser takes and JSON does not have."""


def diagnose(data: bytes) -> Report | list[Problem]:
    """Read what the typed decode refused.

    Args:
        data: UTF-8 that nests no deeper than `DEPTH_MAX`.

    Returns:
        Every problem of the bytes, up to `PROBLEMS_COUNTED`; or the report, where all that was wrong were nulls, or a
        value that a later one of the same key replaces.
    """
    text = data.decode()
    try:
        # The value of a number never matters, and as text it may be longer than Python is willing to convert.
        value = json.loads(text, parse_int=_zero, parse_float=_zero, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        if not text.strip(" \t\r\n"):
            return [missing_report()]
        at = len(text[: error.pos].encode())
        return [_malformed(_ROOT, f"The report is not JSON at byte {at} ({error.msg}); send one JSON object.")]
    except _NotJsonError as error:
        return [_malformed(_ROOT, f"The report is not JSON: it has the literal {error}; send one JSON object.")]
    if value is None:
        return [missing_report()]
    problems: list[Problem] = []
    plain = _read_report(value, _ROOT, problems)
    return problems or msgspec.convert(plain, RecoveredReport)


def _zero(_: str) -> int:
    return 0


def _refuse(literal: str) -> Never:
    raise _NotJsonError(literal)


def _malformed(path: str, message: str) -> Problem:
    return Problem(path or "/", "report_malformed", message)


def _wrong_type(value: Any, wanted: str, path: str) -> Problem:
    name = path.rpartition("/")[2]
    subject = "The report" if not path else f"Item {name}" if name.isdigit() else name
    return _malformed(path, f"{subject} is {_KINDS[type(value)]}; it has to be {wanted}.")


def _read_text(value: Any, path: str, problems: list[Problem]) -> Any:
    if type(value) is not str:
        problems.append(_wrong_type(value, "text", path))
    elif has_surrogate(value):
        problems.append(_malformed(path, f"{quote(value)} holds half of a surrogate pair; send whole characters."))
    return value


def _read_flag(value: Any, path: str, problems: list[Problem]) -> Any:
    if type(value) is not bool:
        problems.append(_wrong_type(value, "true or false", path))
    return value


def _list_of(read: _Reader, empty: Callable[[], Any], most: int) -> _Reader:
    def read_list(value: Any, path: str, problems: list[Problem]) -> Any:
        if type(value) is not list:
            problems.append(_wrong_type(value, "a list", path))
            return value
        plain = []
        for index, item in enumerate(value[:most]):
            if len(problems) >= PROBLEMS_COUNTED:
                break  # what is incomplete now is not used
            plain.append(empty() if item is None else read(item, f"{path}/{index}", problems))
        return plain

    return read_list


def _object_of(record: type[msgspec.Struct], readers: dict[str, _Reader]) -> _Reader:
    known = {info.name: readers.get(info.name, _read_text) for info in fields(record)}

    def read_object(value: Any, path: str, problems: list[Problem]) -> Any:
        if type(value) is not dict:
            problems.append(_wrong_type(value, "an object", path))
            return value
        plain = {}
        for name, item in value.items():
            reader = known.get(name)
            if reader is None:
                if _holds_surrogate(name) or _holds_surrogate(item):
                    message = "An unknown field holds half of a surrogate pair; drop the field."
                    problems.append(_malformed(path, message))
            elif item is not None:
                plain[name] = reader(item, f"{path}/{name}", problems)
        return plain

    return read_object


def _holds_surrogate(value: Any) -> bool:
    """Whether any text or name in an unknown field can't be encoded; nesting was bounded before."""
    if type(value) is str:
        return has_surrogate(value)
    if type(value) is list:
        return any(map(_holds_surrogate, value))
    if type(value) is dict:
        return any(map(_holds_surrogate, value)) or any(map(_holds_surrogate, value.values()))
    return False


_read_option: Final = _object_of(Option, {})
_read_block: Final = _object_of(
    Block,
    {
        "related_files": _list_of(_read_text, str, REPORT_MAX),
        "blocks_current_task": _read_flag,
        "options": _list_of(_read_option, dict, JUDGED_OPTIONS),
    },
)
_read_report: Final = _object_of(Report, {"blocks": _list_of(_read_block, dict, JUDGED_BLOCKS)})
