"""What a conclusion process counts, by code; its tests read it."""

from collections import Counter

from turngate_protocol.conclusion.record import TaskConclusion


class Counters:
    """Counts since the process started."""

    def __init__(self) -> None:
        self.received: Counter[str] = Counter()
        self.concluded: Counter[str] = Counter()
        self.refs: Counter[str] = Counter()
        self.prompts: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self.requests: Counter[str] = Counter()
        self.repeats = 0
        self.conflicts = 0
        self.silent_runners = 0

    def count_judged(self, state: TaskConclusion) -> None:
        """Count a new verdict by its status, and what was found of its refs."""
        self.concluded["none" if state.conclusion is None else state.conclusion.status] += 1
        gate = state.gate
        if gate is None:
            return
        self.refs["verified"] += len(gate.verified_artifacts) + len(gate.verified_memory_refs)
        self.refs["missing"] += len(gate.missing_artifacts) + len(gate.missing_memory_refs)
        self.refs["uncheckable"] += len(gate.uncheckable_artifacts) + len(gate.uncheckable_memory_refs)
        self.refs["unproven"] += len(gate.unproven_artifacts)
