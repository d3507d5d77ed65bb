"""The machine that drives an objective to its end: `advance` says what follows, `wants` says what to do about it.

A continuation is one run of the pipeline

    worker  --believable claim-->  critic  --pass-->  audit  --pass-->  complete
      |                              |                  |
      +-- anything else              +-- anything else  +-- anything else: active again, the next continuation is wanted

and it is data, not a coroutine: nobody waits for a role. The state of a session holds at most one continuation and
that holds exactly one role run, which is wanted until a runner claims it and held until its result comes. Any process
may load the state, advance it by one input, save it with a compare-and-set, and die; any other carries on. What the
rules of ESM are is in `transitions` and `judgement`; here is who may speak, when, and what comes next.

**One input, one state.** `advance(state, input, now)` is a function of its arguments. It returns the very same object
when the input changes nothing, so that nothing is saved, and raises a typed error when a command or a claim is
refused. Results are never refused by an error: they are applied, or ignored with a reason. Every new state carries the
cause that made it, and the causes of a session in order are its history.

**Fencing.** Every continuation has a generation, and so has every fence (edit, pause, clear, a new objective, another
agent's claim). A role run is held by one claim of one runner in one generation. A result that does not come from
exactly that holder is ignored: it changes nothing but the usage counters, and those once, because a claimed run that
is given up is written down in `abandoned` until its result comes. A runner that is no holder learns so from its next
beat.

**Losing.** A message that is delivered again is harmless: only claiming starts an agent, and one claim wins. Lost is a
role run that was claimed and that no runner says any more that it holds; the watchdog finds it. So a runner says so
until it is told that the role run is over: a result on its way must not be taken for a loss. What a lost role left
behind is looked at by an observer in the same continuation, and the objective goes on from there. A role run that
nobody has claimed waits as long as it takes, costs nothing, and is offered again from time to time in case the offer
was forgotten.

**Continuing.** After progress the next continuation is due at once. After a recovery, a rejection, a blocker or a run
that got nowhere it is due after a delay that doubles up to five minutes; a person who edits, resumes, guides or starts
ends the delay. A failure that nobody foresaw, a usage limit and the third run with the same blocker wait for a person.
No failing input can loop: every row that ends a continuation either delays the next one or wants none.

**Guidance.** A text is bound to a role run when it is claimed and consumed when that role run is applied. So a run can
only consume what it carried, and what was carried by a run that failed is carried again.

**Effects.** `wants(state)` is a function of the state alone. A reconciler performs the effects of the newest revision
in order, each of them idempotent, reads the state again, does the same for a newer revision, and only then
acknowledges; killed anywhere, it is given the revision again. Reading again is needed: a timer that it set for an
older revision may have replaced the one that another process set for a newer one, and a timer of an older revision
moves nothing on. Cancels come first, so that what must not run stops soon; then the inbox; timers before dispatch, so
that no role run goes out unwatched. Whoever saved the revision may dispatch at once, as a nudge: the revision is given
to a reconciler all the same, which sets the watchdog and finds the dispatch done.

The table below is read from the top: the first row whose input and condition match decides. Times are milliseconds
since the epoch; clocks may differ, so a timer is recognised by what was asked of it, never by what time it is.
"""

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from turngate_protocol.esm import commands, results, runs
from turngate_protocol.esm import conditions as on
from turngate_protocol.esm.changes import Moment
from turngate_protocol.esm.classify import FailureKind
from turngate_protocol.esm.conditions import Condition
from turngate_protocol.esm.effects import CancelRole, CloseInbox, DispatchRole, Effect, OpenInbox, SetTimer
from turngate_protocol.esm.inputs import (
    Claim,
    Clear,
    Configure,
    Create,
    Edit,
    Guide,
    Input,
    Pause,
    Release,
    Resume,
    RoleFailed,
    RoleReported,
    Start,
    Timer,
    TimerKind,
    Update,
)
from turngate_protocol.esm.objective import Status, can_auto_run
from turngate_protocol.esm.state import DEFAULT_POLICY, EsmState, HaltReason, Policy

CANCEL_REVISIONS: Final = 8
"""For how many changes of the state a runner is told again to stop a role run that was given up."""


class Row(NamedTuple):
    """One row: on this input, when that holds, then this follows."""

    name: str
    inputs: tuple[type, ...]
    when: Condition
    then: Callable[[EsmState, Any, Moment], EsmState]


