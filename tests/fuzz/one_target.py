"""One target under atheris, in a process of its own: libFuzzer ends the process that it runs in.

Our code is instrumented as it is imported, which takes longer than a short run of a target. So it is imported once, and
the process of each target is a fork of that.
"""

import contextlib
import importlib
import io
import logging
import os
import sys
import tempfile
from pathlib import Path
from typing import Any, Final, NoReturn

_INSTRUMENTED: Final = (
    *("turngate", "turngate_contracts", "turngate_protocol", "nats.protocol", "json", "yaml"),
    *("starlette.formparsers", "starlette.requests", "starlette.datastructures", "python_multipart"),
)
SLOWEST_S: Final = 20
"""An input that takes longer is a finding: a loop without an end, or a cost that grows too fast."""


def instrument() -> None:
    """Import the targets, and our code with them, so that the fuzzer sees which places an input reaches."""
    atheris: Any = importlib.import_module("atheris")
    logging.disable()
    # It names each module on standard error.
    with contextlib.redirect_stderr(io.StringIO()), atheris.instrument_imports(include=list(_INSTRUMENTED)):
        import tests.fuzz.targets  # noqa: F401


def fuzz(name: str, seconds: int, found: Path, findings: Path, log: Path) -> int:
    """Fuzz one target in a fork of this process.

    Args:
        name: the target.
        seconds: how long.
        found: the folder for inputs that reach something new; the next run begins with them.
        findings: what the files of inputs that break a promise begin with.
        log: where libFuzzer writes what it does.

    Returns:
        The exit code of the fork, 0 when nothing was found.
    """
    with tempfile.TemporaryDirectory(prefix="turngate-fuzz-") as work:
        child = os.fork()
        if child:
            return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        # Its end is sudden and tidies nothing up.
        tempfile.tempdir = work
        _be_the_fork(name, seconds, found, findings, log)
    raise AssertionError("libFuzzer ends the process")


def _be_the_fork(name: str, seconds: int, found: Path, findings: Path, log: Path) -> NoReturn:
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    _fuzz(name, seconds, found, findings)
    os._exit(70)  # libFuzzer has ended the process before


def _fuzz(name: str, seconds: int, found: Path, findings: Path) -> None:
    from tests.fuzz.mutation import mutate_json
    from tests.fuzz.targets import BY_NAME, folders

    atheris: Any = importlib.import_module("atheris")
    target = BY_NAME[name]

    def mutated(data: bytes, most: int, seed: int) -> bytes:
        made = mutate_json(data, seed) if target.is_json and seed % 2 else None
        return made if made is not None and len(made) <= most else atheris.Mutate(data, most)

    options: dict[str, Any] = {
        "max_total_time": seconds,
        "max_len": target.largest,
        "timeout": SLOWEST_S,
        "rss_limit_mb": 2048,
        "artifact_prefix": findings,
        "print_final_stats": 1,
    }
    arguments = [f"-{key}={value}" for key, value in options.items()]
    atheris.Setup([sys.argv[0], *arguments, str(found), *map(str, folders(name))], target.run, custom_mutator=mutated)
    atheris.Fuzz()
