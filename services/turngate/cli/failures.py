"""What each kind of error means to a user: one sentence with the next step, an exit code, and a body for scripts."""

from typing import Any, NamedTuple

from turngate.cli.commands import NO_SERVER, NOT_OK, USAGE, UsageError
from turngate.cli.config import ConfigError
from turngate.jetstream._embedded_errors import EmbeddedServerError
from turngate.logs import without_secrets
from turngate_contracts.errors import ErrorCode, InvalidId, TurngateError, Unavailable
from turngate_protocol.text import visible

_DOCTOR = "; `turngate doctor` says what is wrong"


class Failure(NamedTuple):
    """An error as the user learns of it."""

    code: int
    sentence: str
    body: dict[str, Any]


def explain(error: Exception) -> Failure:
    """Return what to tell the user of an error, whatever it is."""
    if isinstance(error, (ConfigError, UsageError)):
        return _failure(USAGE, str(error), {"code": "usage", "message": str(error)})
    if isinstance(error, TurngateError):
        return _of_ours(error)
    if isinstance(error, EmbeddedServerError):
        return _failure(NOT_OK, str(error), {"code": "server_not_started", "message": str(error)})
    if _is_jetstream_error(error):
        return _failure(NOT_OK, f"{error}{_DOCTOR}", {"code": ErrorCode.UNAVAILABLE.value, "message": str(error)})
    if isinstance(error, OSError) and error.strerror:
        what = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
        return _failure(NOT_OK, what, {"code": "system", "message": what})
    text = f"{type(error).__name__}: {error}"
    return _failure(
        NOT_OK,
        f"an error of Turngate's own, please report it ({text}); TURNGATE_LOG_LEVEL=debug shows where",
        {"code": ErrorCode.INTERNAL.value, "message": text},
    )


def _of_ours(error: TurngateError) -> Failure:
    from turngate_contracts.codec import to_builtins

    body = to_builtins(error.body())
    sentence = error.message
    if isinstance(error, InvalidId) or error.code is ErrorCode.INVALID_ID:
        return _failure(USAGE, sentence, body)
    if not isinstance(error, Unavailable):
        return _failure(NOT_OK, sentence, body)
    # Where no server answers, the sentence says what to do; the doctor could not say more.
    known = any(
        words in sentence for words in ("turngate up", "turngate auth", "turngate provision", "TURNGATE_", "its log")
    )
    return _failure(NO_SERVER, sentence if known else f"{sentence}{_DOCTOR}", body)


def _failure(code: int, sentence: str, body: dict[str, Any]) -> Failure:
    body["message"] = without_secrets(str(body.get("message", "")))
    if "url" in body.get("details", {}):
        body["details"]["url"] = without_secrets(str(body["details"]["url"]))
    # A server's log lines may come with the sentence; each stays a line.
    lines = without_secrets(sentence).split("\n")
    return Failure(code, "\n".join(visible(line) for line in lines), body)


def _is_jetstream_error(error: Exception) -> bool:
    # By name: where NATS was not imported, the error can't be one of its.
    return any(kind.__name__ == "JetStreamError" for kind in type(error).__mro__)
