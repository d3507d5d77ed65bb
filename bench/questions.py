"""A question's round trip: asked, answered in the console, and in the hands of the runner that waits.

The answer is the form that a browser sends, to a console in a process of its own; the runner waits as runners do. The
same answer by the SDK stands beside it, and so does a no-op that keeps no question: it tells the runner at once.
"""

import asyncio
import re
import secrets
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, NamedTuple

import httpx

from bench.console import serving
from bench.noop import CHOICE, QUESTION
from bench.options import Options
from bench.rig import BenchmarkFailed, Rig, rig
from bench.rows import Row, Target, median_row, paired
from turngate.process import run as run_loop
from turngate.runner import TurnClient
from turngate_contracts.topology import Durability
from turngate_protocol.question import Answer, Request

NAME: Final = "questions"

_REACHES: Final = Target(20.0)
_CSRF: Final = re.compile(r'name="csrf" value="([0-9a-f]{64})"')
_WARM_UP: Final = 5
_PERSON_S: Final = 0.02
"""How long a person thinks at least: until then the runner waits for nothing but the answer."""

Answering = Callable[[str, Request], Awaitable[float]]
"""Answers a session's question, and returns when it began to."""


class Trip(NamedTuple):
    """How long asking took, and how long the answer until the runner had it, in ms."""

    asked: float
    answered: float


def run(options: Options) -> list[Row]:
    """Measure both durabilities."""
    rows: list[Row] = []
    for durability in Durability:
        with (
            rig("noop-questions", durability) as noop,
            rig("validation", durability) as real,
            serving(real) as (port, _),
        ):
            rows += _rows(durability.value, *run_loop(_measure(noop, real, port, options.latency_turns)))
    return rows


async def _measure(noop: Rig, real: Rig, port: int, times: int) -> tuple[list[Trip], list[Trip], list[Trip]]:
    fast, by_sdk, in_console = list[Trip](), list[Trip](), list[Trip]()
    async with _Pair(noop) as ceiling, _Pair(real) as pair, _Form(port) as form:
        for number in range(times + _WARM_UP):
            trips = (await ceiling.trip(ceiling.answer), await pair.trip(pair.answer), await pair.trip(form.answer))
            if number >= _WARM_UP:
                for found, trip in zip((fast, by_sdk, in_console), trips, strict=True):
                    found.append(trip)
    return fast, by_sdk, in_console


def _rows(name: str, fast: Sequence[Trip], by_sdk: Sequence[Trip], in_console: Sequence[Trip]) -> list[Row]:
    asking, answering = f"{name}: asked, no-op", f"{name}: answered by the SDK to the runner has it, no-op"
    asks = [trip.asked for trip in (*by_sdk, *in_console)]
    ceiling, sdk = [trip.answered for trip in fast], [trip.answered for trip in by_sdk]
    console = [trip.answered for trip in in_console]
    return [
        median_row(NAME, asking, [trip.asked for trip in fast], "ms"),
        median_row(NAME, f"{name}: asked", asks, "ms", ceiling=asking),
        median_row(NAME, answering, ceiling, "ms"),
        median_row(NAME, f"{name}: answered by the SDK to the runner has it", sdk, "ms", ceiling=answering),
        median_row(
            NAME, f"{name}: answered in the console to the runner has it", console, "ms", _REACHES, ceiling=answering
        ),
        median_row(NAME, f"{name}: answered by the SDK / no-op", paired(sdk, ceiling)),
    ]


class _Pair:
    """A runner that asks and waits, and a person who answers by the SDK."""

    def __init__(self, on: Rig) -> None:
        self._url = on.settings.nats_url

    async def __aenter__(self) -> "_Pair":
        self._runner = await TurnClient.connect("bench", pool="bench", url=self._url)
        self._person = await TurnClient.connect("ann", pool="bench", url=self._url)
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self._runner.close()
        await self._person.close()

    async def trip(self, answer: Answering) -> Trip:
        """Ask, have it answered, and wait for the answer.

        Raises:
            BenchmarkFailed: the question was not asked, or came out otherwise.
        """
        session = f"q-{secrets.token_hex(6)}"
        began = time.perf_counter()
        asked = await self._runner.ask(QUESTION, session)
        took = time.perf_counter() - began
        if asked.pending is None:
            raise BenchmarkFailed(f"nothing was asked: {asked}")
        waiting = asyncio.create_task(self._waited(asked.pending.request, session))
        await asyncio.sleep(_PERSON_S)
        answered = await answer(session, asked.pending.request)
        return Trip(took * 1000, (await waiting - answered) * 1000)

    async def answer(self, session: str, request: Request) -> float:
        """Answer by the SDK."""
        began = time.perf_counter()
        await self._person.questions.resolve(session, request, answers=[Answer((CHOICE,))])
        return began

    async def _waited(self, request: Request, session: str) -> float:
        outcome = await self._runner.wait(request, session, timeout_ms=30_000)
        had = time.perf_counter()
        if outcome.resolution is None or outcome.resolution.answers != (Answer((CHOICE,)),):
            raise BenchmarkFailed(f"the runner got another outcome: {outcome}")
        return had


class _Form:
    """A browser that shows the question's page and sends its form."""

    def __init__(self, port: int) -> None:
        self._http = httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=20)

    async def __aenter__(self) -> "_Form":
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self._http.aclose()

    async def answer(self, session: str, request: Request) -> float:
        """Show the page, and then send the form; only the latter counts."""
        page = f"/questions/{session}"
        csrf = _CSRF.search((await self._http.get(page)).text)
        if csrf is None:
            raise BenchmarkFailed(f"{page} has no form")
        fields = {"csrf": csrf[1], "id": request.id, "digest": request.schema_digest, "choice-0": CHOICE}
        began = time.perf_counter()
        said = await self._http.post(f"{page}/resolve", data=fields, headers={"accept": "application/json"})
        if said.status_code != httpx.codes.OK:
            raise BenchmarkFailed(f"the console refused an answer: {said.text[:300]}")
        return began
