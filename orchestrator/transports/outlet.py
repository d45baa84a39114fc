"""Sound of a session on its way to a WebSocket: logged PCM to ``response.output_audio.delta``."""

import base64

from modalities.audio import g711
from modalities.audio.frame import pcm_of
from modalities.audio.resample import Resampler
from modalities.ports import Pcm
from orchestrator.sessions.links import LoggedAudio, LoggedEvent
from orchestrator.transports.inlet import PCM_RATE_HZ
from orchestrator.wire import codec
from orchestrator.wire.server import AudioDelta

_AUDIO_DONE = b'"type":"response.output_audio.done"'
_TYPE_WITHIN = 256


class Outlet:
    """Encodes the sound of one link. In G.711 the resampler's last milliseconds are sent before the response's sound is
    declared done, in a delta of their own."""

    def __init__(self) -> None:
        self._resampler = Resampler(PCM_RATE_HZ, g711.RATE_HZ)
        self._open: LoggedAudio | None = None
        self._law = ""

    def encode(self, audio: LoggedAudio) -> list[bytes]:
        """Returns the events for one piece of sound: one, or none while the piece is too short to give a sample."""
        if audio.format.type == "audio/pcm":
            return [_delta(audio, audio.pcm, audio.event_id)]
        if self._open is not None and self._open.item_id != audio.item_id:
            self._resampler.flush()
        self._open, self._law = audio, audio.format.type
        return self._coded(audio, self._resampler.feed(pcm_of(audio.pcm)), audio.event_id)

    def before(self, event: LoggedEvent) -> list[bytes]:
        """Returns what has to be sent before `event`: the end of a sound that it declares done."""
        if self._open is None or _AUDIO_DONE not in event.data[:_TYPE_WITHIN]:
            return []
        audio, self._open = self._open, None
        # The id is unique and ends in the log's number, as all do.
        return self._coded(audio, self._resampler.flush(), f"rest_{audio.event_id}")

    def _coded(self, audio: LoggedAudio, pcm: Pcm, event_id: str) -> list[bytes]:
        if not len(pcm):
            return []
        encode = g711.encode_mulaw if self._law == "audio/pcmu" else g711.encode_alaw
        return [_delta(audio, encode(pcm), event_id)]


def _delta(audio: LoggedAudio, sound: bytes, event_id: str) -> bytes:
    """Returns the event that carries `sound`."""
    return codec.encode(
        AudioDelta(
            response_id=audio.response_id,
            item_id=audio.item_id,
            output_index=audio.output_index,
            content_index=audio.content_index,
            delta=base64.b64encode(sound).decode("ascii"),
        ),
        event_id,
    )