def _unchanged(state: EsmState, _told: Input, _moment: Moment) -> EsmState:
    return state


def _lost(state: EsmState, _told: Timer, moment: Moment) -> EsmState:
    """The runner fell silent: as if the role had failed so."""
    return _follow(*runs.lost(state, FailureKind.LOST), moment)


def _overran(state: EsmState, _told: Timer, moment: Moment) -> EsmState:
    """The runner does not enforce the deadline: as if the role had met it."""
    return _follow(*runs.lost(state, FailureKind.DEADLINE), moment)


_COMMANDS: Final = (Start, Create, Edit, Pause, Resume, Clear, Guide, Configure, Update)
_RESULTS: Final = (RoleReported, RoleFailed)

_CUT_OFF: Final = on.failed_by(FailureKind.DEADLINE, FailureKind.LOST)
_RETRYABLE: Final = on.failed_by(FailureKind.INCOMPLETE, FailureKind.TRANSPORT)
_LIMITED: Final = on.failed_by(FailureKind.USAGE_LIMIT)

# fmt: off
TABLE: Final = (
    #   name                                      input            when                     then
    Row("a command comes again",                  _COMMANDS,       on.seen_before,          _unchanged),
    Row("start without an objective",             (Start,),        on.has_no_objective,     runs.start),
    Row("start of what can't run",                (Start,),        on.cannot_run,           _unchanged),
    Row("start while one is under way",           (Start,),        on.is_under_way,         _unchanged),
    Row("start",                                  (Start,),        on.always,               runs.start),
    Row("claim of what is not wanted",            (Claim,),        on.is_not_wanted,        runs.refuse_unwanted),
    Row("claim without a name",                   (Claim,),        on.is_nameless,          runs.refuse_unwanted),
    Row("claim by who holds it",                  (Claim,),        on.is_held,              _unchanged),
    Row("claim of what another holds",            (Claim,),        on.is_claimed,           runs.refuse_taken),
    Row("claim from another pool",                (Claim,),        on.is_from_another_pool, runs.refuse_pool),
    Row("claim",                                  (Claim,),        on.always,               runs.claim),
    Row("release by who does not hold it",        (Release,),      on.is_not_held,          _unchanged),
    Row("release",                                (Release,),      on.always,               runs.release),
    Row("result of who does not hold it",         _RESULTS,        on.is_not_held,          results.ignored),
    Row("worker reports",                         (RoleReported,), on.is_worker,            results.worker_reported),
    Row("critic or audit reports",                (RoleReported,), on.is_review,            results.review_reported),
    Row("observer reports",                       (RoleReported,), on.always,               results.observer_reported),
    Row("observer fails",                         (RoleFailed,),   on.is_observer,          results.observer_failed),
    Row("role is cut off or lost",                (RoleFailed,),   _CUT_OFF,                results.observer_wanted),
    Row("role stops and a retry can help",        (RoleFailed,),   _RETRYABLE,              results.recovered),
    Row("role meets a usage limit",               (RoleFailed,),   _LIMITED,                results.limited),
    Row("role fails otherwise",                   (RoleFailed,),   on.always,               results.stopped),
    Row("timer that is not wanted",               (Timer,),        on.is_no_timer_of_ours,  _unchanged),
    Row("next continuation is due",               (Timer,),        on.is_idle,              runs.start),
    Row("watchdog finds that nobody has claimed", (Timer,),        on.is_unclaimed,         runs.look_again),
    Row("watchdog misses the runner",             (Timer,),        on.is_silent,            _lost),
    Row("watchdog finds the observer overdue",    (Timer,),        on.is_overdue,           _overran),
    Row("watchdog finds all well",                (Timer,),        on.always,               runs.look_again),
    Row("create",                                 (Create,),       on.always,               commands.create),
    Row("edit",                                   (Edit,),         on.always,               commands.edit),
    Row("pause of what a person paused",          (Pause,),        on.is_paused_by_person,  _unchanged),
    Row("pause",                                  (Pause,),        on.always,               commands.pause),
    Row("resume of what is active",               (Resume,),       on.is_active,            _unchanged),
    Row("resume",                                 (Resume,),       on.always,               commands.resume),
    Row("clear of nothing",                       (Clear,),        on.has_no_objective,     _unchanged),
    Row("clear",                                  (Clear,),        on.always,               commands.clear),
    Row("guide",                                  (Guide,),        on.always,               commands.guide),
    Row("configure",                              (Configure,),    on.always,               commands.configure),
    Row("update",                                 (Update,),       on.always,               commands.update),
)
# fmt: on
"""What follows what, read from the top."""

