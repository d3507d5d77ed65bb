"""Supervisors, runners and the server are killed at random while objectives run; see `test_supervisor_survives`."""

from tests.system.faults.findings import Findings
from tests.system.faults.pytested import run_tests
from tests.system.faults.rig import Rig, Scale


async def run(rig: Rig, seed: int, scale: Scale) -> Findings:
    """Run the test of it, in its full size where all is wanted."""
    chaos = {"TURNGATE_TEST_CHAOS": "full" if scale is Scale.FULL else "", "TURNGATE_TEST_SEED": str(seed)}
    return await run_tests(rig.directory, "tests/system/test_supervisor_survives.py", **chaos)
