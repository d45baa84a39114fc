"""Sound of a session on its way to a WebSocket: logged PCM to ``response.output_audio.delta``."""

import base64
from collections.abc import Callable

import numpy as np

from modalities.audio import g711
from modalities.audio.frame import pcm_of
from modalities.audio.resample import ZERO_CROSSINGS, Resampler
from modalities.ports import Pcm
from orchestrator.sessions.links import LogEntry, LoggedAudio
from orchestrator.transports.inlet import PCM_RATE_HZ
from orchestrator.wire import codec
from orchestrator.wire.server import AudioDelta

Reading = Callable[[int, int], list[tuple[int, LogEntry]]]
"""`SessionPort.read`."""

_DOWN = PCM_RATE_HZ // g711.RATE_HZ

_MEMORY = 3 * ZERO_CROSSINGS * _DOWN
"""Of sound before a cursor, what comes behind it may still depend on so many samples, less a third."""

_LOOK_BACK = 64
"""Entries looked through at a time for the sound before a cursor …"""

_FARTHEST = 1_024
"""… and all together."""


class Outlet:
    """Encodes the sound of one link. In G.711 the resampler's last milliseconds are sent with the entry that says that
    no more follows. A link that comes in the middle of a sound gets the samples that it would have got had it been
    there from the beginning, as long as the log holds what was shortly before."""

    def __init__(self, read: Reading) -> None:
        self._read = read
        self._resampler = Resampler(PCM_RATE_HZ, g711.RATE_HZ)
        self._item_id: str | None = None

    def encode(self, audio: LoggedAudio) -> list[bytes]:
        """Returns the events for one piece of sound, under its `event_id`: one, or none while the piece is too short to
        give a sample."""
        sound = self.sound(audio)
        return [_delta(audio, sound)] if sound else []

    def sound(self, audio: LoggedAudio) -> bytes:
        """Returns the bytes of one piece of sound in its format; none while the piece is too short for a sample."""
        if audio.format.type == "audio/pcm":
            return audio.pcm
        if self._item_id != audio.item_id:
            self._begin(audio)
        self._item_id = None if audio.last else audio.item_id
        sound = self._resampler.feed(pcm_of(audio.pcm))
        if audio.last:
            sound = np.concatenate((sound, self._resampler.flush()))
        encode = g711.encode_mulaw if audio.format.type == "audio/pcmu" else g711.encode_alaw
        return encode(sound) if len(sound) else b""

    def _begin(self, audio: LoggedAudio) -> None:
        """Makes the resampler stand where `audio` begins."""
        self._resampler.flush()
        if not audio.start:
            return
        before = self._before(audio)
        # Every third sample becomes one: counted from the item's beginning, whatever is left of it.
        begin = audio.start - sum(len(pcm) for pcm in before)
        self._resampler.feed(np.zeros(begin % _DOWN, dtype=np.int16))
        for pcm in before:
            self._resampler.feed(pcm)

    def _before(self, audio: LoggedAudio) -> list[Pcm]:
        """Returns the pieces of the same item in front of `audio`, from the oldest that still matters."""
        found: list[Pcm] = []
        wanted = min(_MEMORY, audio.start)
        stop = int(audio.event_id.rpartition("_")[2]) - 1
        step, farthest = _LOOK_BACK, max(0, stop - _FARTHEST)
        while stop > farthest and sum(map(len, found)) < wanted:
            start = max(farthest, stop - step)
            try:
                entries = self._read(start, stop - start)
            except LookupError:
                step //= 2
                if not step:
                    break  # it is gone: a seam, at the right place
                continue
            for _, entry in reversed(entries):
                if isinstance(entry, LoggedAudio) and entry.item_id == audio.item_id:
                    found.insert(0, pcm_of(entry.pcm))
            stop = start
        return found


def _delta(audio: LoggedAudio, sound: bytes) -> bytes:
    """Returns the event that carries `sound`."""
    return codec.encode(
        AudioDelta(
            response_id=audio.response_id,
            item_id=audio.item_id,
            output_index=audio.output_index,
            content_index=audio.content_index,
            delta=base64.b64encode(sound).decode("ascii"),
        ),
        audio.event_id,
    )
