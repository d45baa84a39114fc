"""A call as its session sees it, and the writing half of its data channel."""

import asyncio
from collections.abc import Callable

from aiortc import RTCDataChannel

from orchestrator.ids import random_id
from orchestrator.sessions.links import LinkKind, LogEntry, LoggedAudio, LoggedEvent, SessionPort
from orchestrator.transports.fitting import fitting
from orchestrator.transports.outbox import FELL_BEHIND, Closing, Outbox, Told
from orchestrator.transports.playing import PlayoutTrack

HIGH_BYTES = 256 * 1024
LOW_BYTES = 64 * 1024
"""The channel's own buffer: at the high mark the log is read no further, at the low mark it goes on."""

STUCK_AFTER_S = 15.0
"""A channel that stays above its marks for so long belongs to a client that does not read."""

CLOSE_WITHIN_S = 2.0
"""How long a channel may take to send what comes before its end."""

_ENTRIES_AT_ONCE = 16


class CallLink:
    """Sends what its session logs and tells over the data channel, in order (`sessions.links.Link`).

    Sound is not sent here: the session plays it by `playout`. Until the channel opens, numbered entries wait in the log
    and private messages in the outbox. There is no task: `wake` and the channel's own news drive it.
    """

    def __init__(
        self,
        session: SessionPort,
        playout: PlayoutTrack,
        max_message_bytes: int | None,
        stop_listening: Callable[[], None],
    ) -> None:
        self._id = random_id("link", 12)
        self._session = session
        self._playout = playout
        self._max_bytes = max_message_bytes
        self._stop_listening = stop_listening
        self._outbox = Outbox(session)
        self._loop = asyncio.get_running_loop()
        self._channel: RTCDataChannel | None = None
        self._scheduled = False
        self._stuck_timer: asyncio.TimerHandle | None = None
        self._closing_timer: asyncio.TimerHandle | None = None
        self._last: Closing | None = None
        self.ended: asyncio.Future[Closing] = self._loop.create_future()
        """Set once there is nothing more to send."""

    @property
    def id(self) -> str:
        return self._id

    @property
    def kind(self) -> LinkKind:
        return LinkKind.CALL

    @property
    def playout(self) -> PlayoutTrack:
        return self._playout

    def wake(self) -> None:
        self._playout.expect_sound()
        if not self._scheduled and self._channel is not None:
            self._scheduled = True
            self._loop.call_soon(self._write)

    def tell(self, data: bytes) -> None:
        if self._max_bytes is None:
            return  # a call without a data channel hears, and reads nothing
        self._outbox.tell(data)
        self._hurry()
        self.wake()

    def close(self, code: int, reason: str) -> None:
        self._playout.flush()
        self._stop_listening()
        self._outbox.close(Closing(code, reason))
        self._hurry()
        self.wake()

    def start(self, cursor: int) -> None:
        """Lets what follows `cursor` be sent once there is a channel."""
        self._outbox.start(cursor)
        self.wake()

    def open(self, channel: RTCDataChannel) -> None:
        """The client's channel is there."""
        self._channel = channel
        channel.bufferedAmountLowThreshold = LOW_BYTES
        channel.on("bufferedamountlow", self._flows_again)
        channel.on("close", self._channel_closed)
        self.wake()

    def drop(self) -> None:
        """Forgets timers and channel; the call is gone."""
        self._channel = None
        for timer in (self._stuck_timer, self._closing_timer):
            if timer is not None:
                timer.cancel()

    def end(self, closing: Closing) -> None:
        """There is nothing more to send, for this reason. Only the first call counts."""
        if not self.ended.done():
            self.ended.set_result(closing)

    def _write(self) -> None:
        self._scheduled = False
        channel = self._channel
        while channel is not None and channel.readyState == "open" and self._last is None:
            if channel.bufferedAmount > HIGH_BYTES:
                self._wait_for_low()
                return
            try:
                batch = self._outbox.take(_ENTRIES_AT_ONCE)
            except LookupError:
                self.end(FELL_BEHIND)
                return
            if not batch:
                return
            for entry in batch:
                if isinstance(entry, Closing):
                    self._last = entry
                    # The stream is reset behind what was sent; its `close` comes when that was acknowledged.
                    channel.close()
                    return
                self._send(channel, entry)

    def _send(self, channel: RTCDataChannel, entry: LogEntry | Told) -> None:
        match entry:
            case LoggedAudio():
                return
            case LoggedEvent():
                data = entry.shown(LinkKind.CALL)
            case Told():
                data = entry.data
        if self._max_bytes is not None:
            data = fitting(data, self._max_bytes)
        channel.send(data.decode())

    def _wait_for_low(self) -> None:
        if self._stuck_timer is None:
            self._stuck_timer = self._loop.call_later(STUCK_AFTER_S, self.end, FELL_BEHIND)

    def _flows_again(self) -> None:
        if self._stuck_timer is not None:
            self._stuck_timer.cancel()
            self._stuck_timer = None
        self.wake()

    def _channel_closed(self) -> None:
        self.end(self._last or Closing(1000, "The client closed its data channel."))

    def _hurry(self) -> None:
        """Bounds the time that a link which is to end may still take; without a channel none is needed."""
        closing = self._outbox.closing
        if closing is None or self._closing_timer is not None:
            return
        delay_s = CLOSE_WITHIN_S if self._channel is not None else 0
        self._closing_timer = self._loop.call_later(delay_s, self.end, closing)
