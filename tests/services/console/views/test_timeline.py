"""The drawing of a history: a lane for each role, a bar for each run, rests cut short."""

from itertools import pairwise

from tests.services.console.views.past import HOUR, MINUTE, Past, archive, causes_of
from turngate.console.views.timeline import LANES, Timeline, timeline
from turngate_protocol.esm.inputs import Create, Pause, Resume

BEGAN = 1_785_488_400_000


def drawn(past: Past, later: int = 10 * MINUTE) -> Timeline:
    made = timeline(causes_of(past), past.now + later, open_ended=True)
    assert made is not None
    return made


def lanes(made: Timeline) -> list[str]:
    return [LANES[bar.lane] for bar in made.bars]


def test_each_role_run_is_a_bar_in_the_lane_of_its_role():
    made = drawn(archive("s", BEGAN))

    assert lanes(made) == ["worker", "worker", "worker", "critic", "worker", "recovery", "worker", "critic"]
    assert [bar.tone for bar in made.bars] == ["good", "good", "good", "warn", "bad", "good", "good", "info"]


def test_a_bar_says_who_ran_what_came_out_and_what_it_cost():
    first = drawn(archive("s", BEGAN)).bars[0]

    assert first.title == "worker on core-2: continue, 14m, 48,211 tokens, 2 tool calls"


def test_only_the_last_run_of_the_newest_page_still_runs():
    past = archive("s", BEGAN)

    assert [bar.running for bar in drawn(past).bars] == [False] * 7 + [True]


def test_bars_follow_each_other_and_stay_inside():
    bars = drawn(archive("s", BEGAN)).bars

    assert all(bar.x >= 0 and bar.x + bar.width <= 100.01 for bar in bars)
    assert all(one.x < other.x for one, other in pairwise(bars))


def test_a_night_is_cut_short_and_says_how_long_it_was():
    made = drawn(archive("s", BEGAN))

    assert [each.label for each in made.breaks] == ["9 h"]
    assert made.breaks[0].width < 10


def test_people_leave_marks():
    titles = [mark.title for mark in drawn(archive("s", BEGAN)).marks]

    assert titles == ["created by ann", "paused by ann", "resumed by bea", "guided by ann"]


def test_a_run_that_a_pause_ended_ends_there():
    past = Past("s", BEGAN)
    past.tell(Create(text="It works", esm_id="e1", id="o1", actor="ann"))
    past.claim("core-1")
    past.tell(Pause(id="o2", actor="ann"), 4 * MINUTE)

    (bar,) = drawn(past, HOUR).bars

    assert not bar.running
    assert bar.tone == "idle"
    assert "4m" in bar.title


def test_a_run_whose_beginning_is_on_an_earlier_page_is_as_long_as_it_took():
    causes = causes_of(archive("s", BEGAN))
    ends = next(at for at, cause in enumerate(causes) if cause.verdict)

    made = timeline(causes[ends:], BEGAN + 12 * HOUR, open_ended=True)

    assert made is not None
    assert "14m" in made.bars[0].title


def test_where_no_role_ran_there_is_nothing_to_draw():
    past = Past("s", BEGAN)
    past.tell(Create(text="It works", esm_id="e1", id="o1", actor="ann"))

    assert timeline(causes_of(past), past.now, open_ended=True) is None


def test_thousands_of_runs_stay_within_a_drawing():
    past = Past("s", BEGAN)
    past.tell(Create(text="It works", esm_id="e1", id="o1", actor="ann"))
    for _ in range(300):
        past.claim("core-1", 1_000)
        past.tell(Pause(id=f"p{past.now}", actor="ann"), 1_000)
        past.tell(Resume(id=f"r{past.now}", actor="ann"), 3 * HOUR)

    made = drawn(past)

    assert len(made.bars) == 300
    assert made.width <= 6_000
    assert {each.label for each in made.breaks} == {""}
    assert max(bar.x + bar.width for bar in made.bars) <= 100.01
