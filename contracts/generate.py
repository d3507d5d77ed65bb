"""Write `asyncapi.yaml`, `schemas/` and `examples/` anew beside this file: `make contracts`.

The package that derives them does no I/O, so this script is outside of it.
"""

import sys
from pathlib import Path

from turngate_contracts.documents import FOLDERS, files

HERE = Path(__file__).parent


def main() -> int:
    """Write what has changed, remove what is no longer made, and say how many files that were."""
    wanted = files()
    touched = 0
    for folder in FOLDERS:
        for old in (HERE / folder).glob("*.json"):
            if f"{folder}/{old.name}" not in wanted:
                old.unlink()
                touched += 1
    for name, text in wanted.items():
        path = HERE / name
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        touched += 1
    sys.stdout.write(f"{len(wanted)} files, {touched} changed\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
