"""Files of sound in, files of sound out, by FFmpeg's libraries. Everything here blocks: what is read is read in a
process of its own (`sound_child`), what is written in a thread.

Files come from anybody. Only formats and codecs of sound are opened, none of which names another file or address, and
what would last too long when it is unpacked is refused while it is being unpacked.
"""

import struct
from collections import deque
from dataclasses import dataclass
from typing import BinaryIO, Literal

import av
import numpy as np
from av.audio import AudioStream
from av.container import InputContainer

from modalities.audio.pauses import PauseCutter
from modalities.ports import SPEECH_RATE_HZ, Pcm
from orchestrator.errors import WireError

FORMATS = (
    "aac,ac3,aiff,amr,amrnb,amrwb,asf,au,avi,caf,eac3,flac,flv,matroska,webm,matroska\\,webm,mov,mp3,mp4,m4a,3gp,3g2,mj2,"
    "mpeg,mpegts,ogg,opus,w64,wav,wv"
)
"""Demultiplexers by FFmpeg's names. None of them follows references to other files: playlists do."""

CODECS = (
    "aac,aac_fixed,aac_latm,ac3,ac3_fixed,adpcm_ima_wav,adpcm_ms,alac,amrnb,amrwb,eac3,flac,gsm,gsm_ms,libopus,"
    "libvorbis,mp1,mp1float,mp2,mp2float,mp3,mp3float,opus,pcm_alaw,pcm_f32be,pcm_f32le,pcm_f64be,pcm_f64le,pcm_mulaw,"
    "pcm_s16be,pcm_s16le,pcm_s24be,pcm_s24le,pcm_s32be,pcm_s32le,pcm_s8,pcm_u8,vorbis,wavpack,wmav1,wmav2,wmapro"
)
"""Decoders that may run, while a file is being looked at too: pictures inside of it are not unpacked."""

RATES_HZ = range(4_000, 384_001)
MOST_CHANNELS = 64
MOST_FAULTS = 200
"""Broken packets of a file that are passed over."""

MOST_PIECES = 64
"""Pieces that one decoded frame may complete."""

OPTIONS = {
    "format_whitelist": FORMATS,
    "codec_whitelist": CODECS,
    "probesize": "1000000",
    "analyzeduration": "5000000",
}

SpeechFormat = Literal["mp3", "opus", "aac", "flac", "wav", "pcm"]

MEDIA_TYPES: dict[SpeechFormat, str] = {
    "mp3": "audio/mpeg",
    "opus": "audio/ogg",
    "aac": "audio/aac",
    "flac": "audio/flac",
    "wav": "audio/wav",
    "pcm": "audio/pcm",
}


