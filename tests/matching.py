"""NATS subjects as permissions see them: whether a pattern covers a subject, and whether two patterns can meet."""


def covers(pattern: str, subject: str) -> bool:
    """Whether everything that `subject` (itself a pattern or not) can be is also what `pattern` can be."""
    wanted, parts = pattern.split("."), subject.split(".")
    for place, token in enumerate(wanted):
        if token == ">":
            return len(parts) > place
        if place >= len(parts) or parts[place] == ">":
            return False
        if token not in ("*", parts[place]):
            return False
    return len(parts) == len(wanted)


def meet(one: str, other: str) -> bool:
    """Whether some subject is covered by both patterns."""
    ones, others = one.split("."), other.split(".")
    for place in range(max(len(ones), len(others))):
        if place >= len(ones) or place >= len(others):
            return False
        a, b = ones[place], others[place]
        if ">" in (a, b):
            return True
        if "*" not in (a, b) and a != b:
            return False
    return True
