"""What the demo's runner processes share: their arguments, their end, and how they say what they see.

Each line of standard output is one fact as JSON. A process ends when its standard input does.
"""

import argparse
import asyncio
import sys
from collections.abc import Awaitable, Callable
from typing import Any

from turngate_contracts import codec
from turngate_contracts.errors import TurngateError

Main = Callable[[argparse.Namespace, "asyncio.Future[None]"], Awaitable[None]]


def say(**fact: Any) -> None:
    """Print one fact."""
    sys.stdout.write(codec.encode(fact).decode() + "\n")
    sys.stdout.flush()


def host(module: str, main: Main) -> int:
    """Run `main` until it returns, and return the exit code.

    Args:
        module: whose process it is, for its help.
        main: given the arguments, and a future that is done when the process should end.
    """
    parser = argparse.ArgumentParser(prog=f"python -m turngate.demo.{module}")
    parser.add_argument("--identity", required=True)
    parser.add_argument("--pool", required=True)
    parser.add_argument("--url", required=True)
    parser.add_argument("--namespace", required=True)
    parser.add_argument("--pace", type=float, default=0.4)
    args = parser.parse_args()

    async def run() -> None:
        ended = asyncio.create_task(asyncio.to_thread(sys.stdin.buffer.read))
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        ended.add_done_callback(lambda _: None if done.done() else done.set_result(None))
        await main(args, done)

    try:
        asyncio.run(run())
    except TurngateError as error:
        say(kind="error", message=f"{args.identity}: {error.message}")
        return 1
    except KeyboardInterrupt:
        return 130
    return 0
