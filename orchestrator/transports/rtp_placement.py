"""Where received sound belongs in the session's 16 kHz stream, by RTP time stamps (design §4).

The origin is fixed at the first packet. From then on the distance between two time stamps is the distance between
their sounds: a pause of the sender stays a pause, a burst after a stall lies where it was spoken. The arrival time is
used for one thing only: to know a time stamp that cannot be true, because it lies in the future, from a pause.
"""

from dataclasses import dataclass

from modalities.ports import SPEECH_RATE_HZ
from orchestrator.clock import US_PER_S
from orchestrator.transports.rtp_order import Ordered, SoundCodec

TOLERANCE = SPEECH_RATE_HZ // 100
"""Stamps that are off by no more than this (10 ms) still continue the sound: some senders round them."""

MAX_CONCEALED = SPEECH_RATE_HZ * 60 // 1_000
"""So much of a loss (60 ms) is guessed; the rest is silence, and a new decoder goes on behind it: one that remembers
begins its next packet with the sound from before the loss, at up to full level."""

LEAP_US = 2 * US_PER_S
MAX_DRIFT = 2_000
"""A stamp is not true if its sound would lie this far in the future, measured from the first packet on, with 1/2,000
more for a sender's fast clock: it is a new numbering, or a sender faster than time."""

BACK_TICKS_S = 1
"""A packet in order whose stamp lies further back than this from the one before is a new numbering."""

BEHIND_US = US_PER_S // 2
"""Sound for a time that was filled as silence meanwhile is dropped, but no longer than this: a burst after a stall
catches up faster, a sender whose stamps stood still during its pause never does and is then placed by arrival."""

MAX_PACKET = SPEECH_RATE_HZ * 120 // 1_000
"""The most that one packet may hold: what Opus allows (120 ms, RFC 6716 §2.1.4). One of G.711 has 20 to 60 ms; a longer
one would take its sender's places in the future."""

TICKS = 1 << 32

_SILK = (160, 320, 640, 960)
_HYBRID = (160, 320)
_CELT = (40, 80, 160, 320)


def opus_samples(payload: bytes) -> int:
    """Returns how many 16 kHz samples an Opus packet holds (RFC 6716 §3.1); 0 if it is not one."""
    if not payload:
        return 0
    configuration, count = payload[0] >> 3, payload[0] & 3
    if configuration < 12:
        frame = _SILK[configuration & 3]
    elif configuration < 16:
        frame = _HYBRID[configuration & 1]
    else:
        frame = _CELT[configuration & 3]
    samples = frame * (1, 2, 2, payload[1] & 0x3F if len(payload) > 1 else 0)[count]
    return samples if samples <= MAX_PACKET else 0


def payload_samples(codec: SoundCodec, payload: bytes) -> int:
    """Returns how many 16 kHz samples a payload becomes; 0 if it is not valid, or longer than `MAX_PACKET`."""
    if codec is SoundCodec.OPUS:
        return opus_samples(payload)
    return 2 * len(payload) if 2 * len(payload) <= MAX_PACKET else 0


@dataclass(frozen=True, slots=True)
class Begin:
    """What follows starts at `position`, not where the sound before ended. `fresh`: decode without history."""

    position: int
    fresh: bool


@dataclass(frozen=True, slots=True)
class Decode:
    """This payload is next; it becomes `samples` at 16 kHz."""

    codec: SoundCodec
    payload: bytes
    samples: int


@dataclass(frozen=True, slots=True)
class Conceal:
    """`frames` packets like the last one are lost here: let the decoder guess them (`samples` each at 16 kHz)."""

    frames: int
    samples: int


Step = Begin | Decode | Conceal


class SlidingMinimum:
    """The least value of the last one to two `window_us`, in constant memory."""

    def __init__(self, window_us: int) -> None:
        self._window_us = window_us
        self._began_us: int | None = None
        self._current = self._previous = 0

    def add(self, value: int, now_us: int) -> int:
        """Takes a value in; returns the minimum."""
        if self._began_us is None:
            self._began_us, self._current, self._previous = now_us, value, value
        elif now_us - self._began_us >= self._window_us:
            self._began_us, self._previous, self._current = now_us, self._current, value
        self._current = min(self._current, value)
        return min(self._current, self._previous)

    @property
    def value(self) -> int:
        """The minimum now; 0 before the first value."""
        return min(self._current, self._previous)


