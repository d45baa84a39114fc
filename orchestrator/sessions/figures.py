"""What a session counts of its work before a turn is certain, and when the stages of one answer were reached."""

from dataclasses import dataclass, fields
from typing import Literal

Early = Literal["reply", "transcript", "none"]
"""What of an answer had been begun before its turn was certain; a reply includes its transcript."""


@dataclass(slots=True)
class EarlyFigures:
    """Early transcripts and replies: every one that was started is in the end used or dropped, or still under way.

    `…_saved_us`: for how long those that were used had been under way when they would else have been started.
    """

    transcripts_started: int = 0
    transcripts_used: int = 0
    transcripts_dropped: int = 0
    transcripts_saved_us: int = 0
    replies_started: int = 0
    replies_used: int = 0
    replies_dropped: int = 0
    replies_saved_us: int = 0

    def add(self, other: "EarlyFigures") -> None:
        """Counts what another session counted too."""
        for field in fields(self):
            setattr(self, field.name, getattr(self, field.name) + getattr(other, field.name))


@dataclass(slots=True)
class TurnTimes:
    """When a spoken turn and the stages of its answer were reached, in session microseconds.

    `spoken_us`: the last sample of speech. `ended_us`: the end of the turn was certain. Transcript, first token and
    first sentence count from when they were in, though they may have been held back then; sound from when it left.
    """

    spoken_us: int
    ended_us: int
    transcript_us: int | None = None
    token_us: int | None = None
    sentence_us: int | None = None
    sound_us: int | None = None
    early: Early = "none"

    def stages_ms(self) -> dict[str, float | None]:
        """Returns the stages in milliseconds since the end of speech, None for those that were never reached."""
        stages = {
            "end_point_ms": self.ended_us,
            "transcript_ms": self.transcript_us,
            "first_token_ms": self.token_us,
            "first_sentence_ms": self.sentence_us,
            "first_sound_ms": self.sound_us,
        }
        return {
            name: None if at is None else round((at - self.spoken_us) / 1_000, 1)
            for name, at in stages.items()
        }
