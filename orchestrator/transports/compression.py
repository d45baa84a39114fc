"""permessage-deflate for what gains from it: long texts. RFC 7692 §6 leaves the choice to each message.

Most events are a delta of some hundred bytes, where deflate costs more time than it saves; base64 sound hardly shrinks.
An event that shows the session's secret goes as it is: beside what somebody said its length would tell of it, and so
would those behind it.
"""

from collections.abc import Sequence

from websockets.extensions.base import Extension
from websockets.extensions.permessage_deflate import PerMessageDeflate, ServerPerMessageDeflateFactory
from websockets.frames import Frame, Opcode
from websockets.typing import ExtensionParameter

SHORTEST_BYTES = 1_024

_SOUND = b'"type":"response.output_audio.delta"'
_TYPE_WITHIN = 256
_SECRET = b'"secret":"rs_'


class LongTextDeflate(PerMessageDeflate):
    """Reads compressed messages of any size; compresses long ones that gain by it."""

    def encode(self, frame: Frame) -> Frame:
        if frame.opcode is Opcode.TEXT and not gains(bytes(frame.data)):
            return frame
        return super().encode(frame)


def gains(text: bytes) -> bool:
    """Whether a message is worth compressing."""
    return len(text) >= SHORTEST_BYTES and _SOUND not in text[:_TYPE_WITHIN] and _SECRET not in text


class LongTextFactory(ServerPerMessageDeflateFactory):
    """Negotiates as usual, with small windows (about 40 KB per connection), and compresses by `LongTextDeflate`."""

    def __init__(self) -> None:
        super().__init__(
            server_max_window_bits=12, client_max_window_bits=12, compress_settings={"memLevel": 5}
        )

    def process_request_params(
        self, params: Sequence[ExtensionParameter], accepted_extensions: Sequence[Extension]
    ) -> tuple[list[ExtensionParameter], PerMessageDeflate]:
        answer, usual = super().process_request_params(params, accepted_extensions)
        chosen = LongTextDeflate(
            usual.remote_no_context_takeover,
            usual.local_no_context_takeover,
            usual.remote_max_window_bits,
            usual.local_max_window_bits,
            usual.compress_settings,
        )
        return answer, chosen
