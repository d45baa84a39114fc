"""Files of sound: every container is read, nothing else is, and nothing becomes large by being unpacked."""

import contextlib
import io
import subprocess
import sys
import wave
from pathlib import Path

import av
import numpy as np
import pytest

from modalities.audio.pauses import LONGEST
from modalities.ports import SPEECH_RATE_HZ, Pcm
from orchestrator.transports.media import (
    MEDIA_TYPES,
    MOST_FAULTS,
    OPTIONS,
    Piece,
    SoundFile,
    SoundWriter,
    SpeechFormat,
    Unreadable,
)

RATE_HZ = 24_000


def tone(seconds: float, rate_hz: int = RATE_HZ, pitch_hz: float = 440.0) -> Pcm:
    t = np.arange(int(seconds * rate_hz)) / rate_hz
    return (8_000 * np.sin(2 * np.pi * pitch_hz * t)).astype(np.int16)


def pitch_hz(pcm: Pcm, rate_hz: int = SPEECH_RATE_HZ) -> float:
    return float(np.argmax(np.abs(np.fft.rfft(pcm.astype(np.float64))))) * rate_hz / len(pcm)


def pieces_of(data: bytes, most_s: float = 600.0) -> list[Piece]:
    sound = SoundFile(io.BytesIO(data), most_s)
    try:
        pieces = []
        while (piece := sound.next()) is not None:
            pieces.append(piece)
        return pieces
    finally:
        sound.close()


def encoded(
    container: str,
    codec: str,
    pcm: Pcm,
    rate_hz: int = RATE_HZ,
    layout: str = "mono",
    video: tuple[str, int] | None = None,
) -> bytes:
    """A file in a container; `video` is the codec of a moving picture beside it, and its width and height."""
    target = io.BytesIO()
    with av.open(target, "w", format=container) as file:
        stream = file.add_stream(codec, rate=rate_hz, layout=layout)
        assert isinstance(stream, av.AudioStream)
        if video is not None:
            picture = file.add_stream(video[0], rate=1)
            assert isinstance(picture, av.VideoStream)
            picture.width = picture.height = video[1]
            picture.pix_fmt = "rgb24"
            file.mux(picture.encode(av.VideoFrame(video[1], video[1], "rgb24")))
            file.mux(picture.encode(None))
        channels = len(stream.layout.channels)
        frame = av.AudioFrame.from_ndarray(np.repeat(pcm, channels)[None, :], format="s16", layout=layout)
        frame.sample_rate = rate_hz
        file.mux(stream.encode(frame))
        file.mux(stream.encode(None))
    return target.getvalue()


def wav(pcm: Pcm, rate_hz: int = RATE_HZ) -> bytes:
    target = io.BytesIO()
    with wave.open(target, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate_hz)
        file.writeframes(pcm.astype("<i2").tobytes())
    return target.getvalue()


@pytest.mark.parametrize(
    ("container", "codec", "rate_hz", "layout"),
    [
        ("wav", "pcm_s16le", 8_000, "mono"),
        ("wav", "pcm_mulaw", 8_000, "mono"),
        ("wav", "pcm_f32le", 48_000, "stereo"),
        ("mp3", "libmp3lame", 44_100, "stereo"),
        ("mp4", "aac", 48_000, "stereo"),
        ("mov", "alac", 44_100, "mono"),
        ("adts", "aac", 24_000, "mono"),
        ("ogg", "libopus", 48_000, "mono"),
        ("webm", "libopus", 48_000, "stereo"),
        ("matroska", "pcm_s24le", 96_000, "mono"),
        ("flac", "flac", 44_100, "5.1"),
        ("aiff", "pcm_s16be", 22_050, "mono"),
        ("au", "pcm_s16be", 16_000, "mono"),
        ("caf", "pcm_s16le", 16_000, "mono"),
        ("avi", "pcm_s16le", 16_000, "mono"),
        ("mpegts", "mp2", 48_000, "mono"),
        ("wv", "wavpack", 44_100, "mono"),
    ],
)
def test_sound_of_every_container_is_read(container: str, codec: str, rate_hz: int, layout: str) -> None:
    """As one channel of 16 kHz, at its pitch and, but for what codecs add, its length."""
    (piece,) = pieces_of(encoded(container, codec, tone(2.0, rate_hz), rate_hz, layout))
    assert piece.start == 0
    assert abs(len(piece.pcm) / SPEECH_RATE_HZ - 2.0) < 0.2
    assert abs(pitch_hz(piece.pcm) - 440.0) < 3.0


