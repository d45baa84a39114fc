"""Who may wait? The first of the three layers: admission to the queue of jobs, kind by kind.

It counts what waits and decides who is let in; the order in which it is served is the scheduler's. Marks and pressure
go by what waits for a place: the later sentences of one long reply wait for the first one, and take nobody's place.
What was let in is never put out by what comes later: it leaves when it is started or withdrawn. And what waits at a
lower level never blocks a higher one: each level has a top of its own, the next lower one stays below it.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from orchestrator.clock import US_PER_S
from orchestrator.flow.limiter import RETRY_AT_LEAST_S, RETRY_AT_MOST_S
from orchestrator.flow.watermark import DEFAULT_SHARE, FixedWatermark, Watermark

UNBLOCKING = 0
"""The level that is let in up to the full bounds."""

LOWEST = 3
_LEVELS = range(UNBLOCKING, LOWEST + 1)

_SMOOTHING = 0.1
_FIRST_GUESS_S = 0.5


@dataclass(frozen=True, slots=True)
class QueueBounds:
    """Overflow rule of the job queue: REJECT.

    `jobs` of one kind may wait at most, `audio_bytes` of sound over all kinds, `lane_jobs` of one session and kind.
    Of `jobs` and of `audio_bytes` unblocking work may take all, level 3 the share `watermark`, levels 1 and 2 shares
    between: their tops. Levels 1–3 are refused from the mark of the kind on too, which counts what waits for a place at
    their own level and above; what has a job of its own session before it, running or waiting, is let in all the same.
    Repeats were accepted once and are always taken back: they add at most what runs.
    """

    jobs: int = 512
    audio_bytes: int = 64 << 20
    watermark: float = DEFAULT_SHARE
    lane_jobs: int = 64

    def share(self, level: int) -> float:
        """Returns how much of the room a level may take, with all others: 1 for unblocking work."""
        return self.watermark + (1.0 - self.watermark) * (LOWEST - level) / LOWEST

    def top(self, level: int) -> int:
        """Returns how many jobs of a kind may wait for a level to be let in. Where `watermark` is under 1 and there are
        four places or more, the next lower level's top is below it."""
        top = max(1, int(self.jobs * self.share(level) + 1e-9))
        if self.watermark < 1.0 and level > UNBLOCKING:
            return max(1, min(top, self.top(level - 1) - 1))
        return top


