"""Who may wait? The first of the three layers: admission to the queue of jobs, kind by kind.

It counts what waits and decides who is let in; the order in which it is served is the scheduler's. What was let in is
never put out by what comes later: it leaves when it is started or withdrawn.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from orchestrator.clock import US_PER_S
from orchestrator.flow.limiter import RETRY_AT_LEAST_S, RETRY_AT_MOST_S, Refusal
from orchestrator.flow.watermark import DEFAULT_SHARE, FixedWatermark, Watermark

UNBLOCKING = 0
"""The level that is let in up to the full bounds."""

_SMOOTHING = 0.1
_FIRST_GUESS_S = 0.5


@dataclass(frozen=True, slots=True)
class QueueBounds:
    """Overflow rule of the job queue: REJECT.

    `jobs` of one kind may wait at most, `audio_bytes` of sound over all kinds, `lane_jobs` of one session and kind.
    Levels 1–3 are refused from the mark of the kind and from `watermark` · `audio_bytes` on, unblocking work at the full
    numbers. Repeats were accepted once and are always taken back: they add at most what runs.
    """

    jobs: int = 512
    audio_bytes: int = 64 << 20
    watermark: float = DEFAULT_SHARE
    lane_jobs: int = 64


@dataclass(frozen=True, slots=True)
class InputQueueStatistics:
    """`queued`, `marks` (both per kind) and `audio_bytes` are now; the rest counts since the start."""

    queued: Mapping[str, int]
    marks: Mapping[str, int]
    audio_bytes: int
    admitted: int
    refused: int


class InputQueue:
    """Counts jobs that wait. Kinds are words, levels are 0 (unblocking) and 1–3 (tiers); times are microseconds."""

    def __init__(
        self, bounds: QueueBounds | None = None, marks: Mapping[str, Watermark] | None = None
    ) -> None:
        """A kind without a mark of its own gets the fixed share of the bounds."""
        self.bounds = bounds or QueueBounds()
        self._marks: dict[str, Watermark] = dict(marks or {})
        self._queued: Counter[str] = Counter()
        self._queued_at: Counter[tuple[str, int]] = Counter()
        self._audio_bytes = 0
        self._service_s: dict[str, float] = {}
        self._admitted = 0
        self._refused = 0

    @property
    def audio_bytes(self) -> int:
        """Bytes of sound that wait."""
        return self._audio_bytes

    def queued(self, kind: str) -> int:
        """Returns how many jobs of a kind wait."""
        return self._queued[kind]

    def queued_at(self, kind: str, level: int) -> int:
        """Returns how many jobs of a kind and level wait."""
        return self._queued_at[kind, level]

    def mark(self, kind: str, now: int) -> int:
        """Returns how many jobs of a kind may wait before others than unblocking ones are refused."""
        return min(self._mark_of(kind).mark(now), self.bounds.jobs)

    def admit(
        self, kind: str, level: int, lane_jobs: int, size_bytes: int, now: int, running: int = 0
    ) -> Refusal | None:
        """Lets a job in and counts it, or returns a refusal. `lane_jobs` of its session and kind wait already,
        `running` of its kind are with workers. Never waits."""
        bounds = self.bounds
        if level == UNBLOCKING:
            jobs, audio_bytes = bounds.jobs, float(bounds.audio_bytes)
        else:
            jobs, audio_bytes = self.mark(kind, now), bounds.audio_bytes * bounds.watermark
        if (
            lane_jobs >= bounds.lane_jobs
            or self._queued[kind] >= jobs
            or self._audio_bytes + size_bytes > audio_bytes
        ):
            self._refused += 1
            return Refusal(self.expected_wait_s(kind, running))
        self._admitted += 1
        self._count(kind, level, size_bytes, 1, now)
        return None

    def back(self, kind: str, level: int, size_bytes: int, now: int) -> None:
        """A job that had left waits again: its worker is lost. It was admitted once and is not asked again."""
        self._count(kind, level, size_bytes, 1, now)

    def left(self, kind: str, level: int, size_bytes: int, waited_us: int | None, now: int) -> None:
        """A job does not wait any more: it was started after `waited_us`, or withdrawn (None)."""
        self._count(kind, level, size_bytes, -1, now)
        if waited_us is not None:
            self._mark_of(kind).started(waited_us, now)

    def finished(self, kind: str, took_us: int, now: int) -> None:
        """A job left its worker with a result, so long after it had been started. Tell it before others start."""
        guess_s = self._service_s.get(kind, _FIRST_GUESS_S)
        self._service_s[kind] = guess_s + _SMOOTHING * (took_us / US_PER_S - guess_s)
        self._mark_of(kind).finished(1, now)

    def expected_wait_s(self, kind: str, running: int) -> float:
        """Estimates how long the queue of a kind takes: jobs ahead · time per job / jobs done at a time."""
        expected_s = self._queued[kind] * self._service_s.get(kind, _FIRST_GUESS_S) / max(1, running)
        return min(max(expected_s, RETRY_AT_LEAST_S), RETRY_AT_MOST_S)

    def pressure(self, now: int) -> float:
        """Returns the fullest of all: jobs per mark of a kind, or bytes of sound per bound."""
        fullest = self._audio_bytes / (self.bounds.audio_bytes * self.bounds.watermark)
        for kind, jobs in self._queued.items():
            if jobs:
                fullest = max(fullest, jobs / self.mark(kind, now))
        return fullest

    def statistics(self, now: int) -> InputQueueStatistics:
        kinds = {*self._queued, *self._marks}
        return InputQueueStatistics(
            queued={kind: self._queued[kind] for kind in kinds},
            marks={kind: self.mark(kind, now) for kind in kinds},
            audio_bytes=self._audio_bytes,
            admitted=self._admitted,
            refused=self._refused,
        )

    def _count(self, kind: str, level: int, size_bytes: int, change: int, now: int) -> None:
        self._queued[kind] += change
        self._queued_at[kind, level] += change
        self._audio_bytes += change * size_bytes
        self._mark_of(kind).waiting(self._queued[kind], now)

    def _mark_of(self, kind: str) -> Watermark:
        mark = self._marks.get(kind)
        if mark is None:
            mark = self._marks[kind] = FixedWatermark(self.bounds.jobs, self.bounds.watermark)
        return mark
