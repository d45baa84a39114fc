"""A call's sound on its way in: packets in order, placed, decoded, handed to the session about every 40 ms."""

import asyncio
import logging
from dataclasses import dataclass
from typing import assert_never

import av
import numpy as np

from modalities.ports import SPEECH_RATE_HZ, Pcm
from orchestrator.clock import US_PER_MS, US_PER_S, Clock
from orchestrator.errors import Overloaded
from orchestrator.observability.faults import FAULTS
from orchestrator.sessions.links import AudioIntake
from orchestrator.transports.rtp_order import OrderStatistics, Packet, PacketOrder
from orchestrator.transports.rtp_placement import Begin, Conceal, Decode, Placement, Step
from orchestrator.transports.sound_codecs import SoundDecoder, new_decoder

_log = logging.getLogger(__name__)

SILENT_PIECE = SPEECH_RATE_HZ // 50
STALL_TICK_US = US_PER_S
STALL_MARGIN = SPEECH_RATE_HZ // 5
"""Filled silence stays so far (200 ms) behind the clock: the first packets after an outage come late by the line's
jitter and would else find their places taken."""


@dataclass(frozen=True, slots=True)
class ReceiveSettings:
    """`hold_ms`: how long a hole in the sequence is waited for. `batch_ms`: sound handed on at once, and the longest
    that a packet waits for company. `stall_ms`: a sender that sends nothing for so long has its time filled with
    silence, so that open speech ends."""

    hold_ms: int = 60
    batch_ms: int = 40
    stall_ms: int = 3_000


@dataclass(frozen=True, slots=True)
class ReceiveStatistics:
    """`misplaced`: packets for a time that is over or not yet. `broken`: not decodable, silence instead. `refused`:
    batches that the session had no room for. `concealed`: frames guessed by the decoder."""

    order: OrderStatistics
    misplaced: int
    broken: int
    refused: int
    concealed: int
    stalls: int
    offset_us: int


