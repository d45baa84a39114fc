"""The reference formula: a limit read off the memory in use and the p95 of recent durations, once a second."""

from collections import deque
from math import ceil, floor

from orchestrator.clock import US_PER_S, ms, seconds
from orchestrator.flow.concurrency import Outcome, Sample

FREE_MEMORY_UP_TO = 0.75
"""Share of the memory from which on each percent costs two of the limit."""

MOST_FOR_LATENCY = 0.8
"""What long durations can cost."""

MOST_SAMPLES = 64
FRESH_US = seconds(30)
"""The p95 is of so many samples at most, none of which ended so long before the newest."""


def reference_value(base: int, memory_share: float, p95_us: int, target_us: int, slope_us: int) -> int:
    """Returns ``max(1, ⌊base · (1 - 2 · max(0, memory - 0.75) - min(0.8, max(0, (p95 - target) / slope)))⌋)``.

    With a base of 8, a target of 300 ms and a slope of 1,000 ms:

    ======  ======  ===========  ============================
    memory  p95     the formula  the table of its source says
    ======  ======  ===========  ============================
    42 %    120 ms  8            8
    89 %    210 ms  5            3
    61 %    580 ms  5            4
    ======  ======  ===========  ============================

    The formula is what is done here; no reading of it gives the table's last two rows.
    """
    for_memory = 2 * max(0.0, memory_share - FREE_MEMORY_UP_TO)
    for_latency = min(MOST_FOR_LATENCY, max(0.0, (p95_us - target_us) / slope_us))
    # 8 · (1 - 0.5) must not become 3 because a sum of binary fractions falls short of 4 by its last bit.
    return max(1, floor(round(base * (1 - for_memory - for_latency), 9)))


class ReferenceLimit:
    """Follows `reference_value`, set anew by each tick; at most `most`.

    Work that was dropped counts as endless: steady time-outs are the worst p95 there is, not a calm one. What was
    seen stays until newer work pushes it out, so that a silence proves nothing; only success pushes it out by age.
    """

    __slots__ = ("_base", "_durations", "_most", "_slope_us", "_target_us", "_value")

    def __init__(self, base: int, most: int, target_us: int = ms(300), slope_us: int = US_PER_S) -> None:
        if min(base, most, slope_us) < 1:
            raise ValueError(f"no limit of {base} (at most {most}) with a slope of {slope_us} µs")
        self._base = base
        self._most = most
        self._target_us = target_us
        self._slope_us = slope_us
        self._value = min(base, most)
        self._durations: deque[tuple[int, int]] = deque(maxlen=MOST_SAMPLES)  # (ended, duration)

    @property
    def value(self) -> int:
        return self._value

    @property
    def p95_us(self) -> int:
        """The duration that 95 % of the remembered samples do not exceed; 0 without samples."""
        ranked = sorted(duration for _, duration in self._durations)
        return ranked[ceil(0.95 * len(ranked)) - 1] if ranked else 0

    def observe(self, sample: Sample) -> None:
        """Remembers a duration; for dropped work one that costs `MOST_FOR_LATENCY`."""
        if sample.outcome is Outcome.IGNORED:
            return
        duration_us = sample.ended_us - sample.started_us
        if sample.outcome is Outcome.DROPPED:
            duration_us = max(duration_us, self._target_us + self._slope_us)
        else:
            while self._durations and self._durations[0][0] <= sample.ended_us - FRESH_US:
                self._durations.popleft()
        self._durations.append((sample.ended_us, duration_us))

    def tick(self, now: int, memory_share: float | None) -> None:
        """Sets the limit; memory that nobody knows costs nothing."""
        value = reference_value(self._base, memory_share or 0.0, self.p95_us, self._target_us, self._slope_us)
        self._value = min(value, self._most)
