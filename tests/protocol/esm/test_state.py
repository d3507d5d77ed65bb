import msgspec
import pytest

from tests.protocol.esm.scenes import (
    CONTINUE,
    NOW,
    audit,
    cause_of,
    claimed,
    complete,
    created,
    empty,
    failure,
    held,
    observer,
    report,
    told,
    waiting,
)
from turngate_protocol.esm import Edit, EsmState, FailureKind, Guide, Start, Timer, TimerKind, advance, causes
from turngate_protocol.esm.state import IGNORED_KEPT, RECENT_KEPT, CauseType

SCENES = [
    empty(),
    created(),
    waiting(),
    held(),
    audit(),
    observer(),
    complete(),
    advance(held(), Edit(text="another bridge"), NOW),
    advance(held(), failure(held(), FailureKind.ERROR, "broke"), NOW),
    advance(held(), Guide(text="mind the gap", id="k1", actor="ada"), NOW),
]


@pytest.mark.parametrize("state", SCENES)
def test_a_state_is_saved_whole(state):
    assert msgspec.json.decode(msgspec.json.encode(state), type=EsmState) == state


def test_a_reader_that_is_older_or_newer_still_reads_it():
    encoded = msgspec.json.encode({"session_id": "s1", "a_field_of_next_year": 1})
    assert msgspec.json.decode(encoded, type=EsmState) == empty()


def test_the_causes_in_order_are_the_history():
    assert [(cause.type.value, cause.role) for cause in causes(complete())] == [
        ("created", ""),
        ("continuation_started", ""),
        ("role_started", "worker"),
        ("role_finished", "worker"),
        ("role_started", "critic"),
        ("role_finished", "critic"),
        ("role_started", "audit"),
        ("role_finished", "audit"),
    ]
    assert [cause.revision for cause in causes(complete())] == list(range(1, 9))


def test_the_history_in_a_state_is_bounded():
    state = created()
    for number in range(3 * RECENT_KEPT):
        state = advance(state, Guide(text=f"{number}"), NOW)
    assert len(state.recent) == RECENT_KEPT
    assert cause_of(state).revision == 3 * RECENT_KEPT + 1


def test_results_that_changed_nothing_do_not_push_out_what_did():
    state = held()
    for number in range(3 * IGNORED_KEPT):
        state = advance(state, report(held(), CONTINUE, claim_id=f"forged-{number}"), NOW)
    assert len(state.ignored) == IGNORED_KEPT
    assert [cause.type for cause in state.recent] == ["created", "continuation_started", "role_started"]


def test_looks_of_the_watchdog_are_not_kept():
    state = held()
    for _ in range(5):
        assert state.continuation is not None
        at = state.continuation.role_run.check_at
        state = advance(state, Timer(kind=TimerKind.WATCHDOG, generation=state.generation, at=at), at)
    state = told(state, CONTINUE)
    assert CauseType.WATCHED not in [cause.type for cause in causes(state)]


def test_texts_of_causes_are_cut():
    state = advance(held(), failure(held(), FailureKind.ERROR, "x" * 100_000), NOW)
    assert len(cause_of(state).message) <= 1024


def test_a_session_that_works_for_years_does_not_grow():
    state, sizes = created(), []
    for number in range(80):
        state = claimed(advance(state, Start(), NOW))
        # Every other run is fenced and its result never comes.
        state = advance(state, Edit(text=f"bridge {number:02}"), NOW) if number % 2 else told(state, CONTINUE)
        sizes.append(len(msgspec.json.encode(state)))
    assert sizes[-1] < 1.1 * sizes[-10]
    assert sizes[-1] < 30_000
