"""What came of a fault: how much was acknowledged, what of it was lost, and what happened twice."""

from collections.abc import Iterable

from msgspec import Struct


class Findings(Struct, frozen=True):
    """The result of a scenario.

    Attributes:
        acknowledged: operations that clients saw acknowledged, and that were looked for afterwards.
        lost: those that were not there.
        twice: those that had happened more than once.
        problems: whatever else was wrong, a sentence each.
        notes: what is worth telling although nothing is wrong.
    """

    acknowledged: int = 0
    lost: int = 0
    twice: int = 0
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def survived(self) -> bool:
        """Whether nothing was lost, nothing happened twice, and all else was as it should be."""
        return not (self.lost or self.twice or self.problems) and self.acknowledged > 0

    @classmethod
    def sum(cls, found: Iterable["Findings"]) -> "Findings":
        """Return several results as one."""
        every = list(found)
        return cls(
            sum(each.acknowledged for each in every),
            sum(each.lost for each in every),
            sum(each.twice for each in every),
            tuple(problem for each in every for problem in each.problems),
            tuple(note for each in every for note in each.notes),
        )
