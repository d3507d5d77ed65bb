"""Each service is ended at each step of each effect that it has: see `walk`."""

from tests.system.faults.findings import Findings
from tests.system.faults.rig import Rig, Scale
from tests.system.faults.walk.table import WALKS, Walk, points
from tests.system.faults.walk.walking import Lane, shuffled, walk_lanes

AT_ONCE = 10
POINTS_A_LANE = 12
SHORT = {
    "validation": ("save.turns.sent", "ack.validation.before", "put.prompt.sent"),
    "conclusion": ("save.conclusions.sent", "ask.turn.prompt.confirmed"),
    "supervisor": ("save.objectives.sent",),
    "deadletter": ("put.letter.sent", "ack.deadletter.before"),
}
"""What every run of the tests walks."""


async def run(rig: Rig, seed: int, scale: Scale) -> Findings:
    """Walk points in an order drawn from the seed; with all of them, an effect that is in no table is wrong."""
    lanes = [lane for walk in WALKS for lane in _lanes(walk, seed, scale)]
    found, reached = await walk_lanes(lanes, rig.url, rig.directory, AT_ONCE)
    problems = [
        f"{walk.service} has effects that are not walked: {', '.join(sorted(unknown))}"
        for walk in WALKS
        if (unknown := reached.get(walk.service, set()) - walk.effects)
    ]
    count = sum(len(lane.points) for lane in lanes)
    return Findings.sum([found, Findings(problems=tuple(problems), notes=(f"{count} crash points",))])


def _lanes(walk: Walk, seed: int, scale: Scale) -> list[Lane]:
    every = points(walk)
    chosen = every if scale is Scale.FULL else [each for each in every if each[1] in SHORT[walk.service]]
    lanes = max(1, len(chosen) // scale.of(1, POINTS_A_LANE))
    return [Lane(walk, dealt) for dealt in shuffled(chosen, lanes, seed)]