_ROWS: Final[dict[type, tuple[Row, ...]]] = {
    kind: tuple(row for row in TABLE if kind in row.inputs) for kind in {kind for row in TABLE for kind in row.inputs}
}


def advance(state: EsmState, told: Input, now: int, policy: Policy = DEFAULT_POLICY) -> EsmState:
    """Return what follows when `state` is told something; the same object when nothing does.

    Args:
        state: the newest state of the session, `EsmState(session_id)` when there is none.
        told: what a message said.
        now: milliseconds since the epoch.
        policy: how patient the machine is.

    Raises:
        EsmError: a command or a claim is refused; never for a result or a timer.
    """
    return _follow(state, told, Moment(now, policy))


def row_of(state: EsmState, told: Input, now: int, policy: Policy = DEFAULT_POLICY) -> Row:
    """Return the row of the table that decides what follows."""
    return _row(state, told, Moment(now, policy))


def settle(state: EsmState, now: int, policy: Policy = DEFAULT_POLICY) -> EsmState:
    """Return `state` with a continuation that is due started, without the round trip of a timer that is due at once.

    Both steps can be saved at once: each counts as a change and leaves its cause, the earlier one among `recent`, where
    a reader of the history finds it by its number. A reconciler that is given the state in between comes to the same.
    """
    if state.next_at is None or state.next_at > now:
        return state
    timer = Timer(kind=TimerKind.CONTINUATION, generation=state.generation, at=state.next_at)
    return advance(state, timer, now, policy)


def wants(state: EsmState) -> tuple[Effect, ...]:
    """Return what `state` wants from the world, in the order in which it is to be done; empty when it rests."""
    return tuple(effect for _name, wanted in EFFECTS for effect in wanted(state))


def _row(state: EsmState, told: Input, moment: Moment) -> Row:
    return next(row for row in _ROWS[type(told)] if row.when(state, told, moment))


def _follow(state: EsmState, told: Input, moment: Moment) -> EsmState:
    return _row(state, told, moment).then(state, told, moment)


def _cancels(state: EsmState) -> tuple[Effect, ...]:
    return tuple(
        CancelRole(state.session_id, gone.role_run_id, gone.generation, gone.claim_id, gone.runner, gone.reason)
        for gone in state.abandoned
        if state.revision - gone.revision < CANCEL_REVISIONS
    )


def _inbox(state: EsmState) -> tuple[Effect, ...]:
    if state.halt is not None:
        return (OpenInbox(state.session_id, state.halt.reason, state.halt.message, state.halt.since),)
    if state.objective is not None and state.objective.status is Status.PAUSED:
        return (OpenInbox(state.session_id, HaltReason.PAUSED, state.objective.text, state.objective.updated_at),)
    return (CloseInbox(state.session_id),) if state.halted_before else ()


def _next_continuation(state: EsmState) -> tuple[Effect, ...]:
    if state.next_at is None or state.continuation is not None or not can_auto_run(state.objective):
        return ()
    return (SetTimer(state.session_id, TimerKind.CONTINUATION, state.generation, state.next_at),)


def _watchdog(state: EsmState) -> tuple[Effect, ...]:
    if state.continuation is None:
        return ()
    return (SetTimer(state.session_id, TimerKind.WATCHDOG, state.generation, state.continuation.role_run.check_at),)


def _dispatch(state: EsmState) -> tuple[Effect, ...]:
    if state.continuation is None or state.continuation.role_run.claim_id:
        return ()
    run = state.continuation.role_run
    return (DispatchRole(state.session_id, run.id, run.role, state.generation, state.pool, run.wanted_at),)


EFFECTS: Final[tuple[tuple[str, Callable[[EsmState], tuple[Effect, ...]]], ...]] = (
    ("a claimed role run was given up lately: its runner is told", _cancels),
    ("a person is waited for, or was: the inbox says so", _inbox),
    ("the objective can run and nothing does: a timer for the next continuation", _next_continuation),
    ("a role run is under way: a timer for the watchdog", _watchdog),
    ("nobody has claimed the role run: it is offered", _dispatch),
)
"""What a state wants, in the order in which it is done."""
