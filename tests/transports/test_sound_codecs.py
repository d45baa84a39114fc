"""Coding in both directions: lengths to the sample, delays of a few milliseconds, silence for nothing."""

import os

import numpy as np
import pytest

from modalities.ports import Pcm
from orchestrator.clients.microphone import Microphone
from orchestrator.transports.rtp_order import SoundCodec
from orchestrator.transports.rtp_placement import payload_samples
from orchestrator.transports.sound_codecs import OpusDecoder, OpusEncoder, new_decoder, new_encoder
from orchestrator.transports.tracks import FRAME_SAMPLES, RATE_HZ

CODECS = list(SoundCodec)


def tone(frames: int, hz: float = 440.0, level: int = 8_000) -> list[bytes]:
    at = np.arange(frames * FRAME_SAMPLES) / RATE_HZ
    pcm = (level * np.sin(2 * np.pi * hz * at)).astype("<i2")
    return [pcm[start : start + FRAME_SAMPLES].tobytes() for start in range(0, len(pcm), FRAME_SAMPLES)]


def level_db(pcm: Pcm) -> float:
    return float(20 * np.log10(np.sqrt(np.mean(pcm.astype(float) ** 2)) + 1e-9))


@pytest.mark.parametrize("codec", CODECS)
def test_what_is_decoded_is_as_long_as_its_head_says(codec: SoundCodec) -> None:
    """Stretch by stretch: decoded plus `end` is the sum of the packets' lengths, also in a second stretch."""
    encoder, decoder = new_encoder(codec), new_decoder(codec)
    packets = [encoder.encode(frame) for frame in tone(60)]
    for stretch in (packets[:20], packets[20:21], packets[21:]):
        decoded = sum(len(decoder.decode(packet)) for packet in stretch) + len(decoder.end())
        assert decoded == sum(payload_samples(codec, packet) for packet in stretch) == 320 * len(stretch)
    assert len(decoder.end()) == 0


@pytest.mark.parametrize("codec", CODECS)
def test_sound_survives_both_ways_with_a_delay_under_6_ms(codec: SoundCodec) -> None:
    """24 kHz → packets → 16 kHz: a sweep is there, as loud, and hardly later."""
    encoder, decoder = new_encoder(codec), new_decoder(codec)
    at = np.arange(RATE_HZ) / RATE_HZ
    sweep = (8_000 * np.sin(2 * np.pi * (200 + 1_000 * at) * at)).astype("<i2")
    frames = [sweep[start : start + FRAME_SAMPLES].tobytes() for start in range(0, RATE_HZ, FRAME_SAMPLES)]
    pcm = np.concatenate([decoder.decode(encoder.encode(frame)) for frame in frames]).astype(float)
    at = np.arange(4_800, 14_400) / 16_000
    delays_ms = np.arange(-5, 60, 0.25)
    fits = [
        np.dot(pcm[4_800:14_400], np.sin(2 * np.pi * (200 + 1_000 * (at - ms / 1e3)) * (at - ms / 1e3)))
        for ms in delays_ms
    ]
    assert 0 <= delays_ms[int(np.argmax(fits))] < 6
    assert level_db(pcm[4_800:14_400]) == pytest.approx(20 * np.log10(8_000 / np.sqrt(2)), abs=1)


def test_a_second_stretch_starts_at_its_first_sample() -> None:
    """The tail of the one before neither leaks into it nor is lost: an edge lies where it was put."""
    decoder, encoder = new_decoder(SoundCodec.PCMU), new_encoder(SoundCodec.PCMU)
    silence = encoder.encode(None)
    loud = bytes([0x80]) * 160
    first = np.concatenate([decoder.decode(loud), decoder.end()])
    second = np.concatenate([decoder.decode(silence), decoder.decode(loud), decoder.end()])
    assert (len(first), len(second)) == (320, 640)
    assert np.abs(first[-40:].astype(int)).max() > 20_000
    assert np.abs(second[:280].astype(int)).max() < 1_000
    assert np.abs(second[330:-4].astype(int)).min() > 20_000


