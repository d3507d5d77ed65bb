"""Event streams of command line agents: the answer, the evidence and the tokens, and no way to break the reader."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.services.runner.adapters import samples
from turngate.runner.adapters.streams import READERS, Ended
from turngate_protocol.esm.classify import FailureKind
from turngate_protocol.esm.evidence import Evidence, EvidenceTracker, ToolEvent


def read(output: str, lines: list[bytes]) -> tuple[Ended, Evidence, list[str]]:
    reader, tracker, progress = READERS[output](), EvidenceTracker(), []
    for line in lines:
        for said in reader.feed(line):
            if isinstance(said, ToolEvent):
                tracker.observe(said)
            else:
                progress.append(said)
    return reader.end(), tracker.summary(), progress


@pytest.mark.parametrize(
    ("output", "lines", "names"),
    [
        ("claude", samples.CLAUDE, {"Bash": 1, "Read": 1}),
        ("codex", samples.CODEX, {"command_execution": 1, "file_change": 1}),
        ("opencode", samples.OPENCODE, {"bash": 1, "edit": 1}),
        ("events", samples.EVENTS, {"bash": 1, "read": 1}),
    ],
)
def test_a_documented_stream_gives_answer_evidence_and_tokens(output: str, lines: list[bytes], names: dict[str, int]):
    ended, evidence, _ = read(output, lines)
    assert ended == Ended('{"status": "continue"}', 125)
    assert evidence == Evidence(2, names, 1)


def test_what_a_stopped_agent_took_is_counted_once_a_message():
    parts = [{"type": "text", "text": "Looking"}, {"type": "tool_use", "id": "t1", "name": "Bash"}]
    usage = {"input_tokens": 20, "output_tokens": 5, "cache_read_input_tokens": 10}
    events = [
        {"type": "assistant", "message": {"id": name, "content": [part], "usage": usage}}
        for name in ("m1", "m2")
        for part in parts
    ]
    assert read("claude", [msgspec.json.encode(event) for event in events])[0].tokens == 70


def test_plain_output_is_the_answer_itself():
    assert read("plain", [b"Some log line", b'{"status": "continue"}', b""])[0].response.endswith(
        '{"status": "continue"}'
    )


@pytest.mark.parametrize("output", [name for name in READERS if name != "plain"])
def test_a_stream_that_breaks_off_is_incomplete(output: str):
    assert read(output, [])[0].failure is FailureKind.INCOMPLETE


@pytest.mark.parametrize(
    ("output", "event", "kind", "message"),
    [
        (
            "claude",
            {"type": "result", "subtype": "error_max_turns", "is_error": True},
            FailureKind.INCOMPLETE,
            "error_max",
        ),
        (
            "claude",
            {"type": "result", "is_error": True, "result": "usage limit reached"},
            FailureKind.ERROR,
            "usage limit",
        ),
        ("codex", {"type": "turn.failed", "error": {"message": "quota"}}, FailureKind.ERROR, "quota"),
        ("codex", {"type": "error", "message": "stream error"}, FailureKind.ERROR, "stream error"),
        (
            "opencode",
            {"type": "error", "error": {"name": "E", "data": {"message": "no key"}}},
            FailureKind.ERROR,
            "no key",
        ),
        ("events", {"type": "error", "message": "lost"}, FailureKind.ERROR, "lost"),
    ],
)
def test_what_an_agent_says_of_its_failure_is_kept(
    output: str, event: dict[str, object], kind: FailureKind, message: str
):
    ended = read(output, samples.lines(event))[0]
    assert ended.failure is kind
    assert message in ended.message


def test_a_stream_that_codex_has_connected_again_is_no_failure():
    trouble = samples.lines({"type": "error", "message": "Reconnecting... 1/5 (stream disconnected)"})
    ended, evidence, progress = read("codex", [*samples.CODEX[:-1], *trouble, samples.CODEX[-1]])
    assert (ended, evidence) == read("codex", samples.CODEX)[:2]
    assert "Reconnecting... 1/5 (stream disconnected)" in progress
    assert read("codex", [*samples.CODEX[:-1], *trouble])[0].failure is FailureKind.ERROR


def test_log_lines_between_events_are_passed_over():
    noisy = [b"warning: \xff", b"[]", b"7", b"[" * 10_000, *samples.CODEX, b""]
    assert read("codex", noisy) == read("codex", samples.CODEX)


@given(st.sampled_from(list(READERS)), st.lists(st.binary(max_size=40), max_size=20))
def test_no_bytes_break_a_reader(output: str, lines: list[bytes]):
    read(output, lines)


_KEYS = st.sampled_from(
    [
        "type",
        "item",
        "part",
        "message",
        "content",
        "id",
        "text",
        "tokens",
        "usage",
        "error",
        "state",
        "status",
        "result",
    ]
)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=4),
    max_leaves=12,
)
_TYPES = st.sampled_from(
    ["result", "assistant", "user", "item.completed", "turn.completed", "tool_use", "step_finish", "error", "tool_call"]
)


@given(st.sampled_from(list(READERS)), st.lists(st.dictionaries(_KEYS, values, max_size=5), max_size=5), _TYPES)
def test_no_event_breaks_a_reader(output: str, events: list[dict[str, object]], kind: str):
    read(output, samples.lines(*({**event, "type": kind} for event in events)))
