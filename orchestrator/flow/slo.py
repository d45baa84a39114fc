"""Do turns fail more often than they may? A guard that needs evidence to raise the alarm, and patience to end it."""

from enum import Enum
from math import sqrt

from orchestrator.clock import US_PER_S, seconds

SPANS = 60
SPAN_US = US_PER_S
"""Turns are counted by the second, for a minute."""

DEFAULT_RATE = 0.005
"""Share of turns that may fail."""

LEAST_TURNS = 50

DWELL_US = seconds(30)

_Z = 1.96


class SloState(Enum):
    """NORMAL: turns succeed. DEGRADED: too many fail. RECOVERING: few enough fail, but not for long enough."""

    NORMAL = "normal"
    DEGRADED = "degraded"
    RECOVERING = "recovering"


class SloGuard:
    """DEGRADED once the share of failed turns is surely above `rate`: at least `LEAST_TURNS` ended within a minute, and
    the lower end of the share's interval (E. B. Wilson, 1927; 95 %) is above it. One failure of fifty turns is no
    alarm, two are; of fewer turns nobody can tell. So the time to react is that in which enough turns fail (at 600
    turns a minute and 2 % failing about 20 s).

    Back to NORMAL once the share was at or below half of `rate` for `DWELL_US` without a break; any look that finds it
    above starts that time anew.
    """

    def __init__(self, rate: float = DEFAULT_RATE) -> None:
        if not 0 < rate <= 1:
            raise ValueError(f"a share of failed turns is above 0 and at most 1, not {rate}")
        self._rate = rate
        self._turns = [0] * SPANS
        self._failed = [0] * SPANS
        self._span: int | None = None
        self._all_turns = 0
        self._all_failed = 0
        self._state = SloState.NORMAL
        self._calm_since_us = 0

    @property
    def state(self) -> SloState:
        return self._state

    @property
    def degraded(self) -> bool:
        """Whether the server goes easy on itself."""
        return self._state is not SloState.NORMAL

    def ended(self, failed: bool, now: int) -> None:
        """A turn ended. Cancelled turns, invalid requests and refusals do not count: leave them out."""
        self._advance(now)
        at = now // SPAN_US % SPANS
        self._turns[at] += 1
        self._failed[at] += failed
        self._all_turns += 1
        self._all_failed += failed

    def share(self, now: int) -> float:
        """Returns the share of failed turns of the last minute; 0 where there were none."""
        self._advance(now)
        return self._all_failed / self._all_turns if self._all_turns else 0.0

    def tick(self, now: int) -> SloState:
        """Looks at the last minute; returns how things are from now on."""
        share = self.share(now)
        calm = share <= self._rate / 2
        match self._state:
            case SloState.NORMAL:
                if (
                    self._all_turns >= LEAST_TURNS
                    and wilson_lower(self._all_failed, self._all_turns) > self._rate
                ):
                    self._state = SloState.DEGRADED
            case SloState.DEGRADED:
                if calm:
                    self._state, self._calm_since_us = SloState.RECOVERING, now
            case SloState.RECOVERING:
                if not calm:
                    self._state = SloState.DEGRADED
                elif now - self._calm_since_us >= DWELL_US:
                    self._state = SloState.NORMAL
        return self._state

    def _advance(self, now: int) -> None:
        span = now // SPAN_US
        if self._span is None:
            self._span = span
        for gone in range(max(self._span + 1, span + 1 - SPANS), span + 1):
            at = gone % SPANS
            self._all_turns -= self._turns[at]
            self._all_failed -= self._failed[at]
            self._turns[at] = self._failed[at] = 0
        self._span = max(self._span, span)


def wilson_lower(failed: int, turns: int) -> float:
    """Returns the lower end of the 95 % interval of a share that was counted as `failed` of `turns`."""
    if not turns:
        return 0.0
    share = failed / turns
    centre = share + _Z * _Z / (2 * turns)
    spread = _Z * sqrt(share * (1 - share) / turns + _Z * _Z / (4 * turns * turns))
    return max(0.0, (centre - spread) / (1 + _Z * _Z / turns))
