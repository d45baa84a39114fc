"""Where the user's speech begins and ends (heart): a segmenter under the client's turn detection, and how much silence
the words so far, and how they were said, are granted."""

from modalities.audio.patience import SemanticPatience
from modalities.audio.phrase_end import PhraseEnd
from modalities.audio.segmenter import (
    HYSTERESIS,
    TAIL_SAMPLES,
    WINDOW,
    Segmenter,
    SegmenterSettings,
    SegmentEvent,
)
from orchestrator.buffers.timeline import SAMPLE_RATE_HZ
from orchestrator.sessions.events import AudioHeard
from orchestrator.sessions.utterance import Utterance
from orchestrator.wire.session import SemanticVad, ServerVad

_MISSED_AT_MOST = 3 * WINDOW
"""Of speech behind the end of a draft (96 ms): less than a word."""

_QUIET = SegmenterSettings().threshold - HYSTERESIS
"""Speech goes on from this probability up under semantic turn detection."""


class EndPoint:
    """Detects speech by one kind of turn detection after another. It hears nothing before `begin_at`."""

    def __init__(self, detection: ServerVad | SemanticVad, longest_s: float, begin_at: int) -> None:
        self._longest_s = longest_s
        self._patience: SemanticPatience | None = None
        self._granted_ms = 0
        self._phrase: PhraseEnd | None = None
        self.segmenter = Segmenter(self._settings(detection))
        self.segmenter.reset(begin_at)

    def configure(self, detection: ServerVad | SemanticVad) -> None:
        """Changes the rules; speech that is going on goes on under the new ones."""
        self.segmenter.configure(self._settings(detection))

    @property
    def is_semantic(self) -> bool:
        """Whether words decide."""
        return self._patience is not None

    @property
    def is_doubtful(self) -> bool:
        """Whether the words so far are granted the longest silence that there is: the speaker will go on."""
        return self._patience is not None and self._granted_ms >= self._patience.most_ms

    @property
    def tail_stop(self) -> int:
        """Where the utterance ends, should it end with the silence that it is in."""
        return self.segmenter.last_speech_stop + TAIL_SAMPLES

    @property
    def certain_at(self) -> int:
        """The position up to which there must be silence for the turn to end."""
        return self.segmenter.last_speech_stop + self._granted_ms * SAMPLE_RATE_HZ // 1_000

    def observe(self, event: AudioHeard, utterance: Utterance | None) -> tuple[SegmentEvent, ...]:
        """Takes speech probabilities; returns what they began and ended."""
        if event.phrase_ends:
            self._phrase = event.phrase_ends[-1]
        if self._patience is None or utterance is None:
            return self.segmenter.observe(event.probabilities, event.first_window)
        if max(event.probabilities, default=0.0) < _QUIET:
            self._be_patient(utterance)
        else:
            # Of a silence behind this speech nothing is known yet; what was known is of another one.
            self._grant(None, None)
        segments = self.segmenter.observe(event.probabilities, event.first_window)
        return segments or self.settle(utterance)

    def settle(self, utterance: Utterance) -> tuple[SegmentEvent, ...]:
        """Takes new words of the utterance: they may show that the silence since then was the end of the sentence."""
        if self._patience is None:
            return ()
        self._be_patient(utterance)
        return self.segmenter.settle()

    def _be_patient(self, utterance: Utterance) -> None:
        """Grants the silence that the words so far ask for; words of a draft that missed the last of them say nothing:
        a recogniser puts a full stop behind half a sentence too."""
        stop = self.segmenter.last_speech_stop
        text = utterance.text if stop - utterance.text_to <= _MISSED_AT_MOST else None
        phrase = self._phrase if self._phrase is not None and self._phrase.stop == stop else None
        self._grant(text, phrase)

    def _grant(self, text: str | None, phrase: PhraseEnd | None) -> None:
        assert self._patience is not None
        self._granted_ms = self._patience.silence_ms(text, phrase)
        self.segmenter.configure(
            SegmenterSettings(silence_ms=self._granted_ms, max_utterance_s=self._longest_s)
        )

    def _settings(self, detection: ServerVad | SemanticVad) -> SegmenterSettings:
        if isinstance(detection, ServerVad):
            self._patience = None
            self._granted_ms = detection.silence_duration_ms
            return SegmenterSettings(
                threshold=detection.threshold,
                prefix_padding_ms=detection.prefix_padding_ms,
                silence_ms=detection.silence_duration_ms,
                max_utterance_s=self._longest_s,
            )
        self._patience = SemanticPatience(detection.eagerness)
        self._granted_ms = self._patience.silence_ms(None)
        return SegmenterSettings(silence_ms=self._granted_ms, max_utterance_s=self._longest_s)
