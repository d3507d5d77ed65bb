"""How the vectors of the question protocol are run."""

from typing import Any

import msgspec

from turngate_protocol.question import (
    QuestionError,
    Request,
    Resolution,
    Spec,
    encode_resolution,
    request_from_call,
    spec_digest,
    validate_resolution,
    validate_resolution_shape,
)

_REFUSED = (QuestionError, msgspec.ValidationError)


def _digest(given: dict[str, Any]) -> dict[str, Any]:
    return {"digest": spec_digest(msgspec.convert(given["spec"], Spec))}


def _request_from_call(given: dict[str, Any]) -> dict[str, Any]:
    request = request_from_call(given["name"], given["id"], given["args"])
    wire: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(request))
    return {"kind": ""} | wire


def _validate_resolution(given: dict[str, Any]) -> dict[str, Any]:
    request = msgspec.convert(given["request"], Request)
    validate_resolution(request, msgspec.convert(given["resolution"], Resolution))
    return {"ok": True}


def _validate_shape(given: dict[str, Any]) -> dict[str, Any]:
    validate_resolution_shape(msgspec.convert(given["resolution"], Resolution))
    return {"ok": True}


def _encode(given: dict[str, Any]) -> dict[str, Any]:
    return {"encoded": encode_resolution(msgspec.convert(given["resolution"], Resolution))}


_OPERATIONS = {
    "digest": (_digest, {"error": True}),
    "request_from_call": (_request_from_call, {"error": True}),
    "validate_resolution": (_validate_resolution, {"ok": False}),
    "validate_resolution_shape": (_validate_shape, {"ok": False}),
    "encode_resolution": (_encode, {"error": True}),
}


def run(op: str, given: dict[str, Any]) -> dict[str, Any]:
    operation, refused = _OPERATIONS[op]
    try:
        return operation(given)
    except _REFUSED:
        return dict(refused)
