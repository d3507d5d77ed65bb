"""Faults that have a test of their own are run as that test, in a process of its own."""

import asyncio
import os
import re
import sys
from pathlib import Path

from tests.system.faults.findings import Findings

_PASSED = re.compile(r"(\d+) passed")


async def run_tests(directory: Path, *arguments: str, **variables: str) -> Findings:
    """Run tests and count those that passed; whatever else they say of themselves is a problem."""
    log = directory / "pytest.log"
    command = (sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-rN", *arguments)
    with log.open("wb") as out:
        process = await asyncio.create_subprocess_exec(*command, stdout=out, stderr=out, env=os.environ | variables)
        code = await process.wait()
    text = log.read_text(encoding="utf-8", errors="replace")
    passed = _PASSED.search(text)
    problems = () if code == 0 else (f"{' '.join(arguments)} ended with {code}: {text[-2000:]}",)
    return Findings(int(passed[1]) if passed else 0, problems=problems, notes=("operations are tests that passed",))
