"""`python -m tests.vectors FILE...`: run vector files, print `N passed, M failed` and the ids that failed."""

import sys
import traceback
from pathlib import Path

from tests.vectors import check, load


def main(files: list[str]) -> int:
    if not files:
        print("usage: python -m tests.vectors FILE...", file=sys.stderr)
        return 2
    passed, failed = 0, []
    for name in files:
        for vector in load(Path(name)):
            try:
                problem = check(vector)
            except Exception:  # noqa: BLE001  a vector that raises is a failed vector
                problem = traceback.format_exc()
            if problem is None:
                passed += 1
            else:
                failed.append(vector["id"])
                print(f"{vector['id']} {vector['op']}: {problem}", file=sys.stderr)
    for name in failed:
        print(name)
    print(f"{passed} passed, {len(failed)} failed")
    return 1 if failed else 0


sys.exit(main(sys.argv[1:]))
