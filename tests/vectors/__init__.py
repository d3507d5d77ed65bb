"""The conformance vectors: every line of every file is a test.

A suite module (`report`, `question`, …) offers `run(op, input) -> actual`, and may offer
`same(op, expect, actual) -> bool` where equality is not enough (NaN, texts of the software's own).
"""

import importlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
SHARED = HERE.parents[2] / "shared" / "vectors"


def vector_file(suite: str) -> Path:
    """The newest vectors where a checkout has them beside it, else the copy kept here."""
    shared = SHARED / f"{suite}.jsonl"
    return shared if shared.exists() else HERE / f"{suite}.jsonl"


def excused() -> set[str]:
    """Ids that EXCUSED.md lists, each with its reason."""
    return set(re.findall(r"^- `([a-z]+-\d+)`: \S", (HERE / "EXCUSED.md").read_text(), re.MULTILINE))


def load(path: Path) -> Iterator[dict[str, Any]]:
    # Only "\n" ends a line: values hold U+0085 and U+2028, which str.splitlines would cut at.
    for line in path.read_text(encoding="ascii").split("\n"):
        if line:
            yield json.loads(line)


def check(vector: dict[str, Any]) -> str | None:
    """Run one vector; return None when it passes, else what came out instead."""
    suite = importlib.import_module(f"tests.vectors.{vector['id'].rsplit('-', 1)[0]}")
    actual = suite.run(vector["op"], vector["input"])
    expect = vector["expect"]
    same = suite.same(vector["op"], expect, actual) if hasattr(suite, "same") else actual == expect
    return None if same else f"expected {json.dumps(expect)[:2000]}\n  actual {json.dumps(actual)[:2000]}"
