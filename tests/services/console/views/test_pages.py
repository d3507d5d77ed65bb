"""What each page makes of what the wire brings."""

from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from tests.services.console.views.past import HOUR, MINUTE, archive, causes_of
from turngate.console.facts import Fleet, SeenQueue
from turngate.console.views import (
    fleet,
    inbox,
    objective,
    objectives,
    question,
    questions,
    session,
    sessions,
    task,
    tasks,
)
from turngate.console.views.said import Said
from turngate_contracts.beats import RunnersPage
from turngate_contracts.errors import ErrorBody, ErrorCode
from turngate_contracts.esm import HistoryPage, ObjectiveFound, ObjectivesPage
from turngate_contracts.examples import BEGAN, EXAMPLES
from turngate_contracts.messages import InboxPage, TurnFound
from turngate_contracts.progress import RoleProgressed
from turngate_contracts.questions import QuestionFound
from turngate_contracts.sessions import SessionEntry, SessionsPage
from turngate_contracts.tasks import ConclusionFound, ConclusionsPage
from turngate_protocol.esm.activity import Activity, ActivityKind, activity_of
from turngate_protocol.esm.objective import Role, Status
from turngate_protocol.esm.present import format_objective
from turngate_protocol.inbox import InboxEntry
from turngate_protocol.report.session import Phase, SessionTurns

T = TypeVar("T", bound=Struct)
NOW = BEGAN + 2 * HOUR


def example(kind: type[T]) -> T:
    found = EXAMPLES[kind]
    assert isinstance(found, kind)
    return found


def past_objective() -> ObjectiveFound:
    state = archive("archive-3", NOW - 12 * HOUR).state
    return ObjectiveFound(state, 9, activity_of(state), format_objective(state.objective), 1)


def test_a_session_shows_its_card_why_attempts_were_rejected_and_what_waits_behind_it():
    page = session.page(example(TurnFound), NOW)

    assert page.waiting
    assert page.phase.text == "waits for you"
    assert [(step.name, step.chip.text) for step in page.steps] == [
        ("Attempt 1", "rejected"),
        ("Attempt 2", "accepted"),
    ]
    assert page.steps[0].problems[0].code == "status_needs_verification"
    assert [prompt.kind for prompt in page.held] == ["conclusion"]
    assert [past.turn for past in page.history] == [6]


def test_an_answered_session_says_who_answered_and_marks_the_option():
    page = session.page(replace(example(TurnFound), state=_answered()), NOW)

    assert not page.waiting
    assert page.answer is not None
    assert (page.answer.actor, page.answer.label) == ("ann", "Leave it for the weekend")
    assert page.card is not None
    chosen = [option.label for block in page.card.blocks for option in block.options if option.name == page.answer.name]
    assert chosen == ["Leave it for the weekend"]


def test_the_inbox_says_what_each_entry_takes():
    turn, asked, driven = example(TurnFound), example(QuestionFound), past_objective()
    pool = turn.state.pool
    entries = (
        InboxEntry("card", turn.state.session, pool, BEGAN, "The title", 7, 3),
        InboxEntry("question", "q", pool, BEGAN, "What?", questions=1, parent_session="release-31", task="311"),
        InboxEntry("objective", "archive-3", pool, BEGAN, "Archive"),
    )

    page = inbox.page(
        InboxPage(entries, 17, more=True), {turn.state.session: turn}, {"q": asked}, {"archive-3": driven}, NOW
    )

    card, question_row, objective_row = page.rows
    assert [offer.label for offer in card.offers] == ["Run it now", "Tell the team first", "Leave it for the weekend"]
    assert [offer.recommended for offer in card.offers] == [False, False, True]
    assert question_row.takes == "one option"
    assert question_row.parent == "for session release-31 task 311"
    assert objective_row.chip.text == "complete candidate"
    assert [row.href for row in page.rows] == [
        f"/sessions/{turn.state.session}",
        "/questions/q",
        "/objectives/archive-3",
    ]
    assert page.cursor == "17"


