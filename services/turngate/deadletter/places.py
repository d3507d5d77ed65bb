"""Where messages are: the streams of one namespace, and single messages in them by their sequence."""

import base64
from typing import Any, Final

from turngate.jetstream.connect import parse_headers
from turngate.jetstream.direct import Stored, read_newest
from turngate.jetstream.request import JetStreamError, Requester
from turngate_contracts.topology import Topology

API_TIMEOUT_MS: Final = 15_000
MESSAGE_NOT_FOUND: Final = 10037


class Places:
    """The streams of one namespace, and what stands in them."""

    def __init__(self, requester: Requester, topology: Topology) -> None:
        self._requester = requester
        self._subjects = topology.subjects
        self._streams: dict[str, dict[str, Any]] = {config["name"]: config for config in topology.streams()}

    def is_bucket(self, stream: str) -> bool:
        """Say whether a stream holds states."""
        return bool(self._subjects.bucket_of(stream))

    def key(self, stream: str, subject: str) -> str:
        """Return the filter of all revisions of the key that a subject of a bucket's stream belongs to."""
        return self._subjects.key_like(self._subjects.bucket_of(stream), subject)

    def is_queue(self, stream: str) -> bool:
        """Say whether an acknowledged message leaves the stream."""
        return bool(self._streams.get(stream, {}).get("retention") == "workqueue")

    def takes(self, stream: str, subject: str) -> bool:
        """Say whether a subject is one of the stream's."""
        return any(_overlaps(each, subject) for each in self._streams.get(stream, {}).get("subjects", ()))

    def queues(self) -> list[str]:
        """Return the names of the work queues."""
        return [name for name in self._streams if self.is_queue(name)]

    async def info(self, stream: str) -> dict[str, Any]:
        """Return what the server says of a stream; raises as `Requester.api`."""
        return await self._requester.api(f"STREAM.INFO.{stream}", timeout_ms=API_TIMEOUT_MS)

    async def load(self, stream: str, sequence: int) -> Stored | None:
        """Return a message as the stream's leader has it, None when it is gone; raises as `Requester.api`."""
        try:
            answer = await self._requester.api(f"STREAM.MSG.GET.{stream}", {"seq": sequence}, API_TIMEOUT_MS)
        except JetStreamError as error:
            if error.err_code == MESSAGE_NOT_FOUND:
                return None
            raise
        message = answer["message"]
        fields = parse_headers(base64.b64decode(message.get("hdrs", "")))[1]
        return Stored(int(message["seq"]), message["subject"], base64.b64decode(message.get("data", "")), fields)

    async def delete(self, stream: str, sequence: int) -> None:
        """Remove a message if it is there; raises as `Requester.api`."""
        try:
            await self._requester.api(
                f"STREAM.MSG.DELETE.{stream}", {"seq": sequence, "no_erase": True}, API_TIMEOUT_MS
            )
        except JetStreamError as error:
            if await self.load(stream, sequence) is not None:
                raise error from None

    async def newest(self, stream: str, subject: str) -> Stored | None:
        """Return the newest message of a subject; raises Unavailable."""
        found = await read_newest(self._requester, stream, [subject])
        return found[0] if found else None


def _overlaps(pattern: str, subject: str) -> bool:
    wanted, given = pattern.split("."), subject.split(".")
    if wanted[-1] == ">":
        wanted = wanted[:-1]
        given = given[: len(wanted)] if len(given) > len(wanted) else []
    return len(wanted) == len(given) and all(a in ("*", b) for a, b in zip(wanted, given, strict=True))
