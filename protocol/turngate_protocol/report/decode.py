"""From the bytes of a report to the record, or to everything that is wrong with them.

The usual report passes one typed decode that knows every field of it, see `read_plain`. Any other is looked at more
closely; only where its types are wrong are the bytes read again without types, by `diagnose`, to name every wrong type
instead of the first. No bytes make this raise: what is not a report is a rejection like any
other. A report that comes out can be encoded again, and its bytes are UTF-8 that nests no deeper than any reader
survives, so a caller may keep and forward them as they are.

A report of 768 KiB can hold 262,000 empty blocks. It is refused for their number, so only the first thousand are read:
reading all of them would hold up every other session.
"""

import re
from operator import attrgetter, is_
from typing import Final

import msgspec
from msgspec import Raw, field

from turngate_protocol.report.diagnose import diagnose
from turngate_protocol.report.model import (
    BLOCKS_MAX,
    DEPTH_MAX,
    JUDGED_BLOCKS,
    JUDGED_OPTIONS,
    REPORT_MAX,
    Block,
    Option,
    Report,
    no_blocks,
)
from turngate_protocol.report.problems import Problem
from turngate_protocol.report.rules import missing_report


class _PlainOption(Option, frozen=True, gc=False, omit_defaults=True, forbid_unknown_fields=True):
    """An option without unknown fields."""


class _PlainBlock(Block, frozen=True, gc=False, omit_defaults=True, forbid_unknown_fields=True):
    """A block without unknown fields."""

    options: list[_PlainOption] = field(default_factory=list)  # type: ignore[assignment]


class _PlainReport(Report, frozen=True, gc=False, omit_defaults=True, forbid_unknown_fields=True):
    """A report without unknown fields, whose every text was therefore read."""

    blocks: list[_PlainBlock] = field(default_factory=no_blocks)  # type: ignore[assignment]


_decoder: Final = msgspec.json.Decoder(Report)
_plain: Final = msgspec.json.Decoder(_PlainReport)
_options: Final = attrgetter("options")
_PLAIN_MAX: Final = 64 * 1024
_decode_fields: Final = msgspec.json.Decoder(dict[str, Raw]).decode
_decode_items: Final = msgspec.json.Decoder(list[Raw]).decode
_encode: Final = msgspec.json.Encoder().encode
_NO_ITEMS: Final = Raw(b"[]")
_TOO_DEEP: Final = Problem(
    "/", "report_malformed", f"The report nests more than {DEPTH_MAX} levels deep; a report needs five."
)
# An unclosed string goes to the end, so that no byte is looked at twice.
_string: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
_OPENING: Final = ord("[")
_SQUARE: Final = bytes.maketrans(b"{}", b"[]")
_NO_BRACKETS: Final = bytes(byte for byte in range(256) if byte not in b"[]{}")


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


def read_plain(data: bytes | memoryview | None) -> Report | None:
    """Decode the usual report: the one that `decode` returns, in less time, or None where `decode` has to look.

    Unknown fields are what a typed decode does not look into. Without any, all texts have been read as UTF-8, and the
    nesting is that of a report. What is large, or has more blocks or options than a report has, is left to `decode`,
    which reads only so many of them.

    Args:
        data: as for `decode`.

    Returns:
        The report, of a class of its own that has the fields of `Report`.
    """
    if not data or len(data) > _PLAIN_MAX:
        return None
    try:
        report = _plain.decode(data)
    except (msgspec.DecodeError, RecursionError):
        return None
    blocks = report.blocks
    if len(blocks) > BLOCKS_MAX or sum(map(len, filter(None, map(_options, blocks)))) > BLOCKS_MAX:
        return None
    return report


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
    brackets = len(data) - len(data.replace(b"[", b"").replace(b"{", b""))
    if brackets > DEPTH_MAX:
        if _nests_too_deep(data):
            return [_TOO_DEEP]
        data = _shortened(data)
    try:
        return _decoder.decode(data)
    except msgspec.DecodeError:
        return diagnose(data)


def _shortened(data: bytes) -> bytes:
    """Return a report without the blocks and options that are too many to be read: the same bytes where there are none.

    What is no report, or lists something else than objects, is left to the decoders.
    """
    try:
        report = _decode_fields(data)
        blocks = _decode_items(report.get("blocks", _NO_ITEMS))
        kept = [_shortened_block(block) for block in blocks[:JUDGED_BLOCKS]]
    except msgspec.DecodeError:
        return data
    if len(kept) == len(blocks) and all(map(is_, kept, blocks)):
        return data
    return _encode({**report, "blocks": kept})


def _shortened_block(data: Raw) -> Raw:
    block = bytes(data)
    if not block.startswith(b"{") or block.count(b"{") <= JUDGED_OPTIONS:
        return data
    fields = _decode_fields(block)
    options = _decode_items(fields.get("options", _NO_ITEMS))
    if len(options) <= JUDGED_OPTIONS:
        return data
    return Raw(_encode({**fields, "options": options[:JUDGED_OPTIONS]}))


def _nests_too_deep(data: bytes) -> bool:
    depth = 0
    for bracket in _string.sub(b"", data).translate(_SQUARE, _NO_BRACKETS):
        if bracket != _OPENING:
            depth -= 1
        elif depth == DEPTH_MAX:
            return True
        else:
            depth += 1
    return False
