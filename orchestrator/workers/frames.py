"""What crosses between the server and a worker process, and how: 4 bytes of length (big-endian), then msgpack.

The server sends `Configure` first, then `Run` and `Cancel`; a worker answers with `Loading`, then `Ready` or `Unable`,
then reports; `Beat` comes in between. Sans I/O: this file makes bytes and takes them apart.
"""

import struct
from typing import Any

import msgspec
from msgspec import Struct

from orchestrator.scheduling.work import Report, Work, WorkKind

LENGTH_BYTES = 4
_LENGTH = struct.Struct(">I")
LARGEST_FRAME_BYTES = 64 << 20
"""A length beyond this is no frame but noise on the pipe."""

BLOCK_BYTES = 256 * 1024
"""What is received at once, at most; most frames are a few hundred bytes."""


class Configure(Struct, frozen=True, tag="configure"):
    """The first frame: what this worker is. `options` are the engine's own, `beat_s` is the time between beats.

    `environment` is set before any library of the engine is imported. `memory_bytes` is what the process may use of the
    machine's memory; 0: nobody knows.
    """

    kind: WorkKind
    engine: str
    options: dict[str, Any]  # each engine defines and checks its own
    threads: int
    parallel: int
    niceness: int
    beat_s: float
    environment: dict[str, str]
    memory_bytes: int = 0


class Task(Struct, frozen=True, array_like=True):
    """A job as a worker sees it."""

    job_id: str
    work: Work


class Run(Struct, frozen=True, tag="run"):
    """Do these; for the kinds that batch they are one batch."""

    tasks: tuple[Task, ...]


class Cancel(Struct, frozen=True, tag="cancel"):
    """Stop this one within a step."""

    job_id: str


class Loading(Struct, frozen=True, tag="loading"):
    """The worker lives and has begun to load its model."""


class Ready(Struct, frozen=True, tag="ready"):
    """The model is loaded and has done a small real job in `probe_s`. `about` is what the engine says of itself."""

    load_s: float
    probe_s: float
    about: str


class Unable(Struct, frozen=True, tag="unable"):
    """The worker cannot start. `lasting`: trying again without changing something outside is useless."""

    reason: str
    lasting: bool


class Beat(Struct, frozen=True, tag="beat"):
    """Still alive: a thread of the worker could run. `memory_share`: of its accelerator's memory or its own budget,
    what is in use; -1 where that is not known."""

    memory_share: float = -1.0


class Worked(Struct, frozen=True, tag="worked"):
    """When a job was really worked on, on the monotonic clock that all processes of a machine share, in µs. Comes just
    before the job's last report."""

    job_id: str
    began_us: int
    ended_us: int


ToWorker = Configure | Run | Cancel
FromWorker = Loading | Ready | Unable | Beat | Worked | Report

_encoder = msgspec.msgpack.Encoder()
_to_worker: msgspec.msgpack.Decoder[ToWorker] = msgspec.msgpack.Decoder(ToWorker)
_from_worker: msgspec.msgpack.Decoder[FromWorker] = msgspec.msgpack.Decoder(FromWorker)


class BrokenFrame(Exception):
    """The bytes on the pipe are no frames: the worker that sent them cannot be trusted any more."""


def frame(message: ToWorker | FromWorker) -> bytearray:
    """Returns a message as one frame."""
    buffer = bytearray(LENGTH_BYTES)
    _encoder.encode_into(message, buffer, LENGTH_BYTES)
    buffer[:LENGTH_BYTES] = (len(buffer) - LENGTH_BYTES).to_bytes(LENGTH_BYTES, "big")
    return buffer


def frame_length(prefix: bytes | bytearray | memoryview) -> int:
    """Returns how many bytes follow a frame's 4-byte prefix. Raises `BrokenFrame`."""
    length = int.from_bytes(prefix, "big")
    if not 0 < length <= LARGEST_FRAME_BYTES:
        raise BrokenFrame(f"a frame of {length} bytes")
    return length


def to_worker(payload: bytes | bytearray | memoryview) -> ToWorker:
    """Decodes what the server sent. Raises `BrokenFrame`."""
    try:
        return _to_worker.decode(payload)
    except msgspec.DecodeError as fault:
        raise BrokenFrame(str(fault)) from fault


def from_worker(payload: bytes | bytearray | memoryview) -> FromWorker:
    """Decodes what a worker sent. Raises `BrokenFrame`."""
    try:
        return _from_worker.decode(payload)
    except msgspec.DecodeError as fault:
        raise BrokenFrame(str(fault)) from fault


class FrameReader:
    """Takes a stream of bytes as it comes, in place, and shows the frames in it: what is received is not copied again.

    Holds a block of `BLOCK_BYTES`, and for a larger frame one of just its size, until that has come.
    """

    __slots__ = ("_block", "_home", "_start", "_stop")

    def __init__(self) -> None:
        self._home = self._block = memoryview(bytearray(BLOCK_BYTES))
        self._start = self._stop = 0

    def buffer(self) -> memoryview:
        """Returns where the next bytes are to be received, at least one; payloads shown before are over then."""
        if self._start == self._stop:
            self._block, self._start, self._stop = self._home, 0, 0
            return self._home
        begun = self._block[self._start : self._stop]
        size = LENGTH_BYTES + (_LENGTH.unpack_from(begun)[0] if len(begun) >= LENGTH_BYTES else 0)
        if self._start + size > len(self._block):
            self._block = self._home if size <= BLOCK_BYTES else memoryview(bytearray(size))
            self._block[: len(begun)] = begun
            self._start, self._stop = 0, len(begun)
        return self._block[self._stop :]

    def received(self, size: int) -> list[memoryview]:
        """Takes `size` bytes that came into `buffer` and returns the payloads that are complete now, in order. Raises
        `BrokenFrame`."""
        payloads, block, start = [], self._block, self._start
        self._stop += size
        while self._stop - start >= LENGTH_BYTES:
            (length,) = _LENGTH.unpack_from(block, start)
            if not 0 < length <= LARGEST_FRAME_BYTES:
                raise BrokenFrame(f"a frame of {length} bytes")
            stop = start + LENGTH_BYTES + length
            if stop > self._stop:
                break
            payloads.append(block[start + LENGTH_BYTES : stop])
            start = stop
        self._start = start
        return payloads
