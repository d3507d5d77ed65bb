"""An attempt that is read quickly is the one that a decode of the whole message reads."""

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec import Raw
from msgspec.structs import replace

from tests.fundamentals.reports import DONE
from turngate.validation.submitted import read_submitted
from turngate_contracts import codec
from turngate_contracts.errors import InvalidMessage
from turngate_contracts.messages import ReportSubmitted, report_bytes, wrap_report
from turngate_protocol.report.decode import read_plain
from turngate_protocol.report.session import NO_REPORT

PLAIN = msgspec.json.encode(DONE).decode()
NAMES = ['"session":"s"', '"turn":1', '"attempt":1', '"runner":"r"', '"pool":"p"']
REPORTS = [
    f'"report":{PLAIN}',
    f'"report": {PLAIN}',
    f'"report":{PLAIN} ',
    '"report":null',
    '"report":{"headline":"other"}',
    '"report":{"x":1}',
    '"report":{"x":"}}"}',
    '"report":[1]',
    '"report":{',
]
OTHERS = [
    '"mutated":true',
    '"mutated":7',
    '"unparsed":"eA=="',
    '"unparsed":null',
    '"x":{"a":1,"report":{}}',
    '"x":[{"a":1,"report":{"headline":"h"}}]',
    '"x":"a,\\"report\\":{"',
    '"x":"a',
    '"session":"other"',
    "{}",
]
BODIES = st.builds(
    lambda fields, begin, end: (begin + ",".join(fields) + end).encode(),
    st.lists(st.sampled_from(REPORTS + OTHERS), max_size=4).flatmap(lambda more: st.permutations(NAMES + more)),
    st.sampled_from(["{", " {", "", "\ufeff{"]),
    st.sampled_from(["}", "}\n", "}}", ""]),
)


def whole(body: bytes) -> tuple[ReportSubmitted, bytes | None] | str:
    try:
        message = codec.decode(body, ReportSubmitted, "a ReportSubmitted")
    except InvalidMessage as error:
        return str(error)
    return replace(message, report=NO_REPORT), report_bytes(message)


def in_parts(body: bytes) -> tuple[ReportSubmitted, bytes | None] | str:
    try:
        message, data, plain = read_submitted(body)
    except InvalidMessage as error:
        return str(error)
    copied = None if data is None else bytes(data)
    assert plain is None or plain == read_plain(copied)
    return replace(message, report=NO_REPORT), copied


@settings(deadline=None)
@given(BODIES)
@example(f'{{{",".join(NAMES)},"report":{PLAIN}}}'.encode())
@example(f'{{{",".join(NAMES)},"report":{PLAIN},"mutated":true}}'.encode())
@example(f'{{{",".join(NAMES)},"report":{PLAIN},"report":{PLAIN}}}'.encode())
@example(f'{{"report":{{}},{",".join(NAMES)},"report":{PLAIN}}}'.encode())
@example(f'{{{",".join(NAMES)},"x":{{"a":1,"report":{PLAIN}}}}}'.encode())
@example(f'{{{",".join(NAMES)},"x":[{{"a":1,"report":{PLAIN}}}}}'.encode())
@example(f'{{{",".join(NAMES)},"unparsed":"eA==","report":{PLAIN}}}'.encode())
def test_an_attempt_is_read_as_a_decode_of_the_whole_reads_it(body: bytes):
    assert in_parts(body) == whole(body)


def test_what_a_runner_sends_is_read_quickly_and_not_copied():
    report, _ = wrap_report(PLAIN.encode() + b"\n")
    body = codec.encode(ReportSubmitted("s", 1, 1, "r", "p", True, True, report))

    _, data, plain = read_submitted(body)

    assert plain == read_plain(PLAIN.encode())
    assert isinstance(data, memoryview)
    assert data.obj is body


@pytest.mark.parametrize("report", [NO_REPORT, Raw(b'{"x":1}'), Raw(b"[1]")])
def test_what_is_no_usual_report_is_left_to_whoever_judges_it(report: Raw):
    body = codec.encode(ReportSubmitted("s", 1, 1, "r", "p", True, True, report))

    message, data, plain = read_submitted(body)

    assert plain is None
    assert data == report_bytes(message)


@pytest.mark.parametrize("beside", [{"x": "x" * 500}, {"session": "s" * 500}])
def test_a_view_does_not_keep_much_beside_the_report(beside: dict[str, str]):
    names = {"session": "s", "turn": 1, "attempt": 1, "runner": "r", "pool": "p", **beside}
    body = msgspec.json.encode({**names, "report": Raw(PLAIN.encode())})

    _, data, plain = read_submitted(body)

    assert (data, plain) == (PLAIN.encode(), None)


def test_a_large_report_is_not_held_both_sent_and_read():
    details = {**DONE, "blocks": [{**DONE["blocks"][0], "details": "x" * 16_384}]}
    body = codec.encode(ReportSubmitted("s", 1, 1, "r", "p", True, True, Raw(msgspec.json.encode(details))))

    _, data, plain = read_submitted(body)

    assert (data, plain) == (msgspec.json.encode(details), None)
