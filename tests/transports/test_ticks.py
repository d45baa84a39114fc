"""No ticks at the borders of chunks (F-S1), on every way that resamples: sound in chunks of 20 ms beside one chunk.

The speech worker's way is in tests/workers/test_speak.py, the resampler's own beside it (`test_resample`).
"""

from collections.abc import Callable

import numpy as np
import pytest
from av import AudioFrame

from modalities.audio import g711
from modalities.audio.resample import Resampler
from modalities.ports import Pcm
from orchestrator.transports.inlet import Inlet
from orchestrator.transports.outlet import Outlet
from orchestrator.transports.rtp_order import SoundCodec
from orchestrator.transports.sound_codecs import G711Encoder, To16k
from orchestrator.transports.tracks import FRAME_BYTES
from orchestrator.wire.session import PCM, AudioFormat
from tests.transports.test_outlet import ALAW, MULAW, NOTHING, Log, sound_of

LEAST_DB = -60.0


def sine(rate_hz: int) -> Pcm:
    """440 Hz, two seconds."""
    at = np.arange(2 * rate_hz) / rate_hz
    pcm: Pcm = (10_000 * np.sin(2 * np.pi * 440 * at)).astype(np.int16)
    return pcm


def chunks(pcm: Pcm, rate_hz: int) -> list[Pcm]:
    """20 ms each."""
    return [pcm[at : at + rate_hz // 50] for at in range(0, len(pcm), rate_hz // 50)]


def error_db(found: Pcm, wanted: Pcm) -> float:
    """The level of the difference, over that of what is wanted."""
    assert len(found) == len(wanted)
    error = found.astype(float) - wanted
    return float(10 * np.log10((np.mean(error**2) + 1e-12) / np.mean(wanted.astype(float) ** 2)))


def to_16k(pieces: list[Pcm], rate_hz: int) -> Pcm:
    resampler = To16k(rate_hz)
    frames = []
    for piece in pieces:
        frame = AudioFrame.from_ndarray(piece[None, :], format="s16", layout="mono")
        frame.sample_rate = rate_hz
        frames.append(resampler.push(frame))
    return np.concatenate([*frames, resampler.end()])


@pytest.mark.parametrize("rate_hz", [48_000, 8_000])
def test_sound_of_a_call_has_no_ticks(rate_hz: int) -> None:
    """F-S1: Opus (48 kHz) and G.711 (8 kHz) on their way to 16 kHz; 24 samples at a time may give nothing."""
    whole, cut = to_16k([sine(rate_hz)], rate_hz), to_16k(chunks(sine(rate_hz), rate_hz), rate_hz)
    assert error_db(cut, whole) < LEAST_DB
    tiny = [sine(rate_hz)[at : at + 24] for at in range(0, 2 * rate_hz, 24)]
    assert error_db(to_16k(tiny, rate_hz), whole) < LEAST_DB


def test_sound_to_a_call_in_g711_has_no_ticks() -> None:
    """F-S1: 24 kHz in frames of 20 ms to 8 kHz: to the bit what all of it in one piece gives."""
    encoder = G711Encoder(SoundCodec.PCMU)
    sound = sine(24_000).tobytes()
    cut = b"".join(encoder.encode(sound[at : at + FRAME_BYTES]) for at in range(0, len(sound), FRAME_BYTES))
    whole = g711.encode_mulaw(Resampler(24_000, 8_000).feed(sine(24_000)))
    late = len(cut) - len(whole)
    assert 0 <= late < 80
    assert cut[late:] == whole


@pytest.mark.parametrize(("audio_format", "rate_hz"), [(PCM, 24_000), (MULAW, 8_000), (ALAW, 8_000)])
def test_sound_of_a_websocket_has_no_ticks(audio_format: AudioFormat, rate_hz: int) -> None:
    """F-S1: appends of 20 ms in each format, on their way to 16 kHz."""
    code: dict[str, Callable[[Pcm], bytes]] = {
        "audio/pcm": lambda pcm: pcm.tobytes(),
        "audio/pcmu": g711.encode_mulaw,
        "audio/pcma": g711.encode_alaw,
    }

    def heard(pieces: list[Pcm]) -> Pcm:
        inlet = Inlet()
        coded = [code[audio_format.type](piece) for piece in pieces]
        return np.concatenate(
            [*(pcm for sound in coded for pcm in inlet.feed(sound, audio_format)), inlet.flush()]
        )

    assert error_db(heard(chunks(sine(rate_hz), rate_hz)), heard([sine(rate_hz)])) < LEAST_DB


@pytest.mark.parametrize("audio_format", [MULAW, ALAW])
def test_sound_to_a_websocket_in_g711_has_no_ticks(audio_format: AudioFormat) -> None:
    """F-S1: pieces of 20 ms, and of 2 samples that give nothing by themselves, are to the bit what one piece gives."""

    def sent(pieces: list[Pcm]) -> bytes:
        log = Log()
        for piece in pieces:
            log.speak(piece, audio_format)
        log.speak(NOTHING, audio_format, last=True)
        return sound_of(log.heard(Outlet(log.read)))

    whole = sent([sine(24_000)])
    assert sent(chunks(sine(24_000), 24_000)) == whole
    tiny = [sine(24_000)[at : at + 2] for at in range(0, 480, 2)]
    assert sent(tiny) == sent([sine(24_000)[:480]])
    assert len(whole) == 16_000