class Placement:
    """Turns packets in order into steps for the decoder.

    `base` is the position of the first packet's first sample. `offset_us` follows how far the arrival clock is ahead of
    the sender's: the least transit time seen lately, so that a drift of the sender's clock stays visible.
    """

    def __init__(self, base: int = 0) -> None:
        self._base = base
        self._codec: SoundCodec | None = None
        self._origin_position = base
        self._ticks = 0
        self._timestamp = 0
        self._end = base
        self._last_samples = 0
        self._behind_since_us: int | None = None
        self._anchor_us = self._anchor_transit_us = 0
        self._transit = SlidingMinimum(30 * US_PER_S)
        self._dropped = 0

    @property
    def end(self) -> int:
        """The position after the last sound placed."""
        return self._end

    @property
    def offset_us(self) -> int:
        """Least of (arrival time − time of the position) over the last 30 to 60 s."""
        return self._transit.value

    @property
    def dropped(self) -> int:
        """Packets that were not sound, lay before what is there, or ran ahead of time."""
        return self._dropped

    def now(self, now_us: int) -> int:
        """Returns the position of sound that would be spoken now; `base` before the first packet."""
        if self._codec is None:
            return self._base
        return (now_us - self._transit.value) * SPEECH_RATE_HZ // US_PER_S

    def skip_to(self, position: int) -> None:
        """The stream was filled up to `position` meanwhile (a sender that stopped)."""
        self._end = max(self._end, position)
        self._last_samples = 0

    def place(self, ordered: Ordered) -> tuple[Step, ...]:
        """Returns what to do with the next packet in order; nothing where it is dropped."""
        packet = ordered.packet
        samples = payload_samples(packet.codec, packet.payload)
        if samples == 0:
            self._dropped += 1
            return ()
        fresh = ordered.fresh or packet.codec is not self._codec
        if not fresh:
            delta = (packet.timestamp - self._timestamp + TICKS // 2) % TICKS - TICKS // 2
            position = self._position(self._ticks + delta)
            transit_us = packet.arrived_us - position * US_PER_S // SPEECH_RATE_HZ
            back_ticks = BACK_TICKS_S * packet.codec.clock_hz
            fresh = delta < -back_ticks or transit_us < self._least_transit_us(packet.arrived_us)
        if fresh:
            return self._begin_anew(ordered, samples)
        if position < self._end - TOLERANCE:
            return self._behind(ordered, samples)
        self._behind_since_us = None
        self._timestamp, self._ticks = packet.timestamp, self._ticks + delta
        self._transit.add(transit_us, packet.arrived_us)
        return self._append(ordered, position, samples)

    def _append(self, ordered: Ordered, position: int, samples: int) -> tuple[Step, ...]:
        """Continues the sound, across a loss where the decoder can guess it, or after a pause."""
        codec = ordered.packet.codec
        step = Decode(codec, ordered.packet.payload, samples)
        gap, last = position - self._end, self._last_samples
        self._last_samples = samples
        if gap <= TOLERANCE:
            self._end += samples
            return (step,)
        self._end = position + samples
        if not ordered.missing or codec is not SoundCodec.OPUS or last == 0 or gap % last:
            return (Begin(position, fresh=False), step)
        if gap <= MAX_CONCEALED:
            return (Conceal(gap // last, last), step)
        if gap <= ordered.missing * last:
            return (Conceal(MAX_CONCEALED // last, last), Begin(position, fresh=True), step)
        return (Begin(position, fresh=False), step)

    def _behind(self, ordered: Ordered, samples: int) -> tuple[Step, ...]:
        """Drops sound that comes too late for its place, for a while."""
        now_us = ordered.packet.arrived_us
        if self._behind_since_us is None:
            self._behind_since_us = now_us
        if now_us - self._behind_since_us > BEHIND_US:
            return self._begin_anew(ordered, samples)
        self._dropped += 1
        return ()

    def _begin_anew(self, ordered: Ordered, samples: int) -> tuple[Step, ...]:
        """A first packet, another source, codec or numbering: placed by its arrival, if that lies behind what is there
        (a sender that keeps beginning anew would else fill the stream faster than time)."""
        packet = ordered.packet
        position = self.now(packet.arrived_us)
        if position < self._end:
            self._dropped += 1
            return ()
        transit_us = packet.arrived_us - position * US_PER_S // SPEECH_RATE_HZ
        if self._codec is None:
            self._anchor_us, self._anchor_transit_us = packet.arrived_us, transit_us
        self._codec, self._behind_since_us = packet.codec, None
        self._origin_position, self._ticks, self._timestamp = position, 0, packet.timestamp
        self._transit.add(transit_us, packet.arrived_us)
        self._end, self._last_samples = position + samples, samples
        return (Begin(position, fresh=True), Decode(packet.codec, packet.payload, samples))

    def _least_transit_us(self, now_us: int) -> int:
        return self._anchor_transit_us - LEAP_US - (now_us - self._anchor_us) // MAX_DRIFT

    def _position(self, ticks: int) -> int:
        assert self._codec is not None
        return self._origin_position + ticks * SPEECH_RATE_HZ // self._codec.clock_hz
