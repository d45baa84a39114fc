"""How much of a spoken reply was heard when it was cut off."""

from collections.abc import Sequence
from dataclasses import dataclass

TYPICAL_SAMPLES_PER_CHARACTER = 1_700
"""Of 24 kHz sound, about 14 characters a second: used until a segment of the reply shows how fast its voice is."""


@dataclass(frozen=True, slots=True)
class Segment:
    """Characters [start, stop) of the reply became `samples` of sound; `complete`: no more of it will come."""

    start: int
    stop: int
    samples: int
    complete: bool


def heard_prefix(text: str, segments: Sequence[Segment], played_samples: int) -> str:
    """Returns the part of `text` that was heard after `played_samples` of its sound.

    `segments` are in the order of playing. Exact by segment, in proportion inside one, rounded down to a whole word,
    never more than what has become sound; "" where not one word was heard.
    """
    left = played_samples
    stop = 0
    pace = _pace(segments)
    for segment in segments:
        if left <= 0:
            break
        if left >= segment.samples and segment.complete:
            left -= segment.samples
            stop = segment.stop if segment.samples else stop
            continue
        length = segment.stop - segment.start
        whole = segment.samples if segment.complete else max(segment.samples, int(length * pace))
        characters = min(left, segment.samples) * length // max(whole, 1)
        return text[: max(stop, _whole_words(text, segment, characters))].rstrip()
    return text[:stop].rstrip()


def _pace(segments: Sequence[Segment]) -> float:
    """Samples per character of this voice, as far as complete segments show it."""
    done = [segment for segment in segments if segment.complete and segment.stop > segment.start]
    samples = sum(segment.samples for segment in done)
    characters = sum(segment.stop - segment.start for segment in done)
    return samples / characters if samples else TYPICAL_SAMPLES_PER_CHARACTER


def _whole_words(text: str, segment: Segment, characters: int) -> int:
    """The end of the last word that lies wholly in the first `characters` of a segment; 0 if there is none."""
    cut = segment.start + characters
    if cut < segment.stop and not text[cut].isspace():
        while cut > segment.start and not text[cut - 1].isspace():
            cut -= 1
    heard = text[segment.start : cut].rstrip()
    return segment.start + len(heard) if heard else 0