class Unreadable(WireError):
    """A file that is no sound, or none that this server reads."""

    def __init__(self, message: str) -> None:
        super().__init__("invalid_value", message, "file")


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of a file: 16 kHz mono from sample `start` on."""

    start: int
    pcm: Pcm


class SoundFile:
    """A file that is decoded piece by piece: what is in memory is one piece, however long the file is."""

    def __init__(self, file: BinaryIO, most_s: float) -> None:
        """`most_s`: a longer file is refused once so much has been decoded. Nothing is read yet."""
        self._file = file
        self._most = int(most_s * SPEECH_RATE_HZ)
        self._container: InputContainer | None = None
        self._resampler = _resampler()
        self._cutter = PauseCutter()
        self._ready: deque[Pcm] = deque(maxlen=MOST_PIECES)
        self._faults = 0
        self._given = 0
        self._decoded = 0
        self._ended = False

    @property
    def duration_s(self) -> float:
        """How much has been decoded so far."""
        return self._decoded / SPEECH_RATE_HZ

    def next(self) -> Piece | None:
        """Decodes up to the next piece and returns it; None behind the last one. Raises `Unreadable`."""
        if self._container is None:
            self._open()
        while not self._ready and not self._ended:
            self._step()
        if not self._ready:
            return None
        pcm = self._ready.popleft()
        piece = Piece(self._given, pcm)
        self._given += len(pcm)
        return piece

    def close(self) -> None:
        """Lets go of the file. Idempotent."""
        if self._container is not None:
            self._container.close()
        self._file.close()

    def _open(self) -> None:
        try:
            self._container = av.open(self._file, "r", options=OPTIONS, metadata_errors="ignore")
        except (av.FFmpegError, ValueError, OSError):
            raise Unreadable("The file is not sound in a format that this server reads.") from None
        streams = self._container.streams.audio
        if not streams:
            raise Unreadable("There is no sound in the file.")
        self._stream: AudioStream = streams[0]
        self._packets = self._container.demux(self._stream)

    def _step(self) -> None:
        """Decodes one packet."""
        try:
            packet = next(self._packets, None)
            frames = packet.decode() if packet is not None else []
        except (av.FFmpegError, ValueError, OSError) as fault:
            self._faults += 1
            if self._faults > MOST_FAULTS or isinstance(fault, EOFError):
                self._end()  # what was heard until here is heard to its end
            return
        for frame in frames:
            if isinstance(frame, av.AudioFrame):
                self._take(frame)
        if packet is None:
            self._end()

    def _take(self, frame: av.AudioFrame) -> None:
        if frame.sample_rate not in RATES_HZ or len(frame.layout.channels) > MOST_CHANNELS:
            raise Unreadable(f"Sound of {frame.sample_rate} Hz in so many channels is not read here.")
        try:
            converted = self._resampler.resample(frame)
        except ValueError:  # the format changes inside of the file
            self._keep(self._resampler.resample(None))
            self._resampler = _resampler()
            converted = self._resampler.resample(frame)
        self._keep(converted)

    def _keep(self, frames: list[av.AudioFrame]) -> None:
        for frame in frames:
            pcm = frame.to_ndarray()[0]
            self._decoded += len(pcm)
            if self._decoded > self._most:
                raise Unreadable(f"The sound is longer than {self._most / SPEECH_RATE_HZ:g} s.")
            self._ready.extend(self._cutter.feed(pcm))

    def _end(self) -> None:
        self._ended = True
        self._keep(self._resampler.resample(None))
        if len(rest := self._cutter.close()):
            self._ready.append(rest)
        if not self._decoded:
            raise Unreadable("There is no sound in the file.")


def _resampler() -> av.AudioResampler:
    return av.AudioResampler(format="s16", layout="mono", rate=SPEECH_RATE_HZ)


class _Sink:
    """What a multiplexer has written and nobody has taken. It cannot go back: the beginning has been sent by then."""

    def __init__(self) -> None:
        self._written: list[bytes] = []

    def write(self, data: bytes) -> int:
        self._written.append(bytes(data))
        return len(data)

    def take(self) -> bytes:
        data = b"".join(self._written)
        self._written.clear()
        return data


class SoundWriter:
    """Makes a file of sound while it is being spoken: what is written so far can be sent."""

    def __init__(self, kind: SpeechFormat, rate_hz: int) -> None:
        self._kind = kind
        self._rate_hz = rate_hz
        self._sink = _Sink()
        self._pts = 0
        self._head = wav_head(rate_hz) if kind == "wav" else b""
        if kind not in ("wav", "pcm"):
            container, codec, options = _WRITTEN[kind]
            self._container = av.open(self._sink, "w", format=container, options=options)
            stream = self._container.add_stream(codec, rate=rate_hz, layout="mono")
            assert isinstance(stream, AudioStream)
            self._stream = stream

    def feed(self, pcm: bytes) -> bytes:
        """Takes int16 little-endian samples; returns what of the file is new."""
        if self._kind in ("wav", "pcm"):
            head, self._head = self._head, b""
            return head + pcm
        samples = np.frombuffer(pcm, dtype="<i2")
        if len(samples):
            frame = av.AudioFrame.from_ndarray(samples[None, :], format="s16", layout="mono")
            frame.sample_rate = self._rate_hz
            frame.pts = self._pts
            self._pts += len(samples)
            self._container.mux(self._stream.encode(frame))
        return self._sink.take()

    def close(self) -> bytes:
        """The sound ends: returns the rest of the file."""
        if self._kind in ("wav", "pcm"):
            head, self._head = self._head, b""
            return head
        self._container.mux(self._stream.encode(None))
        self._container.close()
        return self._sink.take()


_WRITTEN: dict[str, tuple[str, str, dict[str, str]]] = {
    "mp3": ("mp3", "libmp3lame", {"write_xing": "0", "id3v2_version": "0"}),
    "opus": ("ogg", "libopus", {"page_duration": "100000"}),
    "aac": ("adts", "aac", {}),
    "flac": ("flac", "flac", {}),
}
"""Container, encoder and options: none needs to go back to the beginning of the file."""


def wav_head(rate_hz: int) -> bytes:
    """Returns the head of a WAV file whose length is not known yet: it says the longest there is."""
    unknown = 0xFFFF_FFFF
    return struct.pack(
        "<4sI4s4sIHHIIHH4sI",
        b"RIFF", unknown, b"WAVE", b"fmt ", 16, 1, 1, rate_hz, 2 * rate_hz, 2, 16, b"data", unknown,
    )  # fmt: skip
