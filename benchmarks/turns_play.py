"""Plays takes through the turn detector in audio time: when would the server have ended the turn?

The rules are the server's own (`Segmenter`, `SemanticPatience`); what a worker answers comes after a stated delay
instead of after whatever this machine needed, so that the figures are the same on every machine.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from benchmarks.turns_sound import Take
from modalities.audio.patience import SemanticPatience
from modalities.audio.phrase_end import QUIET_WINDOWS
from modalities.audio.segmenter import (
    TAIL_SAMPLES,
    WINDOW,
    Segmenter,
    SegmenterSettings,
    SegmentEvent,
    SpeechBegan,
    SpeechEnded,
)
from modalities.ports import SPEECH_RATE_HZ

_MS = SPEECH_RATE_HZ // 1_000
DRAFT_EVERY_MS = 400
DRAFT_TAKES_MS = 150
EARLY_FINAL_TAKES_MS = 170
PAUSE_KNOWN_MS = QUIET_WINDOWS * WINDOW * 1_000 // SPEECH_RATE_HZ
MISSED_AT_MOST = 3 * WINDOW
MAX_UTTERANCE_S = 60.0
MAX_DRAFT_MS = 20_000


@dataclass(frozen=True, slots=True)
class Policy:
    """A way to end turns: by silence alone, or by a patience where one is given."""

    name: str
    silence_ms: int = 500
    patience: SemanticPatience | None = None


@dataclass(frozen=True, slots=True)
class Played:
    """Where turns began and ended, in samples, each at the moment it was known."""

    take: Take
    begins: tuple[int, ...]
    ends: tuple[int, ...]

    @property
    def early(self) -> int:
        """Ends before the speaker had finished. Who has not finished at all is cut by any end in the recording."""
        end = self.take.stop if self.take.true_end is None else self.take.true_end
        return sum(at < end for at in self.ends)

    @property
    def delay_ms(self) -> float | None:
        """From the true end to the end that was found; None where there is none to be found, or none was."""
        end = self.take.true_end
        if end is None:
            return None
        return next(((at - end) / _MS for at in self.ends if at >= end), None)


@dataclass(slots=True)
class _Answer:
    """Words of samples [start, stop) that come at `at`."""

    at: int
    start: int
    stop: int


@dataclass(slots=True)
class _Playing:
    """One take under one policy."""

    take: Take
    policy: Policy
    segmenter: Segmenter
    begins: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    start: int = 0
    drafted_to: int = 0
    draft: _Answer | None = None
    final: _Answer | None = None
    known: _Answer | None = None


def play(take: Take, policy: Policy) -> Played:
    """Returns the beginnings and ends that the server would have found."""
    silence = policy.silence_ms if policy.patience is None else policy.patience.most_ms
    settings = SegmenterSettings(silence_ms=silence, max_utterance_s=MAX_UTTERANCE_S)
    playing = _Playing(take, policy, Segmenter(settings))
    for number, probability in enumerate(take.probabilities):
        _hear(playing, number, probability)
    return Played(take, tuple(playing.begins), tuple(playing.ends))


def _hear(playing: _Playing, number: int, probability: float) -> None:
    segmenter = playing.segmenter
    if playing.policy.patience is not None:
        # Nothing ends before the silence is known to be a pause.
        most = SegmenterSettings(silence_ms=playing.policy.patience.most_ms, max_utterance_s=MAX_UTTERANCE_S)
        segmenter.configure(most)
    _follow(playing, segmenter.observe((probability,), number))
    if playing.policy.patience is None or not segmenter.speaking:
        return
    now = segmenter.position
    _recognize(playing, now)
    if segmenter.silence_ms >= PAUSE_KNOWN_MS:
        granted = _granted(playing, playing.policy.patience)
        segmenter.configure(SegmenterSettings(silence_ms=granted, max_utterance_s=MAX_UTTERANCE_S))
        _follow(playing, segmenter.settle())


def _follow(playing: _Playing, segments: Sequence[SegmentEvent]) -> None:
    for segment in segments:
        match segment:
            case SpeechBegan():
                playing.begins.append(segment.detected_sample)
                playing.start = playing.drafted_to = segment.start_sample
                playing.draft = playing.final = playing.known = None
            case SpeechEnded():
                playing.ends.append(segment.detected_sample)


def _recognize(playing: _Playing, now: int) -> None:
    """Orders what the server orders (`orchestrator/sessions/drafts.py`), takes what has come."""
    quiet_from = playing.segmenter.last_speech_stop
    if now == quiet_from:
        if playing.final is not None:  # speech went on: what was to be the transcript is a draft
            playing.draft, playing.final = playing.final, None
        due = now - playing.drafted_to >= DRAFT_EVERY_MS * _MS and now - playing.start <= MAX_DRAFT_MS * _MS
        if playing.draft is None and due:
            playing.drafted_to = now
            playing.draft = _Answer(now + DRAFT_TAKES_MS * _MS, playing.start, now)
    elif playing.final is None and now - quiet_from >= TAIL_SAMPLES:
        playing.drafted_to = quiet_from + TAIL_SAMPLES
        playing.draft = None
        playing.final = _Answer(now + EARLY_FINAL_TAKES_MS * _MS, playing.start, playing.drafted_to)
    for answer in (playing.draft, playing.final):
        if answer is not None and answer.at <= now:
            playing.known = answer
    if playing.draft is not None and playing.draft.at <= now:
        playing.draft = None


def _granted(playing: _Playing, patience: SemanticPatience) -> int:
    stop = playing.segmenter.last_speech_stop
    known = playing.known
    heard = known is not None and stop - known.stop <= MISSED_AT_MOST
    text = playing.take.said(known.start, known.stop) if heard and known is not None else None
    return patience.silence_ms(text, playing.take.phrase_ends.get(stop))
