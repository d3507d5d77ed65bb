"""A runner's host as a process: it answers for the files under its root, and tells the tasks that it is given.

Each line of its standard input is a JSON object with a session and a task record; it says `told` once that is stored.
A deaf one takes questions about its files and never answers them. It ends when its standard input does.
"""

import argparse
import asyncio
import json
import sys
import threading
from collections.abc import Sequence

import msgspec

from turngate.evidence import Evidence
from turngate.runner import TurnClient
from turngate_protocol.conclusion import StatAnswer, Task


async def main(arguments: argparse.Namespace) -> None:
    """Serve until standard input ends."""
    client = await TurnClient.connect(
        arguments.identity, pool="pool-1", url=arguments.url, namespace=arguments.namespace, timeout_ms=30_000
    )
    async with client:
        await client.serve_stat([arguments.root])
        say(ready=True)
        loop = asyncio.get_running_loop()
        while line := await loop.run_in_executor(None, sys.stdin.readline):
            told = json.loads(line)
            stored = await client.finish_task(told["session"], msgspec.convert(told["task"], Task))
            say(told=stored.task)


def say(**fact: object) -> None:
    """Print one fact as a line."""
    sys.stdout.write(f"{json.dumps(fact)}\n")
    sys.stdout.flush()


def never(_self: Evidence, _paths: Sequence[str], *, hashes: bool = False) -> list[StatAnswer]:
    """Look for ever."""
    threading.Event().wait()
    return []


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    for name in ("identity", "url", "namespace", "root"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--deaf", action="store_true")
    given = parser.parse_args()
    if given.deaf:
        Evidence.look = never  # type: ignore[assignment,method-assign]
    asyncio.run(main(given))
