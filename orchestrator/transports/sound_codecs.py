"""Coded frames of a call to 16 kHz sound and 24 kHz sound to coded frames (libopus and swresample through PyAV).

Coding runs on the event loop: 20 ms cost some ten microseconds, less than handing them to a thread and back.
"""

from errno import EAGAIN
from fractions import Fraction
from typing import assert_never

import numpy as np
from av import AudioFrame, CodecContext, FFmpegError, Packet
from av.audio.codeccontext import AudioCodecContext
from av.filter import Graph

from modalities.audio import g711
from modalities.audio.resample import Resampler
from modalities.ports import SPEECH_RATE_HZ, Pcm
from orchestrator.transports.rtp_order import SoundCodec
from orchestrator.transports.tracks import FRAME_BYTES, FRAME_SAMPLES, RATE_HZ

OPUS_RATE_HZ = 48_000
G711_RATE_HZ = 8_000

OPUS_BITS_PER_S = 48_000
OPUS_OPTIONS = {"application": "lowdelay", "compression_level": "5"}
"""CELT only: 2.5 ms of look-ahead instead of 6.5, and half the work of the speech modes at this rate."""

_EMPTY = np.zeros(0, np.int16)


def _sound_frame(pcm: bytes, rate_hz: int) -> AudioFrame:
    frame = AudioFrame(format="s16", layout="mono", samples=len(pcm) // 2)
    frame.planes[0].update(pcm)
    frame.sample_rate = rate_hz
    return frame


def _samples(frame: AudioFrame) -> Pcm:
    return np.frombuffer(memoryview(frame.planes[0]), np.int16, frame.samples)


class To16k:
    """Resamples a mono stream to 16 kHz; sample i of the output lies at i / 16,000 s of the input.

    swresample holds back its filter's 16 samples (1 ms) and no more, unlike soxr's block filters (up to 27 ms).
    """

    def __init__(self, rate_hz: int) -> None:
        self._rate_hz = rate_hz
        self._graph: Graph | None = None
        self._silence = bytes(2 * rate_hz // 50)
        self._owed = 0
        self._skip = 0

    def push(self, frame: AudioFrame) -> Pcm:
        """Returns the output that this input completes; may be empty."""
        self._owed += frame.samples * SPEECH_RATE_HZ // self._rate_hz
        out = self._run(frame)
        if self._skip:
            cut = min(self._skip, len(out))
            self._skip -= cut
            out = out[cut:]
        self._owed -= len(out)
        return out

    def end(self) -> Pcm:
        """Returns what is still owed; the next `push` begins a new stretch."""
        if self._owed == 0:
            return _EMPTY
        owed, self._owed = self._owed, 0
        out = self._run(_sound_frame(self._silence, self._rate_hz))[self._skip :]
        self._skip = SPEECH_RATE_HZ // 50 - (len(out) - owed)
        return out[:owed]

    def _run(self, frame: AudioFrame) -> Pcm:
        if self._graph is None:
            self._graph = _resampling(frame)
        self._graph.push(frame)
        pieces = []
        while True:
            try:
                piece = self._graph.pull()
            except FFmpegError as error:
                if error.errno != EAGAIN:
                    raise
                break
            assert isinstance(piece, AudioFrame)
            pieces.append(_samples(piece))
        return pieces[0] if len(pieces) == 1 else np.concatenate([_EMPTY, *pieces])


def _resampling(template: AudioFrame) -> Graph:
    """Returns what makes 16 kHz of frames like this one. PyAV's own resampler would be the same, but starts as many
    threads as there are processors for each, which have nothing to do."""
    graph = Graph()
    graph.threads = 1
    rate_hz = template.sample_rate
    nodes = (
        graph.add(
            "abuffer",
            sample_rate=str(rate_hz),
            sample_fmt=template.format.name,
            channel_layout=template.layout.name,
            time_base=f"1/{rate_hz}",
        ),
        graph.add("aformat", sample_rates=str(SPEECH_RATE_HZ), sample_fmts="s16", channel_layouts="mono"),
        graph.add("abuffersink"),
    )
    graph.link_nodes(*nodes).configure()
    return graph


SAME_PACKETS = 25
"""So many equal packets in a row that decode to equal sound (half a second) show what the next of them decodes to."""

FAINT = 4
"""No sample of what is not decoded again is further from zero (-78 dBFS): some modes make noise of silence."""


class OpusDecoder:
    """Opus to 16 kHz. The decoder knows no better of a lost packet than `conceal` tells it.

    Silence costs nothing: the packet of a muted microphone is not decoded again and again (`SAME_PACKETS`). What the
    decoder would have become meanwhile it is already: whatever sounded before has long died away in it.
    """

    def __init__(self) -> None:
        context = CodecContext.create("libopus", "r")
        assert isinstance(context, AudioCodecContext)
        context.format = "s16"
        context.layout = "mono"
        context.sample_rate = OPUS_RATE_HZ
        self._context = context
        self._last = b""
        self._same = 0
        self._sound = _EMPTY
        self._resampler = To16k(OPUS_RATE_HZ)

    def decode(self, payload: bytes) -> Pcm:
        """Returns the sound that this packet completes. Raises `av.FFmpegError` if it is not Opus."""
        repeats = payload == self._last
        if repeats and self._same >= SAME_PACKETS:
            return self._sound
        same, self._same = self._same, 0
        self._last = payload
        sound = self._run(payload)
        if repeats and _is_faint(sound) and np.array_equal(sound, self._sound):
            self._same = same + 1
        else:
            self._sound = sound.copy()
        return sound

    def conceal(self) -> Pcm:
        """Returns the decoder's guess at one lost packet like the last: one without frames means just that
        (RFC 6716 §3.2.1, §4.4), while PyAV cannot pass on an absent one."""
        if not self._last:
            return _EMPTY
        self._same = 0
        return self._run(bytes([self._last[0] & 0xFC]))

    def silence(self, samples: int) -> Pcm:
        """Returns silence for a packet of so many 16 kHz samples that could not be decoded."""
        self._same = 0
        return self._resampler.push(_sound_frame(bytes(2 * samples * 3), OPUS_RATE_HZ))

    def end(self) -> Pcm:
        """Returns what the resampler still holds."""
        self._same = 0
        return self._resampler.end()

    def _run(self, payload: bytes) -> Pcm:
        pieces = [self._resampler.push(frame) for frame in self._context.decode(Packet(payload))]
        return pieces[0] if len(pieces) == 1 else np.concatenate([_EMPTY, *pieces])


def _is_faint(sound: Pcm) -> bool:
    return len(sound) > 0 and int(sound.min()) >= -FAINT and int(sound.max()) <= FAINT


class G711Decoder:
    """µ-law or A-law at 8 kHz to 16 kHz."""

    def __init__(self, codec: SoundCodec) -> None:
        self._expand = g711.decode_mulaw if codec is SoundCodec.PCMU else g711.decode_alaw
        self._resampler = To16k(G711_RATE_HZ)

    def decode(self, payload: bytes) -> Pcm:
        """Returns the sound that this packet completes."""
        return self._resampler.push(_sound_frame(self._expand(payload).tobytes(), G711_RATE_HZ))

    def conceal(self) -> Pcm:
        """G.711 has no guess: nothing."""
        return _EMPTY

    def silence(self, samples: int) -> Pcm:
        """Returns silence of so many 16 kHz samples."""
        return self._resampler.push(_sound_frame(bytes(samples), G711_RATE_HZ))

    def end(self) -> Pcm:
        """Returns what the resampler still holds."""
        return self._resampler.end()


SoundDecoder = OpusDecoder | G711Decoder


def new_decoder(codec: SoundCodec) -> SoundDecoder:
    """Returns a decoder without history."""
    match codec:
        case SoundCodec.OPUS:
            return OpusDecoder()
        case SoundCodec.PCMU | SoundCodec.PCMA:
            return G711Decoder(codec)
        case _:
            assert_never(codec)


class _Encoder:
    """Frames of 24 kHz in, packets out.

    Silence costs nothing: the packet that two silent frames gave in a row is what they would go on giving, and is
    repeated.
    """

    def __init__(self) -> None:
        self._at_rest = False
        self._silent = b""

    def encode(self, pcm: bytes | None) -> bytes:
        """Returns the packet of one frame (`FRAME_BYTES`, None is silence)."""
        if pcm is not None:
            self._at_rest, self._silent = False, b""
            return self._run(pcm)
        if not self._at_rest:
            before, self._silent = self._silent, self._run(bytes(FRAME_BYTES))
            self._at_rest = self._silent == before
        return self._silent

    def _run(self, pcm: bytes) -> bytes:
        raise NotImplementedError


class OpusEncoder(_Encoder):
    """24 kHz frames of 20 ms to Opus (whose RTP clock is 48 kHz whatever the input).

    It is at rest after some 200 ms of silence.
    """

    ticks = OPUS_RATE_HZ // 50
    clock_hz = OPUS_RATE_HZ

    def __init__(self) -> None:
        super().__init__()
        context = CodecContext.create("libopus", "w")
        assert isinstance(context, AudioCodecContext)
        context.format = "s16"
        context.layout = "mono"
        context.sample_rate = RATE_HZ
        context.bit_rate = OPUS_BITS_PER_S
        context.options = dict(OPUS_OPTIONS)
        context.time_base = Fraction(1, RATE_HZ)
        self._context = context
        self._pts = 0

    def rest(self) -> bytes:
        """Returns the packet of an encoder that sends no more silence: like the last silent one, without a frame in it
        (RFC 6716 §3.2.1). After a silent frame."""
        return bytes([self._silent[0] & 0xFC])

    def _run(self, pcm: bytes) -> bytes:
        frame = _sound_frame(pcm, RATE_HZ)
        frame.pts = self._pts
        self._pts += FRAME_SAMPLES
        return b"".join(bytes(packet) for packet in self._context.encode(frame))


class G711Encoder(_Encoder):
    """24 kHz frames of 20 ms to µ-law or A-law at 8 kHz, 4 ms late (the resampler's look-ahead)."""

    ticks = G711_RATE_HZ // 50
    clock_hz = G711_RATE_HZ

    def __init__(self, codec: SoundCodec) -> None:
        super().__init__()
        self._compress = g711.encode_mulaw if codec is SoundCodec.PCMU else g711.encode_alaw
        self._resampler = Resampler(RATE_HZ, G711_RATE_HZ)
        held_back = self.ticks - len(Resampler(RATE_HZ, G711_RATE_HZ).feed(np.zeros(FRAME_SAMPLES, np.int16)))
        self._ready = np.zeros(held_back, np.int16)

    def rest(self) -> bytes:
        """G.711 has no packet for silence that is not sent: a silent one."""
        return self.encode(None)

    def _run(self, pcm: bytes) -> bytes:
        ready = np.concatenate([self._ready, self._resampler.feed(np.frombuffer(pcm, "<i2"))])
        self._ready = ready[self.ticks :]
        return self._compress(ready[: self.ticks])


SoundEncoder = OpusEncoder | G711Encoder


def new_encoder(codec: SoundCodec) -> SoundEncoder:
    """Returns an encoder for what was negotiated."""
    match codec:
        case SoundCodec.OPUS:
            return OpusEncoder()
        case SoundCodec.PCMU | SoundCodec.PCMA:
            return G711Encoder(codec)
        case _:
            assert_never(codec)
