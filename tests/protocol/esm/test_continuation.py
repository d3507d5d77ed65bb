"""The promises that hold for every row of the table, and that every row has its test."""

import msgspec
import pytest

from tests.protocol.esm import test_commands, test_results, test_runs
from tests.protocol.esm.oracle import sound
from tests.protocol.esm.rows import COVERED
from tests.protocol.esm.scenes import (
    NOW,
    PASS,
    TEXT,
    audit,
    cause_of,
    claimed,
    complete,
    created,
    critic,
    empty,
    failure,
    held,
    observer,
    run_of,
    timer,
    told,
    waiting,
)
from turngate_protocol.esm import (
    TABLE,
    Clear,
    Configure,
    Create,
    Edit,
    EsmError,
    EsmState,
    Evidence,
    FailureKind,
    Guide,
    Input,
    Pause,
    Resume,
    Start,
    TimerKind,
    Update,
    advance,
)
from turngate_protocol.esm.changes import role_run_of

SCENES = {
    "empty": empty(),
    "created": created(),
    "waiting": waiting(),
    "worker": held(),
    "critic": critic(),
    "audit": audit(),
    "observer": observer(),
    "paused": advance(held(), Pause(), NOW),
    "failed": advance(held(), failure(held(), FailureKind.ERROR, "broke"), NOW),
    "limited": advance(held(), failure(held(), FailureKind.USAGE_LIMIT), NOW),
    "delayed": told(held(), "no report"),
    "complete": complete(),
    "cleared": advance(held(), Clear(), NOW),
}
COMMANDS: list[Input] = [
    Start(),
    Create(text=TEXT, esm_id="e2"),
    Create(text=" ", esm_id="e2"),
    Edit(text="another bridge"),
    Edit(text="x" * 65_537),
    Pause(),
    Resume(),
    Clear(),
    Guide(text="mind the gap"),
    Guide(text=""),
    Configure(pool="gpu"),
    Update(status="complete", reason="it stands"),
    Update(status="blocked", reason="no steel", run_id="e1-1"),
    Update(status="done", reason="it stands"),
    Update(status="blocked", reason="x" * 16_385, run_id="r"),
]


MODULES = [test_commands, test_results, test_runs]
"""Where the tests of the rows are; importing them is what covers a row."""


def test_every_row_has_a_test():
    assert {each.name for each in TABLE} == COVERED


def test_the_names_of_the_rows_are_distinct():
    assert len({each.name for each in TABLE}) == len(TABLE)


def test_the_delay_doubles_up_to_five_minutes():
    state, delays = created(), []
    for _ in range(12):
        state = claimed(advance(state, timer(state, TimerKind.CONTINUATION), NOW))
        state = told(state, "no report")
        delays.append((state.next_at or 0) - NOW)
    assert delays == [1000, 2000, 4000, 8000, 16000, 32000, 64000, 128000, 256000, 300000, 300000, 300000]


def test_a_claimed_run_id_of_another_name_is_used_as_it_is():
    assert run_of(advance(created(), Start(run_id="mine"), NOW)).id == "mine-worker"


@pytest.mark.parametrize("scene", SCENES.values(), ids=SCENES.keys())
@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: type(command).__name__)
def test_every_command_in_every_state_is_followed_or_refused_with_a_typed_error(scene, command):
    try:
        after = advance(scene, command, NOW)
    except EsmError as refused:
        msgspec.json.encode([refused.kind, refused.message, refused.details])
    else:
        sound(after)
        assert advance(scene, command, NOW) == after


def test_asking_for_the_role_run_where_there_is_none_is_a_mistake_of_the_caller():
    with pytest.raises(AssertionError):
        role_run_of(empty())


def test_a_result_never_raises_whatever_is_in_it():
    hostile = "{" * 20_000 + "\ud800" + '"' * 7
    for scene in (held, critic, audit, observer):
        after = told(scene(), hostile, tokens=-5, duration_ms=2**80, evidence=Evidence(2**80, {}, -1))
        msgspec.json.encode(after)
        advance(scene(), failure(scene(), FailureKind.ERROR, hostile), NOW)


@pytest.mark.parametrize("scene", [held, critic, audit, observer])
def test_a_state_after_a_hostile_result_can_be_saved(scene):
    answer = '{"verdict":"fail"} \ud800' + "x" * 600_000
    for state in (told(scene(), answer), advance(scene(), failure(scene(), FailureKind.ERROR, answer), NOW)):
        encoded = msgspec.json.encode(state)
        assert msgspec.json.decode(encoded, type=EsmState) == state
        assert len(encoded) < 200_000


def test_every_new_state_has_a_cause_and_counts_on():
    state = audit()
    after = told(state, PASS)
    assert (after.revision, cause_of(after).revision) == (state.revision + 1, state.revision + 1)
    assert after.recent[-1] == state.cause
