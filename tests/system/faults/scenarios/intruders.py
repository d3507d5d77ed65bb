"""Each identity tries every subject, reply subject and header that is not its own; see `test_intruders`."""

from tests.system.faults.findings import Findings
from tests.system.faults.pytested import run_tests
from tests.system.faults.rig import Rig, Scale


async def run(rig: Rig, seed: int, scale: Scale) -> Findings:
    """Run the matrix."""
    return await run_tests(rig.directory, "tests/system/test_intruders.py")
