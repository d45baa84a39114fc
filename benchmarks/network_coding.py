"""What becomes of words if a lost Opus packet is silence, a guess, or taken from the next one (in-band FEC, RFC 6716).

PyAV cannot ask libopus for the correction, so this reaches into the libopus beside it: for measuring, not for serving.
"""

import ctypes
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import av
import numpy as np
from av import AudioFrame, CodecContext
from av.audio.codeccontext import AudioCodecContext

from benchmarks.recordings import Recording
from modalities.ports import SPEECH_RATE_HZ, Pcm
from modalities.text.normalize import normalize, word_errors
from orchestrator.clients.recording import CALL_RATE_HZ, read_recording

FRAME, CODED_FRAME = SPEECH_RATE_HZ // 50, CALL_RATE_HZ // 50
LOSSES = (0.05, 0.10)
WAYS = ("silence", "guess", "fec")


@dataclass(frozen=True, slots=True)
class Coding:
    """Word errors in percent at one loss, for one way of making up for it."""

    loss_percent: float
    way: str
    words: int
    errors_percent: float


class _Decoder:
    def __init__(self) -> None:
        (library,) = Path(av.__file__).parent.parent.glob("av.libs/libopus-*.so*")
        self._opus = ctypes.CDLL(str(library))
        self._opus.opus_decoder_create.restype = ctypes.c_void_p
        self._state = ctypes.c_void_p(self._opus.opus_decoder_create(SPEECH_RATE_HZ, 1, None))

    def decode(self, payload: bytes | None, fec: bool = False) -> Pcm:
        """Returns 20 ms; None is the decoder's guess, `fec` what a packet holds of the one before it."""
        sound = np.zeros(FRAME, np.int16)
        size = 0 if payload is None else len(payload)
        done = self._opus.opus_decode(
            self._state, payload, size, sound.ctypes.data_as(ctypes.c_void_p), FRAME, fec
        )
        if done != FRAME:
            raise ValueError(f"libopus said {done}")
        return sound

    def close(self) -> None:
        self._opus.opus_decoder_destroy(self._state)


def encode(sound: Pcm, loss: float) -> list[bytes]:
    """Codes 48 kHz sound as browsers do (voice, 32 kbit/s) with FEC for so much loss."""
    context = CodecContext.create("libopus", "w")
    assert isinstance(context, AudioCodecContext)
    context.format, context.layout, context.sample_rate = "s16", "mono", CALL_RATE_HZ
    context.bit_rate = 32_000
    context.options = {"application": "voip", "fec": "1", "packet_loss": str(round(100 * loss))}
    packets: list[bytes] = []
    for start in range(0, len(sound), CODED_FRAME):
        piece = sound[start : start + CODED_FRAME]
        frame = AudioFrame.from_ndarray(np.pad(piece, (0, CODED_FRAME - len(piece)))[None, :], "s16", "mono")
        frame.sample_rate = CALL_RATE_HZ
        packets += [bytes(packet) for packet in context.encode(frame)]
    return packets


def decode(packets: Sequence[bytes], lost: Sequence[bool], way: str) -> Pcm:
    """Returns 16 kHz sound; a loss is guessed for 60 ms at most, as calls do, then silence."""
    decoder, pieces, run = _Decoder(), [], 0
    for number, payload in enumerate(packets):
        run = run + 1 if lost[number] else 0
        if not run:
            pieces.append(decoder.decode(payload))
            continue
        following = number + 1 < len(packets) and not lost[number + 1]
        if way == "fec" and following:
            pieces.append(decoder.decode(packets[number + 1], fec=True))
        elif way != "silence" and run <= 3:
            pieces.append(decoder.decode(None))
        else:
            pieces.append(np.zeros(FRAME, np.int16))
    decoder.close()
    return np.concatenate(pieces)


def compare(
    recordings: Sequence[Recording], recognise: Callable[[Pcm], str], seed: int, done: Callable[[], None]
) -> list[Coding]:
    """Returns the figures of each loss and way, after those without loss."""
    cases = [(0.0, "–"), *((loss, way) for loss in LOSSES for way in WAYS)]
    words, errors = 0, dict.fromkeys(cases, 0)
    for number, recording in enumerate(recordings):
        sound, wanted = read_recording(recording.path), normalize(recording.transcript or "")
        words += len(wanted)
        for case in cases:
            packets, chance = encode(sound, case[0] or LOSSES[0]), random.Random(1_000 * seed + number)
            lost = [chance.random() < case[0] for _ in packets]
            errors[case] += word_errors(wanted, normalize(recognise(decode(packets, lost, case[1]))))
        done()
    return [
        Coding(100 * loss, way, words, round(100 * count / words, 1)) for (loss, way), count in errors.items()
    ]
