"""What people ask of dead letters: list, get, retry, drop."""

from turngate.deadletter.letters import Found, Letters
from turngate.deadletter.metrics import Counters
from turngate.deadletter.retrying import Retrying
from turngate.jetstream.api import Api, Call
from turngate_contracts.dead import (
    MAX_WHY,
    DeadDecided,
    DeadFound,
    DropDead,
    GetDead,
    ListDead,
    RetryDead,
)
from turngate_contracts.errors import ErrorCode, Refusal


class Requests:
    """The requests of dead letters."""

    def __init__(self, api: Api, letters: Letters, retrying: Retrying, counters: Counters) -> None:
        self._api = api
        self._letters = letters
        self._retrying = retrying
        self._counters = counters

    async def register(self) -> None:
        """Begin to answer."""
        await self._api.add("dead.list", ListDead, self.list_letters)
        await self._api.add("dead.get", GetDead, self.get)
        await self._api.add("dead.retry", RetryDead, self.retry)
        await self._api.add("dead.drop", DropDead, self.drop)

    def list_letters(self, call: Call, request: ListDead) -> None:
        """List letters, the longest unchanged first, a page at a time."""
        self._api.run(call, self._letters.page(request))

    def get(self, call: Call, request: GetDead) -> None:
        """Give a letter with its body."""

        async def load() -> DeadFound:
            found = await self._letters.find(request.letter)
            return DeadFound(found.letter, found.revision)

        self._api.run(call, load())

    def retry(self, call: Call, request: RetryDead) -> None:
        """Send a letter's message out again."""
        self._api.run(call, self._retry(call.caller, request))

    def drop(self, call: Call, request: DropDead) -> None:
        """Remove a letter's body."""
        self._api.run(call, self._drop(call.caller, request))

    async def _retry(self, caller: str, request: RetryDead) -> DeadDecided:
        return self._told(*await self._retrying.retry(request.letter, caller, _why(request.why)))

    async def _drop(self, caller: str, request: DropDead) -> DeadDecided:
        return self._told(*await self._retrying.drop(request.letter, caller, _why(request.why)))

    def _told(self, found: Found, changed: bool) -> DeadDecided:
        if changed:
            self._counters.decided[found.letter.status.value] += 1
        return DeadDecided(self._letters.entry(found), already=not changed)


def _why(text: str) -> str:
    if len(text) > MAX_WHY:
        raise Refusal(
            ErrorCode.INVALID_ARGUMENT,
            f"why has {len(text)} characters; at most {MAX_WHY}",
            field="why",
            size=len(text),
            limit=MAX_WHY,
        )
    return text
