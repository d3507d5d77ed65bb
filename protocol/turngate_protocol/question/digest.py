"""Canonical JSON, the digests of what was asked, and the ids of requests.

The rule book is the question protocol, byte for byte as the Go original writes it, so that a Go runner and this
system agree on which question is which: keys in declaration order, no white space, empty optional fields left out,
and the five characters that Go escapes for the sake of HTML and JavaScript escaped here too. Nothing random goes into
an id: the same tool call always becomes the same request.
"""

from hashlib import sha256
from typing import Final

import msgspec

from turngate_protocol.question.errors import InvalidQuestionError
from turngate_protocol.question.model import ASK_USER, ASK_USER_TEXT, PROMPT_BYTES, Spec
from turngate_protocol.question.spec import check_identity, check_text, validate_spec

_NUL: Final = "\0"
_ID_DIGITS: Final = 32
_GENERIC: Final = "generic"
# Outside of strings JSON has none of these characters, so replacing them in the whole text is exact.
_GO_ESCAPES: Final = tuple((char.encode(), f"\\u{ord(char):04x}".encode()) for char in "<>&\u2028\u2029")


def canonical_json(value: msgspec.Struct) -> bytes:
    """Return the JSON of `value` as Go's encoder writes it.

    Raises:
        InvalidQuestionError: a text in it is not valid Unicode.
    """
    try:
        data = msgspec.json.encode(value)
    except UnicodeEncodeError:
        raise InvalidQuestionError(
            "text", "holds a lone surrogate, which is not valid Unicode", "leave it out"
        ) from None
    for char, escape in _GO_ESCAPES:
        data = data.replace(char, escape)
    return data


def spec_digest(spec: Spec) -> str:
    """Return the digest of what an agent wants to ask: 64 lower-case hex digits.

    Raises:
        InvalidQuestionError: the spec breaks a rule; only a valid one has a digest.
    """
    validate_spec(spec)
    return sha256(canonical_json(spec)).hexdigest()


def freeform_digest(prompt: str) -> str:
    """Return the digest of a free-form prompt: 64 lower-case hex digits.

    Raises:
        InvalidQuestionError: the prompt is empty, too long or no valid text.
    """
    check_text("prompt", prompt, PROMPT_BYTES)
    return _hash("freeform", prompt)


def structured_request_id(tool_call_id: str, digest: str) -> str:
    """Return the id of the request that an `ask_user` call becomes.

    Args:
        tool_call_id: the id of the call.
        digest: the digest of its spec.

    Raises:
        InvalidQuestionError: the call's id is no identity.
    """
    return _request_id(ASK_USER, tool_call_id, digest)


def freeform_request_id(tool_call_id: str, question: str) -> str:
    """Return the id of the request that an `ask_user_text` call becomes.

    Args:
        tool_call_id: the id of the call.
        question: what it asks.

    Raises:
        InvalidQuestionError: the call's id is no identity, or the question is empty, too long or no valid text.
    """
    check_text("question", question, PROMPT_BYTES)
    return _request_id(ASK_USER_TEXT, tool_call_id, question)


def generic_request_id(tool_call_id: str) -> str:
    """Return the id of the request that an unreadable `ask_user_text` call becomes.

    Raises:
        InvalidQuestionError: the call's id is no identity.
    """
    return _request_id(ASK_USER_TEXT, tool_call_id, _GENERIC)


def _request_id(tool: str, tool_call_id: str, subject: str) -> str:
    check_identity("tool_call_id", tool_call_id)
    return f"q-{_hash(tool, tool_call_id, subject)[:_ID_DIGITS]}"


def _hash(*parts: str) -> str:
    return sha256(_NUL.join(parts).encode()).hexdigest()
