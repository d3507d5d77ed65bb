"""`turngate esm watch`: an objective drawn in place on a terminal, or told line by line where a program reads.

What happened comes from the events, so nothing is missed and nothing shown twice. What the agent says right now is part
of no state: it comes with the events too, as news, and on a terminal the runners are asked every two seconds as well,
because news may be lost and a runner may be missing.
"""

import argparse
import asyncio
import contextlib
import os
import shutil
import sys
from collections import deque
from collections.abc import AsyncGenerator
from datetime import datetime
from typing import Final

from turngate.cli.commands import NOT_OK, OK
from turngate.cli.connected import default_identity, with_connection
from turngate.cli.esm_shown import Line, Part, Seen, caused, cut, draw, now_ms, panel
from turngate.cli.output import print_json
from turngate.jetstream.connect import Connection
from turngate.jetstream.events import EVERY_KIND, StreamEvent
from turngate.jetstream.provision import STREAM_NOT_FOUND, TopologyMissing
from turngate.jetstream.request import JetStreamError, Requester
from turngate.runner import TurnClient
from turngate.settings import Settings
from turngate.terminal import Terminal
from turngate_contracts import codec
from turngate_contracts.errors import InvalidMessage, TurngateError
from turngate_contracts.progress import RoleProgressed
from turngate_protocol.esm.activity import ActivityKind, activity_of
from turngate_protocol.esm.state import Cause, CauseType, EsmState, causes

REDRAW_S: Final = 0.5
LOOK_S: Final = 2.0
"""How often the runner is asked for what its agent does."""
EVENTS_SHOWN: Final = 8

_RESTING: Final = (ActivityKind.WAITING_FOR_PERSON, ActivityKind.PAUSED)
_OVER: Final = (ActivityKind.COMPLETE, ActivityKind.NONE)


def watch(args: argparse.Namespace) -> int:
    """Follow an objective until it is over; returns the exit code."""

    async def work(connection: Connection, requester: Requester, settings: Settings) -> int:
        identity = settings.identity or default_identity(os.environ)
        client = TurnClient(connection, requester, identity, settings.pool, settings.namespace)
        newest = await _newest(requester, client.subjects.stream("events"))
        found = await client.objectives.get(args.session)
        seen = Seen(found.state, found.activity, found.runners)
        view = _view(args)
        events = client.events(newest, kind=EVERY_KIND, key=args.session)
        try:
            async with asyncio.timeout(args.timeout or None), contextlib.aclosing(events):
                return await _follow(client, seen, events, view, until_rest=args.until_rest)
        except TimeoutError:
            return NOT_OK
        finally:
            view.end()

    return with_connection(args, work)


def new_causes(state: EsmState, since: int) -> list[Cause]:
    """Return what happened after change `since` of a session, oldest first, without the looks of the watchdog."""
    found = {cause.revision: cause for cause in (*causes(state), *state.ignored) if cause.revision > since}
    return [found[at] for at in sorted(found) if found[at].type is not CauseType.WATCHED]


class Lines:
    """One line for each thing that happens, for pipes and programs."""

    redraws = False

    def __init__(self, *, as_json: bool) -> None:
        self._json = as_json
        self._terminal = Terminal()
        self._said = ""

    def begin(self, seen: Seen, lately: list[Cause]) -> None:
        """Say where the objective stands; what happened before is told in lines too, where people read."""
        if self._json:
            self.happened(seen, lately[-1:])
            return
        draw(self._terminal, panel(seen, now_ms()))
        self.happened(seen, lately)

    def happened(self, seen: Seen, new: list[Cause]) -> None:
        """Write what is new."""
        for cause in new:
            if self._json:
                state = seen.state
                fields = {"cause": cause, "activity": seen.activity, "revision": state.revision}
                print_json({"session": state.session_id, **fields, "objective": state.objective})
            else:
                draw(self._terminal, [_dated(cause)])
        sys.stdout.flush()

    def said(self, seen: Seen) -> None:
        """Write what the agent says, for people; a program is told what happens."""
        if not self._json and seen.progress != self._said:
            self._said = seen.progress
            says = Part(f"{_time(now_ms())}  {seen.activity.role} says: ", ("dim",))
            draw(self._terminal, [(says, Part(seen.progress))])
            sys.stdout.flush()

    def draw(self, seen: Seen) -> None:
        """Nothing: only a terminal is drawn on again."""

    def end(self) -> None:
        """Nothing is left open."""


