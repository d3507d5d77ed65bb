"""A short form of each fault that no test of its own plays; `make faults` plays all of them in full.

The seed is printed; TURNGATE_TEST_SEED repeats it.
"""

import os
import random
from pathlib import Path

import pytest

from tests.system.faults.rig import Scale
from tests.system.faults.suite import FAULTS, TESTED_ELSEWHERE, play

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.mark.parametrize("name", [name for name in FAULTS if name not in TESTED_ELSEWHERE])
async def test_nothing_is_lost_and_nothing_happens_twice(name: str, tmp_path: Path):
    seed = int(os.environ.get("TURNGATE_TEST_SEED", random.randrange(10**6)))
    print(f"{name}: seed {seed}")

    played = await play(name, seed, Scale.SHORT, tmp_path)

    assert played.findings.problems == ()
    assert (played.findings.lost, played.findings.twice) == (0, 0)
    assert played.findings.acknowledged > 0