def test_an_entry_whose_state_vanished_is_shown_by_what_the_inbox_knows():
    entries = (
        InboxEntry("card", "a", "p", BEGAN, "A title", 3, 2),
        InboxEntry("question", "b", "p", BEGAN, "A question", questions=2),
        InboxEntry("objective", "c", "p", BEGAN, "An objective"),
    )

    page = inbox.page(InboxPage(entries), {}, {}, {}, NOW)

    assert [row.title for row in page.rows] == ["A title", "A question", "An objective"]
    assert [row.takes for row in page.rows][:2] == ["turn 3, 2 options", "2 questions"]


def test_the_inbox_names_objectives_that_wait_for_a_runner_by_pool_with_what_helps():
    (entry,) = example(ObjectivesPage).entries
    waits = Activity(ActivityKind.WAITING_FOR_RUNNER, BEGAN, "worker", "r1", pool="gpu")
    waiting = ObjectivesPage((replace(entry, activity=waits, runners=0),), more=True)

    page = inbox.page(InboxPage(()), {}, {}, {}, NOW, waiting=waiting)

    (pool,) = page.unattended
    assert (pool.pool, pool.command) == ("gpu", "turngate runner --pool gpu -- COMMAND")
    assert pool.rows[0].doing.text == "worker waits for a runner of pool gpu, 2 h so far; none is alive"
    assert page.unattended_more


def test_what_waits_for_a_person_is_shown_where_it_is_not_known_what_waits_for_a_runner():
    listed = InboxPage((InboxEntry("card", "a", "p", BEGAN, "A title", turn=1, options=1),))

    page = inbox.page(listed, {}, {}, {}, NOW, unknown="nobody\x1b answers")

    assert ([row.title for row in page.rows], page.unknown) == (["A title"], "nobody\\x1b answers")


def test_what_an_agent_says_stands_on_its_objective_while_that_very_role_run_is_under_way():
    found = past_objective()
    runs = Activity(ActivityKind.RUNNING, BEGAN, "worker", "run-1", "r1")
    news = {"archive-3": RoleProgressed("archive-3", "run-1", Role.WORKER, "r1", NOW, "reads\x1b[2J")}

    def said(activity: Activity) -> Said | None:
        return objective.page(replace(found, activity=activity), HistoryPage(()), NOW, news).said

    assert said(runs) == Said("archive-3", "run-1", "reads\\x1b[2J")
    assert said(replace(runs, role_run_id="run-2")) == Said("archive-3", "run-2", "")
    assert said(replace(runs, kind=ActivityKind.SCHEDULED)) is None


def test_a_question_says_what_its_policy_will_do():
    page = question.page(example(QuestionFound), BEGAN + 56 * MINUTE)

    assert page.waiting is not None
    assert page.waiting.decides.endswith("it takes this answer by itself: Keep")
    assert [choice.value for choice in page.waiting.parts[0].choices] == ["Archive", "Keep"]


def test_the_list_of_questions_leaves_out_what_was_decided_meanwhile():
    found = example(QuestionFound)
    entries = tuple(InboxEntry("question", name, "p", BEGAN, "What?", questions=1) for name in ("a", "b"))

    page = questions.page(InboxPage(entries), {"a": found, "b": replace(found, pending=None)}, NOW)

    assert [row.session for row in page.rows] == ["a"]


def test_an_objective_says_where_it_stands_and_what_may_be_done():
    found = past_objective()
    history = HistoryPage(causes_of(archive("archive-3", NOW - 12 * HOUR)), "b.1.1")

    page = objective.page(found, history, NOW)

    assert [(step.name, step.state) for step in page.steps] == [
        ("worker", "done"),
        ("critic", "here"),
        ("audit", "ahead"),
        ("complete", "ahead"),
    ]
    assert (page.may.pause, page.may.resume, page.may.run) == (True, False, True)
    assert page.history[0].what == "role started"
    assert page.history[-1].what == "created"
    assert page.timeline is not None
    assert (page.older, page.newest) == ("", True)


