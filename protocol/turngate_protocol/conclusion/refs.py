"""Where a cited reference points: which artifact is a local path, and which path has to be asked about.

The rules come from the verify section of the specification's conclusion page; paths are those of the runner's host, so
they are cleaned by text alone. Whether a path exists is never looked up here.
"""

import re
from typing import Final, NamedTuple

from turngate_protocol.text import is_blank, trim

_UNCHECKABLE = re.compile(r"://|[*?\[ \t]")
# `:12`, `:12:5`, `:12-20`, `#L10`, `#L10-L20`, `#L10C3-L20C7`; bounded digits keep the search linear.
_LOCATION = re.compile(
    r"(?::[0-9]{1,9}(?:[:-][0-9]{1,9})?|#L[0-9]{1,9}(?:C[0-9]{1,9})?(?:-L?[0-9]{1,9}(?:C[0-9]{1,9})?)?)\Z"
)
_ROOT: Final = "/"


class Target(NamedTuple):
    """The path that an artifact names, and the file it names when the ref ends in a line number ("" when not)."""

    path: str
    file: str = ""


def target(ref: str, base_dir: str = "", *, locations: bool = True) -> Target | None:
    """Return what has to be asked about to check the artifact `ref`; None when it is no local path.

    A local path is not empty, has no `://`, `git@` in front, glob character, space or tab, and is absolute or has a
    base directory. White space around `ref` does not count.

    Args:
        ref: The artifact as it was cited.
        base_dir: The directory that relative refs start from, normally the task's work directory.
        locations: Whether `path:12` and `path#L10-L20` may stand for the file.
    """
    ref = trim(ref)
    if not ref or ref.startswith("git@") or _UNCHECKABLE.search(ref):
        return None
    path = locate(ref, base_dir)
    if path is None:
        return None
    found = _LOCATION.search(ref) if locations else None
    if found is None or found.start() == 0:
        return Target(path)
    return Target(path, locate(ref[: found.start()], base_dir) or "")


def locate(ref: str, base_dir: str) -> str | None:
    """Return the path of `ref`: itself when absolute, else cleaned under `base_dir`; None when there is no base."""
    if ref.startswith(_ROOT):
        return ref
    if is_blank(base_dir):
        return None
    return clean(f"{base_dir}/{ref}")


def clean(path: str) -> str:
    """Return `path` without empty, `.` and `..` elements, by text alone: links are not followed."""
    rooted = path.startswith(_ROOT)
    kept: list[str] = []
    for element in path.split(_ROOT):
        if element in {"", "."}:
            continue
        if element != "..":
            kept.append(element)
        elif kept and kept[-1] != "..":
            kept.pop()
        elif not rooted:
            kept.append(element)
    return (_ROOT if rooted else "") + _ROOT.join(kept) or "."


def last_element(path: str) -> str:
    """Return the last element of `path` without slashes around it; `/` for the root, `.` for an empty path."""
    if not path:
        return "."
    return path.rstrip(_ROOT).rpartition(_ROOT)[2] or _ROOT
