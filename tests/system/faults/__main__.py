"""`make faults`: every fault against real processes, and a table of those that were survived."""

import argparse
import asyncio
import logging
import random
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.system.faults.rig import Scale
from tests.system.faults.suite import FAULTS, Survived, play
from tests.system.faults.walk.table import WALKS, points


def main() -> int:
    """Play what is wanted; 1 when anything was lost, happened twice, or was otherwise wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.system.faults", description=__doc__)
    parser.add_argument("--full", action="store_true", help="all of each fault, as `make faults` does")
    parser.add_argument("--only", action="append", choices=FAULTS, metavar="NAME", help="one fault; may be repeated")
    parser.add_argument("--seed", type=int, help="what everything is drawn from; a failing one comes again")
    parser.add_argument("--list", action="store_true", help="show the faults and the crash points")
    given = parser.parse_args()
    if given.list:
        _list()
        return 0
    logging.basicConfig(level=logging.ERROR)
    seed = random.SystemRandom().randrange(10**6) if given.seed is None else given.seed
    scale = Scale.FULL if given.full else Scale.SHORT
    played = []
    with tempfile.TemporaryDirectory(prefix="turngate-faults-") as directory:
        for name in given.only or FAULTS:
            print(f"== {name}: seed {seed}", flush=True)
            played.append(asyncio.run(play(name, seed, scale, Path(directory))))
            _tell(played[-1])
    print(_table(played, seed))
    return 0 if all(each.findings.survived for each in played) else 1


def _tell(played: Survived) -> None:
    for note in played.findings.notes:
        print(f"   {note}")
    for problem in played.findings.problems:
        print(f"   WRONG: {problem}")
    print(f"   {'survived' if played.findings.survived else 'NOT SURVIVED'} in {played.seconds:.0f} s", flush=True)


def _table(played: Sequence[Survived], seed: int) -> str:
    lines = [f"\nseed {seed}", f"{'fault':16} {'acknowledged':>12} {'lost':>5} {'twice':>5} {'seconds':>7}  verdict"]
    for each in played:
        found = each.findings
        verdict = "survived" if found.survived else f"FAILED: {len(found.problems)} problems"
        lines.append(
            f"{each.name:16} {found.acknowledged:12,} {found.lost:5} {found.twice:5} {each.seconds:7.0f}  {verdict}"
        )
    survived = sum(each.findings.survived for each in played)
    lines.append(f"{survived} of {len(played)} faults survived")
    return "\n".join(lines)


def _list() -> None:
    for name in FAULTS:
        print(name)
    for walk in WALKS:
        for _, point in points(walk):
            print(f"{walk.service} {point}")


if __name__ == "__main__":
    sys.exit(main())
