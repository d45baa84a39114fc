"""A recording's sound: blocks beside the journal, each readable by itself, without loss. Pure.

A block is the differences between neighbouring samples (int16, wrapping), folded so that small ones are small numbers,
low bytes before high bytes, deflated (RFC 1950). Of speech it keeps about 60 %, at 0.6 ms a second of sound.
A file cut off anywhere gives every block before the cut, which the journal's lines find by place and length.
"""

import zlib
from dataclasses import dataclass

import numpy as np
from msgspec import Struct

from modalities.ports import Pcm


class Mark(Struct, frozen=True, array_like=True):
    """One delivery of sound: when it came, where it belongs, how many samples, and whether its source was paced."""

    at_us: int
    position: int
    samples: int
    live: bool


class Block(Struct, frozen=True, omit_defaults=True):
    """Where sound lies in the file: `bytes` of it from `offset` on, none where it was blanked. `clip`: the name of a
    client's own sound, which has no marks."""

    offset: int
    bytes: int
    samples: int
    marks: tuple[Mark, ...] = ()
    clip: str | None = None


@dataclass(frozen=True, slots=True)
class Delivery:
    """Sound as it came in: samples are 16 kHz int16, `position` counts from the session's first one."""

    at_us: int
    position: int
    pcm: Pcm
    live: bool


def fold(pcm: Pcm) -> bytes:
    """Returns samples as a block."""
    if not len(pcm):
        return b""
    steps = np.diff(pcm.astype("<i2"), prepend=np.int16(0))
    folded = ((steps << 1) ^ (steps >> 15)).astype("<u2")
    return zlib.compress(folded.view(np.uint8).reshape(-1, 2).T.tobytes(), 1)


def unfold(block: bytes) -> Pcm:
    """Returns what `fold` was given. Raises `ValueError` where the block is damaged."""
    if not block:
        return np.zeros(0, np.int16)
    try:
        planes = np.frombuffer(zlib.decompress(block), np.uint8).reshape(2, -1)
    except zlib.error as error:
        raise ValueError(f"a block of sound is damaged: {error}") from None
    folded = np.ascontiguousarray(planes.T).view("<u2").reshape(-1)
    steps = (folded >> 1).astype(np.int16) ^ -(folded & 1).astype(np.int16)
    return np.cumsum(steps, dtype=np.int16)


def deliveries(block: Block, pcm: Pcm) -> list[Delivery]:
    """Returns a block's sound as it had come in; silence where it was blanked."""
    if len(pcm) < block.samples:
        pcm = np.concatenate([pcm, np.zeros(block.samples - len(pcm), np.int16)])
    found, start = [], 0
    for mark in block.marks:
        found.append(Delivery(mark.at_us, mark.position, pcm[start : start + mark.samples], mark.live))
        start += mark.samples
    return found
