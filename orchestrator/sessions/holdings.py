"""What all sessions hold together, in plain numbers: the sum that a scrape of metrics asks for."""

from dataclasses import dataclass


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
