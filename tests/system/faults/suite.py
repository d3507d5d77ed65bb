"""The faults by name, in the order in which they are run, and running one of them."""

import importlib
import time
from pathlib import Path
from typing import Final

from msgspec import Struct

from tests.system.faults.findings import Findings
from tests.system.faults.rig import Scale, rig

FAULTS: Final = (
    "sizes",
    "poison",
    "three_times",
    "killed_service",
    "killed_server",
    "server_away",
    "stopped_server",
    "stopped_runner",
    "proxied",
    "reconnecting",
    "paused_ui",
    "clock_off",
    "killed_restore",
    "killed_roles",
    "intruders",
    "killed_leaders",
    "crash_points",
)
"""Each is a module of `scenarios`, whose first line says what happens."""

TESTED_ELSEWHERE: Final = {
    "three_times",
    "killed_service",
    "killed_server",
    "killed_roles",
    "intruders",
    "killed_leaders",
}
"""Those that tests of their own play in every run."""


class Survived(Struct, frozen=True):
    """One line of the summary: what came of a fault, and how long it took in seconds."""

    name: str
    findings: Findings
    seconds: float


async def play(name: str, seed: int, scale: Scale, directory: Path) -> Survived:
    """Play one fault on a system of its own; whatever goes wrong is among its findings."""
    scenario = importlib.import_module(f"tests.system.faults.scenarios.{name}")
    began = time.monotonic()
    try:
        async with rig(directory / name) as made:
            findings = await scenario.run(made, seed, scale)
    except Exception as error:  # noqa: BLE001  the other faults are still to be played
        findings = Findings(problems=(f"{type(error).__name__}: {error}"[:3000],))
    return Survived(name, findings, time.monotonic() - began)
