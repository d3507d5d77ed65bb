import pytest

from turngate_protocol.esm import FailureKind, classify_failure, is_retryable_transport, is_usage_limit


@pytest.mark.parametrize(
    "text",
    [
        "Usage limit reached",
        "429 Rate Limit",
        "exceeded your current QUOTA",
        "insufficient_quota",
        "RESOURCE_EXHAUSTED",
        "check your billing details",
        "Too Many Requests",
        "BİLLING",
    ],
)
def test_these_are_usage_limits(text):
    assert is_usage_limit(text)
    assert classify_failure(FailureKind.ERROR, text) is FailureKind.USAGE_LIMIT


@pytest.mark.parametrize("text", ["", "exit status 1", "the rate is limited", "out of memory"])
def test_these_are_no_usage_limits(text):
    assert not is_usage_limit(text)


@pytest.mark.parametrize(
    "problem",
    [
        "dial tcp: connection refused",
        "read: connection reset by peer",
        "i/o timeout",
        "operation timed out",
        "503 Service Unavailable",
        "status 502",
    ],
)
def test_a_request_that_did_not_get_through_is_transport(problem):
    assert is_retryable_transport(f"Send Request: {problem}")
    assert classify_failure(FailureKind.ERROR, f"send request: {problem}") is FailureKind.TRANSPORT


@pytest.mark.parametrize(
    "text",
    [
        "connection refused",
        "send request: 401 unauthorized",
        "send request: context canceled (connection reset)",
        "send request: timeout: context deadline exceeded",
        "send request: invalid header 15034",
    ],
)
def test_these_are_not_transport(text):
    assert not is_retryable_transport(text)


def test_a_limit_that_looks_like_a_broken_wire_is_a_limit():
    assert classify_failure(FailureKind.ERROR, "send request: 503: quota exceeded") is FailureKind.USAGE_LIMIT


@pytest.mark.parametrize("kind", [kind for kind in FailureKind if kind is not FailureKind.ERROR])
def test_a_runner_that_knows_better_is_believed(kind):
    assert classify_failure(kind, "quota") is kind
