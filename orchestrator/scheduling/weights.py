"""The three weights of a tier, and how they follow what is missed: more lateness where bounds are not kept."""

from collections.abc import Mapping

FIRST = (0.5, 0.3, 0.2)
MOST_LATENESS = 0.8
STEP = 0.05
MISSED_HIGH = 0.05
MISSED_LOW = 0.01
STEP_EVERY = 50
"""Observations between two changes."""

_SMOOTHING = 0.02


class Weights:
    """Weights of lateness, freshness and affinity; their sum is 1 whatever is observed.

    Over 5 % missed the first goes up by .05 and the others shrink in proportion; below 1 % it goes back. Jobs that
    wait already are looked at anew with their level's epoch, 32 of them a plan: until then the old part of freshness
    holds for them.
    """

    __slots__ = ("_observed", "lateness", "missed")

    def __init__(self) -> None:
        self.lateness = FIRST[0]
        self.missed = 0.0
        self._observed = 0

    @property
    def freshness(self) -> float:
        return (1.0 - self.lateness) * FIRST[1] / (FIRST[1] + FIRST[2])

    @property
    def affinity(self) -> float:
        return 1.0 - self.lateness - self.freshness

    def shares(self) -> Mapping[str, float]:
        """Returns the three by name, as of now."""
        return {"lateness": self.lateness, "freshness": self.freshness, "affinity": self.affinity}

    def observe(self, *, missed: bool) -> None:
        """A job has started; `missed`: it had waited longer than its tier's bound."""
        self.missed += _SMOOTHING * (missed - self.missed)
        self._observed += 1
        if self._observed % STEP_EVERY:
            return
        if self.missed > MISSED_HIGH:
            self.lateness = min(self.lateness + STEP, MOST_LATENESS)
        elif self.missed < MISSED_LOW:
            self.lateness = max(self.lateness - STEP, FIRST[0])