def test_a_lost_opus_packet_is_guessed() -> None:
    """Within a tone the guess is a tone, of a packet's length, fading over a few."""
    encoder, decoder = OpusEncoder(), OpusDecoder()
    packets = [encoder.encode(frame) for frame in tone(30)]
    spoken = [decoder.decode(packet) for packet in packets][-1]
    guesses = [decoder.conceal() for _ in range(3)]
    assert [len(guess) for guess in guesses] == [320] * 3
    assert level_db(guesses[0]) > level_db(spoken) - 10
    assert level_db(guesses[2]) < level_db(guesses[0])


def test_opus_at_rest_repeats_one_tiny_packet_and_wakes_up_again() -> None:
    """Silence is 3 bytes and no coding; the first frame of sound after it is heard in full."""
    encoder, decoder = OpusEncoder(), OpusDecoder()
    for frame in tone(20):
        encoder.encode(frame)
    silent = [encoder.encode(None) for _ in range(50)]
    assert len(set(silent[30:])) == 1
    assert len(silent[-1]) <= 3
    assert np.abs(np.concatenate([decoder.decode(packet) for packet in silent[20:]]).astype(int)).max() <= 2
    back = np.concatenate([decoder.decode(encoder.encode(frame)) for frame in tone(10)])
    assert level_db(back[640:]) == pytest.approx(20 * np.log10(8_000 / np.sqrt(2)), abs=1)


@pytest.mark.parametrize("codec", CODECS)
def test_a_packet_is_20_ms_of_the_codecs_clock(codec: SoundCodec) -> None:
    """Time stamps advance by what the clock of RTP says."""
    encoder = new_encoder(codec)
    assert encoder.clock_hz == codec.clock_hz
    assert encoder.ticks * 50 == codec.clock_hz


def test_the_same_faint_packet_again_and_again_decodes_as_it_always_did() -> None:
    """Not decoding it is heard by nobody: not in the silence, and not in what is said behind it."""
    quiet = Microphone()._silence
    encoder, plain, ours = OpusEncoder(), OpusDecoder(), OpusDecoder()
    word = [encoder.encode(pcm) for pcm in tone(10)]
    for payload in [*word, *[quiet] * 200, *word]:
        plain._same = 0
        assert np.abs(plain.decode(payload).astype(int) - ours.decode(payload)).max(initial=0) <= 1
    ours._run = None  # type: ignore[method-assign,assignment]
    with pytest.raises(TypeError):
        ours.decode(quiet)


def test_a_muted_sender_is_not_decoded() -> None:
    """Half a second shows what its packet is; a lost packet or any other ends that."""
    quiet, decoder = Microphone()._silence, OpusDecoder()
    for _ in range(60):
        last = decoder.decode(quiet)
    usual = decoder._run
    decoder._run = None  # type: ignore[method-assign,assignment]
    assert np.array_equal(decoder.decode(quiet), last)
    decoder._run = usual  # type: ignore[method-assign]
    decoder.conceal()
    decoder._run = None  # type: ignore[method-assign,assignment]
    with pytest.raises(TypeError):
        decoder.decode(quiet)


def test_a_loud_packet_is_decoded_however_often_it_comes() -> None:
    """What can be heard goes on in the decoder's own way."""
    payload, decoder = OpusEncoder().encode(tone(1)[0]), OpusDecoder()
    for _ in range(60):
        decoder.decode(payload)
    decoder._run = None  # type: ignore[method-assign,assignment]
    with pytest.raises(TypeError):
        decoder.decode(payload)


def test_silent_g711_is_coded_once() -> None:
    """What is repeated is what coding it again gives, and sound behind it is coded as ever."""
    encoder, plain = new_encoder(SoundCodec.PCMU), new_encoder(SoundCodec.PCMU)
    word = tone(1)[0]
    for pcm in [word, *[None] * 5, word, word]:
        assert encoder.encode(pcm) == plain.encode(bytes(960) if pcm is None else pcm)


@pytest.mark.parametrize("codec", SoundCodec)
def test_decoders_have_no_threads_of_their_own(codec: SoundCodec) -> None:
    """A hundred calls on a machine of many processors would have thousands, all of them idle."""
    packet = new_encoder(codec).encode(bytes(range(240)) * 4)
    before = len(os.listdir("/proc/self/task"))
    decoders = [new_decoder(codec) for _ in range(10)]
    for decoder in decoders:
        decoder.decode(packet)
    assert len(os.listdir("/proc/self/task")) <= before
