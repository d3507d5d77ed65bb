"""Where the files are that a conclusion cites: on its runner's host, or in a directory that is shared with it.

The runner is asked, because only its host knows. It may be gone, slow or hostile: whatever it does, the question ends
within its timeout, an answer counts only if it is about this task and complete, and what nobody answered is left out.
Our own lost connection is no silence of the runner's: it raises, and the question is asked again later.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, Protocol

from turngate.evidence import Evidence
from turngate.jetstream.request import NoResponders, Reply, Requester, RequestTimeout
from turngate_contracts import codec
from turngate_contracts.errors import ErrorBody, ErrorCode, Refusal, TurngateError, Unavailable
from turngate_contracts.headers import SCHEMA, block
from turngate_contracts.messages import SCHEMAS
from turngate_contracts.subjects import Subjects
from turngate_contracts.tasks import MAX_PATH_BYTES, MAX_STAT_BYTES, MAX_STAT_PATHS, PathsStated, StatPaths
from turngate_protocol.conclusion import RefState, StatAnswer
from turngate_protocol.conclusion.record import TaskConclusion
from turngate_protocol.text import byte_length

log = logging.getLogger(__name__)

RETRY_S: Final = 0.2
"""After what a runner is asked again that is not there, or busy, within the timeout."""
_HEAD: Final = block({SCHEMA: SCHEMAS[StatPaths]})
_MAX_SIZE: Final = 2**63


class Files(Protocol):
    """Somewhere to look for files."""

    async def look(self, state: TaskConclusion, paths: Sequence[str], hashes: bool) -> Mapping[str, StatAnswer]:
        """Return what is known of paths; those without an answer are left out.

        Raises:
            Unavailable: our own connection is down; nothing is known of the files.
        """


class RunnerFiles:
    """Asks the runner that ran the task."""

    def __init__(
        self, requester: Requester, subjects: Subjects, timeout_ms: int, on_silence: Callable[[], None]
    ) -> None:
        """Make it.

        Args:
            requester: the connection's requests.
            subjects: the namespace.
            timeout_ms: how long all of a task's files may take together.
            on_silence: called for each task about which not everything was answered.
        """
        self._requester = requester
        self._subjects = subjects
        self._timeout_s = timeout_ms / 1000
        self._on_silence = on_silence

    async def look(self, state: TaskConclusion, paths: Sequence[str], hashes: bool) -> Mapping[str, StatAnswer]:
        """Ask in batches until all are answered or the time is over; raises as `Files` says."""
        deadline = asyncio.get_running_loop().time() + self._timeout_s
        too_long = {path for path in paths if byte_length(path) > MAX_PATH_BYTES}
        answers = dict.fromkeys(too_long, StatAnswer(RefState.UNCHECKABLE))
        for batch in _batches([path for path in paths if path not in too_long]):
            found = await self._ask(state, StatPaths(state.session, state.task, batch, hashes), deadline)
            if found is None:
                log.warning("%s did not answer about %d files of %s", state.runner, len(batch), state.task)
                self._on_silence()
                break
            answers.update(zip(batch, map(_plausible, found), strict=True))
        return answers

    async def _ask(self, state: TaskConclusion, request: StatPaths, deadline: float) -> Sequence[StatAnswer] | None:
        loop = asyncio.get_running_loop()
        subject, body = self._subjects.runner_stat(state.runner), codec.encode(request)
        while (left_s := deadline - loop.time()) > 0:
            try:
                return await self._once(subject, body, request, max(1, int(left_s * 1000)))
            except RequestTimeout:
                return None
            except NoResponders:
                pass  # gone, or connecting again
            except Unavailable:
                raise
            except TurngateError as error:
                if error.code is not ErrorCode.OVERLOADED:
                    log.warning("%s can't be asked about files: %s", state.runner, error)
                    return None
            await asyncio.sleep(min(RETRY_S, left_s))
        return None

    async def _once(self, subject: str, body: bytes, request: StatPaths, timeout_ms: int) -> Sequence[StatAnswer]:
        future: asyncio.Future[Sequence[StatAnswer]] = asyncio.get_running_loop().create_future()

        def on_reply(reply: Reply | Exception) -> bool:
            if future.done():
                return False
            try:
                found = _answers(reply, request)
            except Exception as error:  # noqa: BLE001  it is the waiter's, who would wait for ever without it
                future.set_exception(error)
                return False
            if found is None:
                log.warning("an answer on %s is not about task %s and was ignored", subject, request.task)
                return True
            future.set_result(found)
            return False

        self._requester.request_nowait(subject, body, on_reply, _HEAD, timeout_ms)
        return await future


class SharedFiles:
    """Looks into a directory that this host shares with the runners, under the same path."""

    def __init__(self, directory: str | Path, timeout_ms: int) -> None:
        """Make it.

        Args:
            directory: the directory's absolute path; files outside of it are uncheckable.
            timeout_ms: how long all of a task's files may take together.

        Raises:
            RootUnusable: it is no directory.
        """
        self._evidence = Evidence((directory,))
        self._timeout_s = timeout_ms / 1000

    async def look(self, state: TaskConclusion, paths: Sequence[str], hashes: bool) -> Mapping[str, StatAnswer]:
        """Look, in a thread: a network file system that hangs ends in no answer."""
        looking = asyncio.to_thread(self._evidence.look, paths, hashes=hashes)
        try:
            async with asyncio.timeout(self._timeout_s):
                return dict(zip(paths, await looking, strict=True))
        except TimeoutError:
            log.warning("the shared directory did not answer about %d files of %s", len(paths), state.task)
            return {}


def _batches(paths: Sequence[str]) -> Iterator[tuple[str, ...]]:
    batch: list[str] = []
    size = 0
    for path in paths:
        size += byte_length(path)
        if batch and (len(batch) >= MAX_STAT_PATHS or size > MAX_STAT_BYTES):
            yield tuple(batch)
            batch, size = [], byte_length(path)
        batch.append(path)
    if batch:
        yield tuple(batch)


def _answers(reply: Reply | Exception, request: StatPaths) -> Sequence[StatAnswer] | None:
    """Return the answers of a reply; None when it is none to this request.

    Raises:
        Exception: what the request failed with, or what the runner answered instead.
    """
    if isinstance(reply, Exception):
        raise reply
    if b"Nats-Service-Error" in reply.head:
        error = codec.decode(reply.body, ErrorBody, "an error")
        raise Refusal(error.code, error.message)
    stated = codec.decode(reply.body, PathsStated, "a PathsStated")
    complete = len(stated.answers) == len(request.paths)
    return stated.answers if complete and (stated.session, stated.task) == (request.session, request.task) else None


def _plausible(answer: StatAnswer) -> StatAnswer:
    """Return an answer as it may be shown: a size that no file has says nothing."""
    if answer.size is None or 0 <= answer.size < _MAX_SIZE:
        return answer
    return StatAnswer(answer.state, None, answer.mtime_ms, answer.hash)
