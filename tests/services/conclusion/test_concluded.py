"""A task that ended gets its one conclusion, judged where its files are, and its parent is told once."""

from pathlib import Path

from tests.running import System
from tests.services.conclusion.tasks import finished, success


async def test_a_success_whose_files_exist_is_believed(system: System, root: Path):
    runner = await system.client()
    await runner.serve_stat([root])

    await runner.finish_task("parent", finished("t1", success("made.txt"), root))

    found = await runner.conclusion("parent", "t1", wait_ms=10_000)
    assert found.state.conclusion is not None
    assert found.state.conclusion.status == "success"
    assert found.state.gate is not None
    assert found.state.gate.verified_artifacts == ("made.txt",)


async def test_a_success_that_cites_a_missing_file_is_partial_and_says_so(system: System, root: Path):
    runner = await system.client()
    await runner.serve_stat([root])

    await runner.finish_task("parent", finished("t1", success("made.txt", "invented.txt"), root))

    found = await runner.conclusion("parent", "t1", wait_ms=10_000)
    assert found.state.conclusion is not None
    assert found.state.conclusion.status == "partial"
    assert "invented.txt" in found.state.conclusion.warnings[0]
