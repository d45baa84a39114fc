"""What a session holds, and what all of them hold together in plain numbers: the sum that a scrape asks for."""

from dataclasses import dataclass

from orchestrator.buffers.output_log import LogStatistics
from orchestrator.sessions.figures import EarlyFigures
from orchestrator.sessions.inbox import InboxStatistics


@dataclass(frozen=True, slots=True)
class RunnerStatistics:
    """What one session holds now: entries of its log, events of its inbox, sound on its way to the log (in pieces) and
    of clients' items (in bytes); `dropped_windows` were never judged."""

    links: int
    log: LogStatistics
    inbox: InboxStatistics
    pieces: int
    clip_bytes: int
    dropped_windows: int
    early: EarlyFigures


@dataclass(slots=True)
class Holdings:
    """Sums over sessions: what is held now, and from `log_dropped` on what was let go since the server started."""

    sessions: int = 0
    ring_samples: int = 0
    ring_capacity: int = 0
    detector_windows: int = 0
    inbox_events: int = 0
    clip_bytes: int = 0
    spoken_pieces: int = 0
    log_events: int = 0
    log_bytes: int = 0
    log_dropped: int = 0
    windows_dropped: int = 0
    events_refused: int = 0
    clips_refused: int = 0
