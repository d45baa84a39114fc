"""Sound of a WebSocket on its way in: bytes in the session's input format to samples at 16 kHz, as one stream."""

from collections.abc import Callable, Iterator

import numpy as np

from modalities.audio import g711
from modalities.audio.frame import SampleJoiner
from modalities.audio.resample import Resampler
from modalities.ports import SPEECH_RATE_HZ, Pcm
from orchestrator.buffers.views import Bytes
from orchestrator.wire.session import AudioFormat

PCM_RATE_HZ = 24_000

SLICE_BYTES = 12_000
"""A big append is taken in slices of this size (0.25 s of PCM), so that nobody else waits for the whole of it."""


class Inlet:
    """Keeps what one append leaves over for the next: half a sample, and the end of the resampler's filter.

    Appends need not be aligned to anything. What was fed and flushed is as long as what came, to the sample.
    """

    def __init__(self) -> None:
        self._format = ""
        self._joiner = SampleJoiner()
        self._decode: Callable[[memoryview], Pcm] = self._joiner.feed
        self._resampler = Resampler(PCM_RATE_HZ, SPEECH_RATE_HZ)

    def feed(self, sound: Bytes, audio_format: AudioFormat) -> Iterator[Pcm]:
        """Yields samples at 16 kHz, slice by slice; slices may be empty."""
        if audio_format.type != self._format:
            yield self._switch(audio_format)
        view = memoryview(sound)
        for start in range(0, len(view), SLICE_BYTES):
            yield self._resampler.feed(self._decode(view[start : start + SLICE_BYTES]))

    def flush(self) -> Pcm:
        """Returns the samples that still wait for what follows; half a sample is dropped."""
        self._joiner.clear()
        return self._resampler.flush()

    def _switch(self, audio_format: AudioFormat) -> Pcm:
        """Begins to read another format; returns the end of the sound in the one before."""
        rest = self.flush() if self._format else np.zeros(0, dtype=np.int16)
        self._format = audio_format.type
        match audio_format.type:
            case "audio/pcm":
                self._decode, rate_hz = self._joiner.feed, PCM_RATE_HZ
            case "audio/pcmu":
                self._decode, rate_hz = g711.decode_mulaw, g711.RATE_HZ
            case "audio/pcma":
                self._decode, rate_hz = g711.decode_alaw, g711.RATE_HZ
        self._resampler = Resampler(rate_hz, SPEECH_RATE_HZ)
        return rest
