"""What came of running a recording again, for people and programs. Pure."""

from dataclasses import asdict, dataclass
from typing import Any

from orchestrator.recording.journal import Journal
from orchestrator.recording.replay import Difference, Replayed


@dataclass(frozen=True, slots=True)
class Outcome:
    """`note` says what is special about the recording: it was cut off, or stopped before its session."""

    name: str
    mode: str
    steps: int
    lasted_s: float
    took_s: float
    differences: tuple[Difference, ...]
    note: str = ""

    @property
    def is_equal(self) -> bool:
        return not self.differences

    @classmethod
    def of_replay(cls, journal: Journal, replayed: Replayed, took_s: float) -> "Outcome":
        lasted_s = replayed.lasted_us / 1e6
        return cls(
            journal.name, "exact", replayed.steps, lasted_s, took_s, replayed.differences, note_of(journal)
        )

    def as_plain(self) -> dict[str, Any]:
        """Returns it as JSON values."""
        return {**asdict(self), "equal": self.is_equal}


def note_of(journal: Journal) -> str:
    """Says in a few words how a recording ends where that is not with its session."""
    if journal.torn:
        return "cut off within a line"
    if journal.end is None:
        return "cut off, or still being written"
    return "" if journal.end == "closed" else f"stopped: {journal.end}"
