"""`python -m tests.fuzz [--seconds N] [--only NAME] [--list]`: fuzz the targets, one after the other.

What reaches something new is kept in build/fuzz, and is where the next run begins. A finding is made small and put
into the target's corpus, where `test_corpus` fails on it until it is repaired. The exit code is 1 then.
"""

import argparse
import hashlib
import importlib.util
import re
import sys
import time
from pathlib import Path
from typing import Final, NamedTuple

from tests.fuzz.one_target import fuzz, instrument

BUILD: Final = Path(__file__).parents[2] / "build" / "fuzz"
_EXECUTIONS: Final = re.compile(r"number_of_executed_units: *(\d+)|Done (\d+) runs|^#(\d+)\t", re.MULTILINE)
_COVERED: Final = re.compile(r" cov: (\d+) ")


class Result(NamedTuple):
    """What fuzzing one target came to."""

    name: str
    executions: int
    covered: int
    seconds: float
    findings: list[Path]
    output: str


def main(given: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description="Fuzz what takes foreign bytes.")
    parser.add_argument("--seconds", type=int, default=60, help="for all targets together [60]")
    parser.add_argument("--only", metavar="NAME", action="append", default=[], help="this target; repeatable")
    parser.add_argument("--list", action="store_true", help="name the targets and end")
    args = parser.parse_args(given)
    if importlib.util.find_spec("atheris") is None and not args.list:
        print("fuzzing needs atheris, which runs on Linux: pip install 'turngate[fuzz]', or make fuzz", file=sys.stderr)
        return 2
    if not args.list:
        instrument()
    from tests.fuzz.targets import BY_NAME

    unknown = [name for name in args.only if name not in BY_NAME]
    if unknown:
        parser.error(f"there is no {', '.join(unknown)}; the targets are {', '.join(BY_NAME)}")
    if args.list:
        for name, target in BY_NAME.items():
            print(f"{name:16} {(target.run.__doc__ or '').splitlines()[0]}")
        return 0
    names = args.only or list(BY_NAME)
    results = []
    for name in names:
        results.append(_fuzzed(name, max(1, args.seconds // len(names))))
        print(_row(results[-1]), flush=True)
    return _summary(results)


def _fuzzed(name: str, seconds: int) -> Result:
    (BUILD / name).mkdir(parents=True, exist_ok=True)
    log = BUILD / f"{name}.log"
    before = set(BUILD.glob(f"{name}-*-*"))
    began = time.monotonic()
    code = fuzz(name, seconds, BUILD / name, BUILD / f"{name}-", log)
    output = log.read_text(encoding="utf-8", errors="replace")
    executions = max((int(next(filter(None, found))) for found in _EXECUTIONS.findall(output)), default=0)
    covered = max(map(int, _COVERED.findall(output)), default=0)
    findings = sorted(set(BUILD.glob(f"{name}-*-*")) - before)
    if code and not findings:
        raise SystemExit(f"{name} could not be fuzzed:\n{output[-4000:]}")
    return Result(name, executions, covered, time.monotonic() - began, findings, output)


def _row(result: Result) -> str:
    verdict = f"{len(result.findings)} FOUND" if result.findings else "nothing found"
    return (
        f"{result.name:16} {result.executions:>9,} inputs in {result.seconds:5.1f} s, "
        f"{result.covered:>6,} places reached, {verdict}"
    )


def _summary(results: list[Result]) -> int:
    total = sum(result.executions for result in results)
    found = [result for result in results if result.findings]
    for result in found:
        print(f"\n{result.output[-3000:]}", file=sys.stderr)
        for finding in result.findings:
            print(f"{result.name}: {_kept(result.name, finding)}", file=sys.stderr)
    print(f"{total:,} inputs for {len(results)} targets, {sum(len(result.findings) for result in found)} findings")
    return 1 if found else 0


def _kept(name: str, finding: Path) -> str:
    """Make a finding small and put it into the corpus; return what to say of it."""
    from tests.fuzz.shrinking import fault_of, shrunk
    from tests.fuzz.targets import BY_NAME, CORPUS

    data = finding.read_bytes()
    if finding.name.startswith(f"{name}-crash-"):
        data = shrunk(BY_NAME[name].run, data)
        fault = fault_of(BY_NAME[name].run, data) or "it does not fail in a process of its own"
    else:
        fault = "it takes too long, or too much memory"
    path = CORPUS / name / f"found-{hashlib.sha256(data).hexdigest()[:12]}"
    path.write_bytes(data)
    return f"{fault}\n  kept in {path}; repair it, then run pytest tests/fuzz"


sys.exit(main(sys.argv[1:]))
