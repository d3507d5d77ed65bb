"""From the bytes of a report to the record, or to everything that is wrong with them.

The usual report passes one typed decode. Only where that fails are the bytes read again without types, by `diagnose`,
to name every wrong type instead of the first. No bytes make this raise: what is not a report is a rejection like any
other. A report that comes out can be encoded again, and its bytes are UTF-8 that nests no deeper than any reader
survives, so a caller may keep and forward them as they are.
"""

import re
from typing import Final

import msgspec

from turngate_protocol.report.diagnose import diagnose
from turngate_protocol.report.model import DEPTH_MAX, REPORT_MAX, Report
from turngate_protocol.report.problems import Problem
from turngate_protocol.report.rules import missing_report

_decoder: Final = msgspec.json.Decoder(Report)
_TOO_DEEP: Final = Problem(
    "/", "report_malformed", f"The report nests more than {DEPTH_MAX} levels deep; a report needs five."
)
# A string (an unclosed one goes to the end, so that no byte is looked at twice) or one bracket.
_token: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|[\[\]{}]', re.DOTALL)


def decode(data: bytes | None) -> Report | list[Problem]:
    """Decode a report as it was sent.

    Absent fields and JSON nulls are empty, unknown fields are ignored, of a repeated key the last one counts. Values
    are not judged: that is `validate`.

    Args:
        data: JSON in UTF-8; None or empty where the turn gave no report.

    Returns:
        The report, or every problem that keeps it from being one (never an empty list): `report_missing`,
        `report_too_large` or `report_malformed`.
    """
    if not data:
        return [missing_report()]
    if len(data) > REPORT_MAX:
        message = f"The report has {len(data)} bytes; at most {REPORT_MAX} are allowed, shorten details and previews."
        return [Problem("/", "report_too_large", message)]
    try:
        return _read(data)
    except RecursionError:  # the caller's own stack is nearly used up
        return [_TOO_DEEP]


def _read(data: bytes) -> Report | list[Problem]:
    # The typed decode skips unknown fields without looking at their encoding, and nests as deep as the stack of the
    # moment allows. Whoever is handed these bytes later must not be the first to find out.
    if not data.isascii():
        try:
            data.decode()
        except UnicodeDecodeError as error:
            message = f"The report is not UTF-8 at byte {error.start}; send JSON in UTF-8."
            return [Problem("/", "report_malformed", message)]
    # Removing the brackets counts them five times faster than count() does.
    if len(data) - len(data.replace(b"[", b"").replace(b"{", b"")) > DEPTH_MAX and _nests_too_deep(data):
        return [_TOO_DEEP]
    try:
        return _decoder.decode(data)
    except msgspec.DecodeError:
        return diagnose(data)


def _nests_too_deep(data: bytes) -> bool:
    depth = 0
    for match in _token.finditer(data):
        token = data[match.start()]
        if token in b"[{":
            depth += 1
            if depth > DEPTH_MAX:
                return True
        elif token in b"]}":
            depth -= 1
    return False