class Panel:
    """A panel that is drawn again in place."""

    redraws = True

    def __init__(self) -> None:
        self._lately: deque[Cause] = deque(maxlen=EVENTS_SHOWN)
        self._drawn = 0

    def begin(self, seen: Seen, lately: list[Cause]) -> None:
        """Draw it for the first time."""
        self.happened(seen, lately)

    def happened(self, seen: Seen, new: list[Cause]) -> None:
        """Draw what is new."""
        self._lately.extend(new)
        self.draw(seen)

    def said(self, seen: Seen) -> None:
        """Draw what the agent says."""
        self.draw(seen)

    def draw(self, seen: Seen) -> None:
        """Draw it over itself, cut to the terminal as it is now."""
        terminal = Terminal()
        size = shutil.get_terminal_size()
        lines: list[Line] = [*panel(seen, now_ms()), (Part("  events", ("dim",)),)]
        lines += [(Part("    "), *_dated(cause)) for cause in self._lately]
        room = max(3, size.lines - 1)
        if len(lines) > room:
            lines = [*lines[: room // 2], *lines[len(lines) - (room - room // 2) :]]
        if self._drawn:
            sys.stdout.write(f"\x1b[{self._drawn}A")
        sys.stdout.write("\r\x1b[J")
        draw(terminal, [cut(line, size.columns - 1) for line in lines])
        sys.stdout.flush()
        self._drawn = len(lines)

    def end(self) -> None:
        """Leave what was drawn last."""
        sys.stdout.flush()


View = Lines | Panel
_News = EsmState | RoleProgressed


def _view(args: argparse.Namespace) -> View:
    return Panel() if sys.stdout.isatty() and not args.json else Lines(as_json=args.json)


async def _follow(
    client: TurnClient, seen: Seen, events: AsyncGenerator[StreamEvent, None], view: View, *, until_rest: bool
) -> int:
    view.begin(seen, new_causes(seen.state, 0)[-EVENTS_SHOWN:])
    changed: asyncio.Queue[_News] = asyncio.Queue()
    reading = asyncio.create_task(_read(events, changed))
    looked = 0.0
    loop = asyncio.get_running_loop()
    try:
        while (code := _code(seen, until_rest=until_rest)) is None:
            news = await _next(changed, reading, REDRAW_S if view.redraws else None)
            if isinstance(news, RoleProgressed):
                if news.role_run == seen.activity.role_run_id:
                    seen = seen._replace(progress=news.progress, tool_calls=news.tool_calls)
                    view.said(seen)
            elif news is not None and news.revision > seen.state.revision:
                new = new_causes(news, seen.state.revision)
                seen = Seen(news, activity_of(news))
                view.happened(seen, new)
                looked = 0.0
            elif view.redraws:
                if loop.time() - looked > LOOK_S:
                    seen, looked = await _look(client, seen), loop.time()
                view.draw(seen)
        return code
    finally:
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)


async def _read(events: AsyncGenerator[StreamEvent, None], changed: "asyncio.Queue[_News]") -> None:
    async for event in events:
        if event.kind == "progress":
            with contextlib.suppress(InvalidMessage):
                changed.put_nowait(codec.decode(event.data, RoleProgressed, "what an agent says"))
            continue
        if event.kind != "objectives":
            continue
        if event.deleted:
            # A session whose state was removed has no objective any more.
            changed.put_nowait(EsmState(event.key, revision=2**53))
            continue
        with contextlib.suppress(InvalidMessage):
            changed.put_nowait(codec.decode(event.data, EsmState, "a session's objective"))


async def _next(
    changed: "asyncio.Queue[_News]", reading: "asyncio.Task[None]", timeout_s: float | None
) -> "_News | None":
    """Return the next news, None when none came in time; raises what reading failed with."""
    getting = asyncio.create_task(changed.get())
    done, _ = await asyncio.wait({getting, reading}, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
    if getting in done:
        return getting.result()
    getting.cancel()
    if reading in done:
        reading.result()
    return None


async def _look(client: TurnClient, seen: Seen) -> Seen:
    """Ask what the agent does right now, or whether anybody could take the role that waits."""
    activity = seen.activity
    if activity.kind not in (ActivityKind.RUNNING, ActivityKind.WAITING_FOR_RUNNER):
        return Seen(seen.state, activity)
    with contextlib.suppress(TurngateError):
        pool = activity.pool or client.pool
        alive = await client.objectives.runners(pool)
        takers = sum(activity.role in runner.roles and not runner.draining for runner in alive)
        for runner in alive:
            for held in runner.held:
                if (held.session, held.role_run) == (seen.state.session_id, activity.role_run_id):
                    return Seen(seen.state, activity, takers, held.progress, held.tool_calls)
        return Seen(seen.state, activity, takers)
    return seen


def _code(seen: Seen, *, until_rest: bool) -> int | None:
    """Return the exit code when it is over, None while it is not."""
    kind = seen.activity.kind
    if kind in _OVER:
        return OK if kind is ActivityKind.COMPLETE else NOT_OK
    return NOT_OK if until_rest and kind in _RESTING else None


async def _newest(requester: Requester, stream: str) -> int:
    try:
        return int((await requester.api(f"STREAM.INFO.{stream}"))["state"]["last_seq"])
    except JetStreamError as error:
        if error.err_code == STREAM_NOT_FOUND:
            raise TopologyMissing(stream) from None
        raise


def _dated(cause: Cause) -> Line:
    return (Part(f"{_time(cause.at)}  ", ("dim",)), *caused(cause))


def _time(at: int) -> str:
    return datetime.fromtimestamp(at / 1000).strftime("%H:%M:%S")  # noqa: DTZ006  a person's own clock
