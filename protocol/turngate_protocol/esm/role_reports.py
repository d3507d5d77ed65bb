"""What a role's final answer says: prose in, one typed report out, or one typed error.

A report is the text from the first `{` to the brace that closes it. Whatever stands around it is the model's chatter
and ignored; a second object is never looked for, so that nobody has to guess which one was meant. Keys match without
regard to case, unknown ones are ignored, of duplicates the last wins, null entries are dropped, texts are trimmed and
blank ones left out. Model text is hostile: nothing but `InvalidReportError` comes out of here for any input, however
deep it nests and whatever half characters it holds. Whether a claim is believed is decided in `judgement`, with the
evidence at hand.
"""

import json
import re
from enum import StrEnum
from typing import Any, Final, NoReturn, TypeVar

from msgspec import Struct

from turngate_protocol.esm.casing import fold
from turngate_protocol.esm.errors import InvalidReportError, shown
from turngate_protocol.esm.texts import kept_items
from turngate_protocol.text import byte_length, has_surrogate, trim

RESPONSE_BYTES: Final = 512 * 1024
"""Longest final answer of a role, in UTF-8 bytes; a longer one holds no report."""

NESTING_LIMIT: Final = 200
"""How deep a report may nest. A fixed limit: the interpreter's own depends on who calls."""

_TOKEN: Final = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?|[{}\[\]]', re.DOTALL)


class WorkerStatus(StrEnum):
    """What a worker says about its run."""

    CONTINUE = "continue"
    COMPLETE_CANDIDATE = "complete_candidate"
    BLOCKED_CANDIDATE = "blocked_candidate"


class Verdict(StrEnum):
    """What a critic or an audit says about a claim of completion."""

    PASS = "pass"  # noqa: S105  a verdict, not a password
    FAIL = "fail"


class Decision(StrEnum):
    """What the observer of an interrupted role says."""

    RESUME = "resume"
    BLOCKED = "blocked"


class WorkerReport(Struct, frozen=True):
    """The report of a worker."""

    status: WorkerStatus
    summary: str = ""
    evidence: tuple[str, ...] = ()
    remaining_work: tuple[str, ...] = ()
    blockers: tuple[str, ...] = ()


class AuditReport(Struct, frozen=True):
    """The report of a critic or an audit."""

    verdict: Verdict
    review: str = ""
    requirements_checked: tuple[str, ...] = ()
    missing_work: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()


class RecoveryReport(Struct, frozen=True):
    """The report of the observer that looked at what an interrupted role left behind."""

    decision: Decision
    summary: str
    evidence: tuple[str, ...] = ()
    remaining_work: tuple[str, ...] = ()
    blockers: tuple[str, ...] = ()


def parse_worker(text: str) -> WorkerReport:
    """Return the worker report in `text`; work listed as missing joins the remaining work, each item once.

    Raises:
        InvalidReportError: there is none.
    """
    fields = _fields(text, ("status", "summary"), ("evidence", "remaining_work", "missing_work", "blockers"))
    return WorkerReport(
        _one_of(WorkerStatus, "status", fields),
        trim(fields["summary"]),
        kept_items(fields["evidence"]),
        tuple(dict.fromkeys(kept_items(fields["remaining_work"] + fields["missing_work"]))),
        kept_items(fields["blockers"]),
    )


def parse_audit(text: str) -> AuditReport:
    """Return the report of a critic or an audit in `text`.

    Raises:
        InvalidReportError: there is none.
    """
    fields = _fields(text, ("verdict", "review"), ("requirements_checked", "missing_work", "evidence"))
    return AuditReport(
        _one_of(Verdict, "verdict", fields),
        trim(fields["review"]),
        kept_items(fields["requirements_checked"]),
        kept_items(fields["missing_work"]),
        kept_items(fields["evidence"]),
    )


def parse_recovery(text: str) -> RecoveryReport:
    """Return the report of a recovery observer in `text`.

    Raises:
        InvalidReportError: there is none, it has no summary, or it says blocked and names no blocker.
    """
    fields = _fields(text, ("decision", "summary"), ("evidence", "remaining_work", "blockers"))
    report = RecoveryReport(
        _one_of(Decision, "decision", fields),
        trim(fields["summary"]),
        kept_items(fields["evidence"]),
        kept_items(fields["remaining_work"]),
        kept_items(fields["blockers"]),
    )
    if not report.summary:
        raise InvalidReportError("The report has no summary")
    if report.decision is Decision.BLOCKED and not report.blockers:
        raise InvalidReportError("The report says blocked and names no blocker")
    return report


def report_text(text: str) -> str:
    """Return the first object in `text`, from its first `{` to the brace that closes it.

    Raises:
        InvalidReportError: there is none, it is too long or nests too deep.
    """
    if byte_length(text) > RESPONSE_BYTES:
        raise InvalidReportError(f"The answer is longer than {RESPONSE_BYTES} bytes")
    start = text.find("{")
    braces = nesting = 0
    for token in _TOKEN.finditer(text, start) if start >= 0 else ():
        match token[0]:
            case "{":
                braces += 1
                nesting += 1
            case "[":
                nesting += 1
            case "]":
                nesting -= 1
            case "}":
                braces -= 1
                nesting -= 1
                if braces == 0:
                    return text[start : token.end()]
        if nesting > NESTING_LIMIT:
            raise InvalidReportError(f"The report nests deeper than {NESTING_LIMIT} levels")
    raise InvalidReportError("The answer holds no complete JSON object")


def _fields(text: str, texts: tuple[str, ...], lists: tuple[str, ...]) -> dict[str, Any]:
    """Return the named fields of the report in `text`: a text is a str, a list a list of str."""
    found: dict[str, Any] = dict.fromkeys(texts, "") | {name: [] for name in lists}
    for key, value in _pairs(report_text(text)):
        name = fold(key)
        if name in texts:
            # A null says nothing, so it does not take back what an earlier duplicate said.
            found[name] = found[name] if value is None else _text(name, value)
        elif name in lists:
            found[name] = _texts(name, value)
    return found


def _pairs(text: str) -> list[tuple[str, Any]]:
    try:
        # Pairs, not a dict: only their order says which of two spellings of a key came last. Numbers are of no use
        # to a report, so they are not converted: a long one would cost time, or be refused by the interpreter.
        pairs: list[tuple[str, Any]] = json.loads(
            text, object_pairs_hook=_Object, parse_int=_number, parse_float=_number, parse_constant=_no_constant
        )
    except (ValueError, RecursionError) as error:
        raise InvalidReportError(f"The report is no JSON ({error})") from None
    return pairs


class _Object(list[tuple[str, Any]]):
    """The pairs of an object, to be told from a list."""


def _number(_digits: str) -> int:
    return 0


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON value")


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise InvalidReportError(f"{name} of the report is no text")
    if has_surrogate(value):
        raise InvalidReportError(f"{name} of the report holds half a surrogate pair")
    return value


def _texts(name: str, value: Any) -> list[str]:
    if value is None:
        return []
    if type(value) is not list:
        raise InvalidReportError(f"{name} of the report is no list of texts")
    return [_text(name, item) for item in value if item is not None]


_Choice = TypeVar("_Choice", bound=StrEnum)


def _one_of(kind: type[_Choice], name: str, fields: dict[str, Any]) -> _Choice:
    value = trim(fields[name])
    try:
        return kind(value)
    except ValueError:
        raise InvalidReportError(f"{name} of the report is {shown(value)}, not one of {', '.join(kind)}") from None
