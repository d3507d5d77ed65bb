"""The conclusion vectors: the file checks that the package leaves to its caller are made here, in a fresh directory."""

import math
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from turngate_protocol.conclusion import (
    Conclusion,
    GateOptions,
    GateResult,
    Project,
    RefState,
    Resolver,
    Resolvers,
    StatAnswer,
    Task,
    artifact_resolver,
    enrich,
    format_for_parent,
    parse,
    refs_to_check,
    verify,
)

BASE = "{BASE}"


def run(op: str, given: dict[str, Any]) -> Any:
    return OPS[op](given)


def run_parse(given: dict[str, Any]) -> Any:
    found = parse(given["raw"])
    return {"found": False} if found is None else {"found": True, **model_fields(found)}


def run_enrich(given: dict[str, Any]) -> Any:
    if given["task"] is None:
        return {"conclusion": None}
    task, conclusion = enrich(
        msgspec.convert(given["task"], Task),
        now_ms=1_700_000_000_000,
        synthesize_fallback=given["synthesize_fallback"],
        projects=msgspec.convert(given["projects"], dict[str, Project] | None),
    )
    shown = None if conclusion is None else {**model_fields(conclusion), "synthesized": conclusion.synthesized}
    return {"conclusion": shown, "project_id": task.project_id, "project_name": task.project_name}


def run_verify(given: dict[str, Any]) -> Any:
    if given["conclusion"] is None:
        return gate_fields(GateResult(), "")
    with directory(dict.fromkeys(given["base_dir_files"], 0)) as base:
        cited = [ref.replace(BASE, base) for ref in given["conclusion"]["artifacts"]]
        conclusion = msgspec.convert({**given["conclusion"], "artifacts": cited}, Conclusion)
        # The vectors come from a gate that takes `path:12` for a file's name; ours does so by option only.
        options = GateOptions(disabled=given["disabled"], base_dir=base if given["base_dir"] else "", locations=False)
        asked = refs_to_check(conclusion, options)
        known = given["memory_known"]
        memory = (
            None
            if known is None
            else {ref: RefState.PRESENT if ref in known else RefState.MISSING for ref in asked.memory_refs}
        )
        judged, result = verify(conclusion, {path: stat(path) for path in asked.paths}, memory, options=options)
        return {
            **gate_fields(result, base),
            "status": judged.status,
            "warnings_count": len(judged.warnings),
        }


def run_format(given: dict[str, Any]) -> Any:
    maps = given["resolve"] or {}
    resolvers = Resolvers(artifacts=by_map(maps.get("artifacts")), memory=by_map(maps.get("memory")))
    return {
        "text": format_for_parent(
            msgspec.convert(given["task"], Task | None),
            msgspec.convert(given["conclusion"], Conclusion | None),
            resolvers if given["resolve"] is not None else None,
        )
    }


def run_resolve(given: dict[str, Any]) -> Any:
    with directory(given["base_dir_files"]) as base:
        refs = [ref.replace(BASE, base) for ref in given["refs"]]
        base_dir = base if given["base_dir"] else ""
        answers = {path: stat(path) for ref in refs for path in (ref, f"{base}/{ref.removeprefix('./')}")}
        resolve = artifact_resolver(answers, base_dir)
        return {"display": [resolve(ref).replace(base, BASE) for ref in refs]}


OPS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "parse": run_parse,
    "enrich": run_enrich,
    "verify": run_verify,
    "format_for_parent": run_format,
    "resolve_artifacts": run_resolve,
}


def model_fields(conclusion: Conclusion) -> dict[str, Any]:
    return {
        "status": conclusion.status,
        "summary": conclusion.summary,
        "artifacts": list(conclusion.artifacts),
        "memory_refs": list(conclusion.memory_refs),
        "follow_up": conclusion.follow_up,
        "confidence": "NaN" if math.isnan(conclusion.confidence) else conclusion.confidence,
        "warnings_count": len(conclusion.warnings),
    }


def gate_fields(result: GateResult, base: str) -> dict[str, Any]:
    return {
        "downgraded": result.downgraded,
        "missing_artifacts": [ref.replace(base, BASE) if base else ref for ref in result.missing_artifacts],
        "missing_memory_refs": list(result.missing_memory_refs),
    }


def by_map(display: Mapping[str, str] | None) -> Resolver | None:
    return None if display is None else lambda ref: display.get(ref, ref)


@contextmanager
def directory(files: Mapping[str, int]) -> Iterator[str]:
    """A fresh directory with `files` (name to size; a name that ends in a slash is a directory)."""
    with tempfile.TemporaryDirectory() as base:
        for name, size in files.items():
            path = Path(base, name)
            if name.endswith("/"):
                path.mkdir(parents=True)
            else:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(b"x" * size)
        yield base


def stat(path: str) -> StatAnswer:
    try:
        # Not by way of Path, which would drop a slash at the end.
        found = os.stat(path)  # noqa: PTH116
    except FileNotFoundError:
        return StatAnswer(RefState.MISSING)
    except (OSError, ValueError):
        return StatAnswer(RefState.UNCHECKABLE)
    return StatAnswer(RefState.PRESENT, size=found.st_size, mtime_ms=found.st_mtime_ns // 1_000_000)