def test_sound_of_a_film_is_read_and_its_picture_is_not() -> None:
    """The picture is never unpacked, not even to find out how it is coloured: it could fill the memory."""
    film = encoded("mov", "aac", tone(1.0, 48_000), 48_000, video=("png", 64))
    (piece,) = pieces_of(film)
    assert abs(pitch_hz(piece.pcm) - 440.0) < 3.0

    def colours(options: dict[str, str]) -> str | None:
        with av.open(io.BytesIO(film), "r", options=options) as file:
            return file.streams.video[0].codec_context.pix_fmt

    assert colours({}) == "rgb24"  # what FFmpeg would do with it
    assert colours(OPTIONS) is None


def test_long_sound_comes_in_pieces() -> None:
    """One after the other, none longer than a recogniser takes, together all of it."""
    pieces = pieces_of(wav(tone(70.0, 16_000), 16_000))
    assert len(pieces) >= 3
    assert all(len(piece.pcm) <= LONGEST for piece in pieces)
    starts = np.cumsum([0, *(len(piece.pcm) for piece in pieces)])
    assert [piece.start for piece in pieces] == starts[:-1].tolist()
    assert starts[-1] == 70 * SPEECH_RATE_HZ


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"RIFF",
        b"hello world" * 1_000,
        b"\x89PNG\r\n\x1a\n" + bytes(5_000),
        b"PK\x03\x04" + bytes(5_000),
        wav(tone(0.0)),
        wav(tone(1.0))[:30],
    ],
)
def test_what_is_no_sound_is_refused(data: bytes) -> None:
    """Nothing, text, pictures, archives, a file without a sample: told as the fault of the file."""
    with pytest.raises(Unreadable) as caught:
        pieces_of(data)
    assert caught.value.param == "file"


