"""Find the block that a delegated agent closes its run with, and read what it says.

The rules come from the parse section of the specification's conclusion page: the last block counts, missing fields have
their zero value, and a warning never throws anything away: what can't be read as fields becomes the summary as it
stands. No input makes `parse` raise, and its cost grows with the block, not with the prose before it.
"""

from collections.abc import Sequence
from typing import Final

from turngate_protocol.conclusion.model import STATUSES, Conclusion
from turngate_protocol.conclusion.yaml_body import Body, load
from turngate_protocol.conclusion.yaml_scalar import NotStructured
from turngate_protocol.text import has_surrogate, is_blank, trim, visible

OPENING_TAG: Final = "<pando:conclusion>"
CLOSING_TAG: Final = "</pando:conclusion>"
_MAX_QUOTED_CHARS: Final = 60


def parse(raw: str) -> Conclusion | None:
    """Return what the last block of `raw` says, with warnings for whatever was malformed; None when there is no block.

    Args:
        raw: The output of a delegated agent, of any size and content.
    """
    end = raw.rfind(CLOSING_TAG)
    start = raw.rfind(OPENING_TAG, 0, end) if end > 0 else -1
    if start < 0:
        return None
    body = raw[start + len(OPENING_TAG) : end]
    try:
        return _structured(body, load(body))
    except NotStructured as finding:
        return _salvaged(body, [f"the block is not usable YAML and was kept as the summary: {visible(finding.reason)}"])


def carriable(text: str) -> str:
    """Return `text` with each lone surrogate as U+FFFD, so that it can be written as UTF-8."""
    if not has_surrogate(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def quoted(text: str, limit: int = _MAX_QUOTED_CHARS) -> str:
    """Return a short form of model-written `text` for a warning: no line breaks, at most `limit` characters of it."""
    return visible(text if len(text) <= limit else f"{text[:limit]}…")


def _structured(body: str, fields: Body) -> Conclusion:
    warnings: list[str] = []
    status = _status(fields.status, warnings) if fields.status else ""
    confidence = fields.confidence
    # NaN is neither: it compares false with both ends and passes as it is.
    if confidence < 0 or confidence > 1:
        warnings.append(f"confidence {confidence:g} is outside of 0 to 1 and was clamped")
        confidence = 0.0 if confidence < 0 else 1.0
    artifacts = _without_blanks(fields.artifacts, "artifacts", warnings)
    memory_refs = _without_blanks(fields.memory_refs, "memory refs", warnings)
    summary, follow_up = trim(fields.summary), trim(fields.follow_up)
    if not (status or summary or artifacts or memory_refs or follow_up):
        warnings.append("the block has no usable field and was kept as the summary")
        return _salvaged(body, warnings, confidence)
    if not summary:
        warnings.append("the block has no summary")
    return Conclusion(status, summary, artifacts, memory_refs, follow_up, confidence, tuple(warnings))


def _salvaged(body: str, warnings: Sequence[str], confidence: float = 0.0) -> Conclusion:
    return Conclusion(summary=carriable(trim(body)), confidence=confidence, warnings=tuple(warnings))


def _status(written: str, warnings: list[str]) -> str:
    # Python lower-cases the dotted capital I to two characters; the protocol to one.
    status = trim(written).replace("İ", "i").lower()
    if not status or status in STATUSES:
        return status
    warnings.append(f'status "{quoted(trim(written))}" is none of success, partial, failed, blocked')
    return ""


def _without_blanks(refs: tuple[str, ...], what: str, warnings: list[str]) -> tuple[str, ...]:
    if not any(map(is_blank, refs)):
        return refs
    kept = tuple(ref for ref in refs if not is_blank(ref))
    warnings.append(f"{len(refs) - len(kept)} blank {what} were left out")
    return kept