def test_a_page_of_old_history_leads_to_older_and_shows_nothing_newer():
    found = past_objective()
    old = causes_of(archive("archive-3", NOW - 12 * HOUR))[2:6]

    page = objective.page(found, HistoryPage(old, more=True), NOW, newest=False)

    assert len(page.history) == 4
    assert (page.older, page.newest) == (f"/objectives/archive-3?before={old[0].revision}", False)


def test_a_session_without_an_objective_may_be_given_one():
    found = past_objective()
    state = replace(found.state, objective=None, continuation=None, next_at=None)

    page = objective.page(replace(found, state=state, activity=activity_of(state)), HistoryPage(()), NOW)

    assert page.text is None
    assert page.may.create
    assert not page.may.pause


def test_the_list_of_objectives_goes_on_within_its_status():
    listed = replace(example(ObjectivesPage), more=True, cursor="s9")

    page = objectives.page(listed, Status.ACTIVE, NOW)

    assert page.next == "/objectives?cursor=s9&status=active"
    assert [tab.label for tab in page.tabs if tab.here] == ["active"]


def test_a_task_shows_what_is_missing_before_what_is_there():
    page = task.page(example(ConclusionFound), NOW)

    assert page.downgraded
    assert [(group.chip.text, group.files) for group in page.refs] == [
        ("missing", ("tools/check_index.py:12",)),
        ("verified", ("tools/index_archive.py",)),
    ]
    assert page.refs[1].memories == ("archive/layout",)


def test_a_task_with_thousands_of_refs_shows_some_and_counts_all():
    found = example(ConclusionFound)
    gate = found.state.gate
    assert gate is not None
    many = replace(found.state, gate=replace(gate, missing_artifacts=tuple(f"f{at}" for at in range(5_000))))

    missing = task.page(replace(found, state=many), NOW).refs[0]

    assert (missing.count, len(missing.files), missing.more) == (5_000, 200, 4_800)


def test_the_list_of_tasks_says_what_asks_for_a_look():
    page = tasks.page(example(ConclusionsPage), NOW)

    assert [chip.text for chip in page.rows[0].found] == ["success not believed", "1 missing"]


def test_further_pages_of_one_session_s_tasks_are_of_that_session():
    page = tasks.page(ConclusionsPage((), cursor=7, more=True), NOW, "s1")

    assert (page.next, page.session) == ("/tasks?cursor=7&session=s1", "s1")


def test_a_session_without_a_turn_says_so():
    entry = SessionEntry("s", "p", 3, BEGAN, "turngate.turn.prompt_sent", 0, Phase.ENDED)

    (row,) = sessions.page(SessionsPage((entry,)), NOW).rows

    assert (row.chip.text, row.event) == ("no turn yet", "turn prompt sent")


def test_further_pages_of_a_search_are_of_the_same_search():
    view = sessions.page(SessionsPage((), cursor=7, more=True), NOW, "a&b \u202e")

    assert view.next == "/sessions?cursor=7&q=a%26b%20%E2%80%AE"
    assert (view.text, view.shown) == ("a&b \u202e", "a&b \\u202e")


def test_the_fleet_counts_slots_and_names_what_could_not_be_read():
    runners = example(RunnersPage).runners
    seen = Fleet(
        runners,
        queues=(SeenQueue("TG_TURNS", "validation", 4_000, 2, 1), SeenQueue("TG_ESM", "supervisor", 0, 0, 0)),
        unknown={"dead": ErrorBody(ErrorCode.UNAVAILABLE, "nobody answers")},
    )

    page = fleet.page(seen, NOW)

    assert [(pool.pool, pool.busy, pool.slots) for pool in page.pools] == [("backend", 1, 4)]
    assert page.runners[0].work[0].progress == "archives the orders of 2011"
    assert [(queue.lag.text, queue.lag.tone) for queue in page.queues] == [
        ("4,000 waiting", "warn"),
        ("up to date", "good"),
    ]
    assert page.unknown == {"dead": "nobody answers"}


def _answered() -> SessionTurns:
    from turngate_protocol.report.answering import Changed, Pick, answer

    done = answer(example(TurnFound).state, Pick(7, "ann", number=3), NOW - MINUTE)
    assert isinstance(done, Changed)
    return done.state