class InputQueue:
    """Counts jobs that wait. Kinds are words, levels are 0 (unblocking) and 1–3 (tiers); times are microseconds, and
    where none is given it is as late as when one was given last."""

    def __init__(
        self, bounds: QueueBounds | None = None, marks: Mapping[str, Watermark] | None = None
    ) -> None:
        """A kind without a mark of its own gets the fixed share of the bounds."""
        self.bounds = bounds or QueueBounds()
        self._marks: dict[str, Watermark] = dict(marks or {})
        self._queued: Counter[str] = Counter()
        self._queued_at: Counter[tuple[str, int]] = Counter()
        self._behind_at: Counter[tuple[str, int]] = Counter()
        self._audio_at: Counter[int] = Counter()
        self._tops = [self.bounds.top(level) for level in _LEVELS] + [0]
        self._audio_tops = [
            max(1, round(self.bounds.audio_bytes * self.bounds.share(level))) for level in _LEVELS
        ] + [0]
        self._service_s: dict[str, float] = {}
        self._now = 0
        self.audio_bytes = 0
        """Bytes of sound that wait."""
        self.admitted = 0
        self.refused = 0

    def queued(self, kind: str) -> int:
        """Returns how many jobs of a kind wait."""
        return self._queued[kind]

    def queued_at(self, kind: str, level: int) -> int:
        """Returns how many jobs of a kind and level wait."""
        return self._queued_at[kind, level]

    def waiting(self, kind: str) -> int:
        """Returns how many jobs of a kind wait for a place: those that could start now."""
        return self._queued[kind] - sum(self._behind_at[kind, level] for level in _LEVELS)

    def waiting_at(self, kind: str, level: int) -> int:
        """Returns how many jobs of a kind and level wait for a place."""
        return self._queued_at[kind, level] - self._behind_at[kind, level]

    def mark(self, kind: str) -> int:
        """Returns how many jobs of a kind may wait for a place before those of the lowest level are refused."""
        return min(self._mark_of(kind).mark(self._now), self._tops[LOWEST])

    def admit(
        self, kind: str, level: int, lane_jobs: int, size_bytes: int, now: int, *, runs: bool = False
    ) -> bool:
        """Lets a job in and counts it, or not. `lane_jobs` of its session and kind wait already, one `runs` or none.
        Never waits.

        A refusal is never the doing of lower levels: it says that the lane is full, or that so many jobs (bytes) wait
        at this level and above as the mark of the kind, or as lie between this level's top and the next lower one's.
        """
        self._now = max(self._now, now)
        if (
            lane_jobs >= self.bounds.lane_jobs
            or not (runs or lane_jobs or self._is_below_mark(kind, level))
            or not self._has_a_place(kind, level)
            or not self._has_bytes(level, size_bytes)
        ):
            self.refused += 1
            return False
        self.admitted += 1
        self._count(kind, level, size_bytes, 1)
        return True

    def behind(self, kind: str, level: int, change: int) -> None:
        """So many more of the jobs that wait (fewer, where negative) wait for their own session's work, not for a
        place."""
        self._behind_at[kind, level] += change
        self._mark_of(kind).waiting(self.waiting(kind), self._now)

    def started(self, kind: str, level: int, size_bytes: int, waited_us: int, now: int) -> None:
        """A job went to a worker after so long."""
        self._now = max(self._now, now)
        self._count(kind, level, size_bytes, -1)
        self._mark_of(kind).started(waited_us, self._now)

    def withdrawn(self, kind: str, level: int, size_bytes: int) -> None:
        """A job does not wait any more, and was not started."""
        self._count(kind, level, size_bytes, -1)

    def back(self, kind: str, level: int, size_bytes: int, now: int) -> None:
        """A job that had been started waits again: its worker is lost. It was admitted once and is not asked again."""
        self._now = max(self._now, now)
        self._count(kind, level, size_bytes, 1)

    def finished(self, kind: str, took_us: int, now: int) -> None:
        """A job left its worker with a result, so long after it had been started."""
        self._now = max(self._now, now)
        guess_s = self._service_s.get(kind, _FIRST_GUESS_S)
        self._service_s[kind] = guess_s + _SMOOTHING * (took_us / US_PER_S - guess_s)
        self._mark_of(kind).finished(1, self._now)

    def expected_wait_s(self, kind: str, running: int) -> float:
        """Estimates how long the queue of a kind takes: jobs ahead · time per job / jobs done at a time."""
        expected_s = self._queued[kind] * self._service_s.get(kind, _FIRST_GUESS_S) / max(1, running)
        return min(max(expected_s, RETRY_AT_LEAST_S), RETRY_AT_MOST_S)

    def pressure(self, now: int) -> float:
        """Returns the fullest of all: jobs that wait for a place per mark of a kind, or bytes of sound per bound."""
        self._now = max(self._now, now)
        fullest = self.audio_bytes / self._audio_tops[LOWEST]
        for kind in self._queued:
            if jobs := self.waiting(kind):
                fullest = max(fullest, jobs / self.mark(kind))
        return fullest

    def _is_below_mark(self, kind: str, level: int) -> bool:
        above = sum(self.waiting_at(kind, one) for one in range(level + 1))
        return level == UNBLOCKING or above < self._mark_of(kind).mark(self._now)

    def _has_a_place(self, kind: str, level: int) -> bool:
        above = sum(self._queued_at[kind, one] for one in range(level + 1))
        # Repeats of lower levels are not counted beyond what their level may take: they came back unasked.
        below = min(self._queued[kind] - above, self._tops[level + 1])
        return above + below < self._tops[level]

    def _has_bytes(self, level: int, size_bytes: int) -> bool:
        above = sum(self._audio_at[one] for one in range(level + 1))
        below = min(self.audio_bytes - above, self._audio_tops[level + 1])
        return above + below + size_bytes <= self._audio_tops[level]

    def _count(self, kind: str, level: int, size_bytes: int, change: int) -> None:
        self._queued[kind] += change
        self._queued_at[kind, level] += change
        self._audio_at[level] += change * size_bytes
        self.audio_bytes += change * size_bytes
        self._mark_of(kind).waiting(self.waiting(kind), self._now)

    def _mark_of(self, kind: str) -> Watermark:
        mark = self._marks.get(kind)
        if mark is None:
            mark = self._marks[kind] = FixedWatermark(self.bounds.jobs, self.bounds.watermark)
        return mark
