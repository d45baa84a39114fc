"""How much a job is wanted within its level: w = α · lateness + β · freshness + γ · affinity.

*Lateness* rises from 0, when its result is missed, to 1 at the tier's bound and stays there; before it is missed it is
below 0, so that sound in hand gives way. *Freshness* is 2^(−age / half-life) of the user's last sign, 0 where there was
none. What is overdue, missed for `OVERDUE` times the bound, counts as fresh whoever asked for it: of such the longest
missed goes first, so that nobody is passed over for others' signs for ever. *Affinity* is .95 for the worker that has
the session's state, else .3 + .4 · its share of free memory, in eighths: a worker with a hundredth more of it would be
filled to the last place while others stand empty.

All times of a level grow alike, so what is in order stays in order: while a job is not late its key
(missed / bound − β/α · freshness) never changes with time, and after that its key is its freshness alone. That is w / α
without what is equal for all: a change of α moves only the part of freshness. Freshness is that of the epoch's begin, a
sixteenth of a half-life: no more than 4.4 % too high.
"""

from dataclasses import dataclass

from orchestrator.clock import seconds

EPOCHS = 16
"""In one half-life."""

OVERDUE = 4
"""Bounds after which nobody's sign is worth more than having waited."""

WARM = 0.95
_COLD = 0.3
_COLD_FREE = 0.4
_MEMORY_STEPS = 8
_STALE = 2**-10


@dataclass(frozen=True, slots=True)
class Terms:
    """What a tier is promised: how long its work may wait, and how fast its users' last sign fades."""

    bound_us: int
    half_life_us: int

    def epoch(self, now: int) -> int:
        """Returns when the present epoch began."""
        return now - now % (self.half_life_us // EPOCHS)


TERMS = {
    1: Terms(seconds(0.12), seconds(90)),
    2: Terms(seconds(0.3), seconds(300)),
    3: Terms(seconds(0.8), seconds(900)),
}
"""By level; level 0 is first come, first served."""


def lateness(missed_us: int, now: int, terms: Terms) -> float:
    """Returns at most 1; below 0 before it is missed."""
    return min((now - missed_us) / terms.bound_us, 1.0)


def overdue(missed_us: int, now: int, terms: Terms) -> bool:
    """Says whether a job has been missed for so long that it counts as fresh."""
    return now - missed_us >= OVERDUE * terms.bound_us


def freshness(active_us: int | None, now: int, terms: Terms) -> float:
    """Returns 0 to 1; what has faded below a thousandth is 0, and need not be looked at again."""
    if active_us is None:
        return 0.0
    if active_us >= now:
        return 1.0
    fresh = float(2.0 ** ((active_us - now) / terms.half_life_us))
    return fresh if fresh >= _STALE else 0.0


def affinity(free_memory: float, *, warm: bool) -> float:
    """Returns how well a worker suits a session."""
    return WARM if warm else _COLD + _COLD_FREE * round(free_memory * _MEMORY_STEPS) / _MEMORY_STEPS
