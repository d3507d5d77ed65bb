"""Reading an attempt to report: its envelope and the report in it, each of them once.

A decode of the whole message has to find where the report in it ends, at half the cost of reading it. Runners send it
last, so the usual report is what stands between its key and the envelope's closing bracket. If that is a report by
itself, and what stands before it an envelope, then nothing else can be meant by the whole. Every other message is
decoded whole.
"""

from typing import Final

import msgspec

from turngate_contracts import codec
from turngate_contracts.messages import ReportSubmitted, report_bytes
from turngate_protocol.report.decode import read_plain
from turngate_protocol.report.model import Report

_REPORT: Final = b',"report":{'
_BEFORE_REPORT: Final = len(_REPORT) - 1
_ENVELOPE_MAX: Final = 512
"""The longest beginning of a message, in bytes: three ids, two numbers and two facts take less. A state keeps it with
the report, and the cache of states does not count it."""
_BODY_MAX: Final = 16 * 1024
"""The largest message that is read so; a report takes several times as much memory read as sent."""
_decode_envelope: Final = codec.decoder(ReportSubmitted).decode


def read_submitted(body: bytes) -> tuple[ReportSubmitted, bytes | memoryview | None, Report | None]:
    """Read an attempt to report.

    Args:
        body: the message's body.

    Returns:
        The message, whose own `report` may be left out; the report's bytes as `report_bytes` returns them, or a view of
        them in the body; and the report, where it is the usual one that `read_plain` reads.

    Raises:
        InvalidMessage: the bytes are not a ReportSubmitted.
    """
    at = body.find(_REPORT, 0, _ENVELOPE_MAX) if len(body) <= _BODY_MAX else -1
    if at > 0 and body.endswith(b"}}"):
        data = memoryview(body)[at + _BEFORE_REPORT : -1]
        report = read_plain(data)
        if report is not None:
            message = _envelope(body[:at] + b"}")
            if message is not None and message.unparsed is None:
                return message, data, report
    message = codec.decode(body, ReportSubmitted, "a ReportSubmitted")
    return message, report_bytes(message), None


def _envelope(data: bytes) -> ReportSubmitted | None:
    try:
        return _decode_envelope(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None  # decoding the whole says what is wrong with it