def test_file_that_names_other_files_is_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A list of files is a format that FFmpeg reads: here it is none, or it would tell what lies on the server."""
    secret = tmp_path / "secret.wav"
    secret.write_bytes(wav(tone(1.0)))
    monkeypatch.chdir(tmp_path)
    names = [
        "ffconcat version 1.0\nfile secret.wav\n",
        f"ffconcat version 1.0\nfile {secret}\n",
        f"#EXTM3U\n#EXT-X-TARGETDURATION:9\n#EXTINF:9,\nfile://{secret}\n#EXT-X-ENDLIST\n",
        f'<?xml version="1.0"?><smil><body><audio src="{secret}"/></body></smil>',
    ]
    with av.open(io.BytesIO(names[0].encode()), "r") as read:
        assert read.streams.audio  # what FFmpeg would do with it
    for listing in names:
        with pytest.raises(Unreadable):
            pieces_of(listing.encode())


def test_truncated_file_gives_what_is_there() -> None:
    """An upload that broke off, a recorder that was switched off: the sound up to there."""
    for container, codec in (
        ("ogg", "libopus"),
        ("mp3", "libmp3lame"),
        ("flac", "flac"),
        ("wav", "pcm_s16le"),
    ):
        whole = encoded(container, codec, tone(4.0, 48_000), 48_000)
        (piece,) = pieces_of(whole[: len(whole) // 2])
        assert 1.0 < len(piece.pcm) / SPEECH_RATE_HZ < 3.5


def test_broken_packets_are_passed_over_and_many_are_too_many() -> None:
    """Noise in the middle of a file costs a part of it; a file of noise behind a good head comes to an end."""
    whole = bytearray(encoded("mp3", "libmp3lame", tone(4.0, 48_000), 48_000))
    middle = len(whole) // 2
    whole[middle : middle + 500] = np.random.default_rng(1).bytes(500)
    (piece,) = pieces_of(bytes(whole))
    assert len(piece.pcm) / SPEECH_RATE_HZ > 2.0
    noise = bytes(whole[:2_000]) + np.random.default_rng(2).bytes(200_000)
    with contextlib.suppress(Unreadable):
        assert sum(len(piece.pcm) for piece in pieces_of(noise)) < 60 * SPEECH_RATE_HZ


def test_sound_longer_than_allowed_is_refused_while_it_is_unpacked() -> None:
    """An hour of silence is a few kilobytes: it is given up a little behind the bound, not unpacked to its end."""
    bomb = encoded("flac", "flac", np.zeros(600 * 8_000, np.int16), 8_000)
    assert len(bomb) < 200_000
    sound = SoundFile(io.BytesIO(bomb), 60.0)
    with pytest.raises(Unreadable, match="longer than 60 s"):
        list(iter(sound.next, None))
    assert 60.0 < sound.duration_s < 75.0
    sound.close()


def test_sound_whose_rate_is_absurd_is_refused() -> None:
    """One sample a second would be 16,000 times as long here."""
    with pytest.raises(Unreadable, match="Hz"):
        pieces_of(wav(tone(1.0), 1))


def test_format_that_changes_inside_a_file_is_followed() -> None:
    """Two streams of different rates behind each other, as radio stations send them."""
    first = encoded("mp3", "libmp3lame", tone(2.0, 44_100), 44_100)
    second = encoded("mp3", "libmp3lame", tone(2.0, 48_000, 880.0), 48_000, "stereo")
    (piece,) = pieces_of(first + second)
    half = len(piece.pcm) // 2
    assert abs(pitch_hz(piece.pcm[: half - 4_000]) - 440.0) < 5.0
    assert abs(pitch_hz(piece.pcm[half + 4_000 :]) - 880.0) < 5.0


@pytest.mark.parametrize("kind", [kind for kind in MEDIA_TYPES if kind != "pcm"])
def test_written_sound_is_read_again(kind: SpeechFormat) -> None:
    """In pieces of 200 ms, the first of which gives bytes to send at once or soon; the pitch and length are those of
    the sound."""
    pcm = tone(3.0)
    writer = SoundWriter(kind, RATE_HZ)
    step = RATE_HZ // 5
    written = [writer.feed(pcm[at : at + step].astype("<i2").tobytes()) for at in range(0, len(pcm), step)]
    assert any(written[:2])
    (piece,) = pieces_of(b"".join(written) + writer.close())
    assert abs(pitch_hz(piece.pcm) - 440.0) < 3.0
    assert abs(len(piece.pcm) / SPEECH_RATE_HZ - 3.0) < 0.15


def test_written_pcm_is_the_samples_themselves() -> None:
    """No head, nothing added."""
    writer = SoundWriter("pcm", RATE_HZ)
    assert writer.feed(b"abcd") + writer.close() == b"abcd"


@pytest.mark.parametrize("kind", list(MEDIA_TYPES))
def test_written_file_without_sound_ends(kind: SpeechFormat) -> None:
    """Nothing was said: the file is closed without a fault."""
    SoundWriter(kind, RATE_HZ).close()


def test_file_whose_rest_is_broken_is_heard_up_to_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """Packets beyond number that cannot be decoded end the file: what was decoded before them is not lost with them,
    and a file of nothing else is no sound."""

    class Broken:
        def decode(self) -> list[av.AudioFrame]:
            raise av.InvalidDataError(1, "broken")

    def heard(whole: int) -> int:
        sound = SoundFile(io.BytesIO(encoded("wav", "pcm_s16le", tone(2.0))), 60.0)
        sound._open()
        packets = [packet for packet in sound._packets if packet.size]
        monkeypatch.setattr(sound, "_packets", iter([*packets[:whole], *[Broken()] * (MOST_FAULTS + 50)]))
        pieces = []
        while (piece := sound.next()) is not None:
            pieces.append(len(piece.pcm))
        return sum(pieces)

    assert heard(1_000) >= 1.9 * SPEECH_RATE_HZ
    with pytest.raises(Unreadable):
        heard(0)


def test_importing_the_doors_starts_no_thread() -> None:
    """Threads for media come with the first file."""
    code = "import threading, orchestrator.transports.media; assert threading.active_count() == 1"
    subprocess.run([sys.executable, "-c", code], check=True)