class SoundReceiver:
    """Decodes one track into one intake. Runs on the loop, by callbacks only: no task, no thread, nothing waits."""

    def __init__(self, intake: AudioIntake, clock: Clock, settings: ReceiveSettings) -> None:
        self._intake = intake
        self._clock = clock
        self._settings = settings
        self._order = PacketOrder(settings.hold_ms * US_PER_MS)
        self._placement = Placement(intake.position)
        self._decoder: SoundDecoder | None = None
        self._steps: list[Step] = []
        self._waiting = 0
        self._waiting_since_us = 0
        self._position = intake.position
        self._stalls_at_us = 0
        self._timer: asyncio.TimerHandle | None = None
        self._guard = FAULTS.guard("call sound")
        self._timer_us = 0
        self._closed = False
        self.heard_us: int | None = None
        """When the last packet came."""
        self._broken = self._refused = self._concealed = self._stalls = 0

    def receive(self, packet: Packet) -> None:
        """Takes a packet as it arrives."""
        if self._closed:
            return
        now_us = self.heard_us = packet.arrived_us
        self._stalls_at_us = now_us + self._settings.stall_ms * US_PER_MS
        for ordered in self._order.receive(packet):
            self._line_up(self._placement.place(ordered), now_us)
        if self._waiting >= self._settings.batch_ms * SPEECH_RATE_HZ // 1_000:
            self._hand_on()
        self._set_timer(now_us)

    def close(self) -> None:
        """Hands on what waits and takes no more. Idempotent."""
        if self._closed:
            return
        self.drop()
        self._hand_on()
        if self._decoder is not None:
            self._append(self._decoder.end())

    def drop(self) -> None:
        """Takes no more, and gives the session nothing any more: it has ended."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()

    def statistics(self) -> ReceiveStatistics:
        """Returns the counters."""
        return ReceiveStatistics(
            order=self._order.statistics(),
            misplaced=self._placement.dropped,
            broken=self._broken,
            refused=self._refused,
            concealed=self._concealed,
            stalls=self._stalls,
            offset_us=self._placement.offset_us,
        )

    def _line_up(self, steps: tuple[Step, ...], now_us: int) -> None:
        if steps and not self._steps:
            self._waiting_since_us = now_us
        for step in steps:
            self._steps.append(step)
            if isinstance(step, Decode):
                self._waiting += step.samples

    def _set_timer(self, now_us: int) -> None:
        """Wakes up for the first of: a batch that waited long enough, a hole given up, a stall."""
        due_us = self._stalls_at_us if self._stalls_at_us > now_us else now_us + STALL_TICK_US
        if self._steps:
            due_us = min(due_us, self._waiting_since_us + self._settings.batch_ms * US_PER_MS)
        if (hole_us := self._order.due_us) is not None:
            due_us = min(due_us, hole_us)
        if self._timer is not None:
            if self._timer_us <= due_us:
                return
            self._timer.cancel()
        self._timer_us = due_us
        delay_s = max(0, due_us - now_us) / US_PER_S
        self._timer = asyncio.get_running_loop().call_later(delay_s, self._wake_up)

    def _wake_up(self) -> None:
        self._timer = None
        now_us = self._clock.now_us()
        with self._guard:  # the timer is set again, whatever happens: without it the call would stay deaf
            self._catch_up(now_us)
        self._set_timer(now_us)

    def _catch_up(self, now_us: int) -> None:
        for ordered in self._order.release(now_us):
            self._line_up(self._placement.place(ordered), now_us)
        if self._steps and now_us >= self._waiting_since_us + self._settings.batch_ms * US_PER_MS:
            self._hand_on()
        self._fill_stall(now_us)

    def _fill_stall(self, now_us: int) -> None:
        """Lets time pass in the stream of a sender that stopped, so that what it began to say comes to an end."""
        if now_us < self._stalls_at_us:
            return
        self._hand_on()
        if self._decoder is not None:
            self._append(self._decoder.end())
        target = self._placement.now(now_us) - STALL_MARGIN
        if target - SILENT_PIECE <= self._intake.position:
            return
        # What comes after is not to begin with the sound that the decoder remembers.
        self._decoder = None
        self._stalls += 1
        self._placement.skip_to(target)
        self._position = target - SILENT_PIECE
        self._append(np.zeros(SILENT_PIECE, np.int16))

    def _hand_on(self) -> None:
        """Decodes what waits and gives it to the session, in one piece per stretch."""
        steps, self._steps, self._waiting = self._steps, [], 0
        pieces: list[Pcm] = []
        for step in steps:
            match step:
                case Begin():
                    self._begin(step, pieces)
                    pieces = []
                case Decode():
                    pieces.append(self._decode(step))
                case Conceal():
                    pieces.extend(self._conceal() for _ in range(step.frames))
                case _:
                    assert_never(step)
        self._append(*pieces)

    def _begin(self, step: Begin, pieces: list[Pcm]) -> None:
        if self._decoder is not None:
            pieces.append(self._decoder.end())
            self._append(*pieces)
        if step.fresh:
            self._decoder = None
        self._position = step.position

    def _decode(self, step: Decode) -> Pcm:
        if self._decoder is None:
            self._decoder = new_decoder(step.codec)
        try:
            return self._decoder.decode(step.payload)
        except av.FFmpegError as error:
            self._broken += 1
            _log.debug("a %s packet could not be decoded: %s", step.codec.value, error)
            return self._decoder.silence(step.samples)

    def _conceal(self) -> Pcm:
        self._concealed += 1
        assert self._decoder is not None
        return self._decoder.conceal()

    def _append(self, *pieces: Pcm) -> None:
        pcm = pieces[0] if len(pieces) == 1 else np.concatenate([np.zeros(0, np.int16), *pieces])
        if len(pcm) == 0:
            return
        try:
            self._intake.append_at(self._position, pcm)
        except Overloaded as error:
            self._refused += 1
            _log.debug("the session refused sound of a call: %s", error)
        self._position += len(pcm)
