"""Gives a reader of frames what a test has."""

from orchestrator.workers.frames import FrameReader


def feed(reader: FrameReader, received: bytes) -> list[bytes]:
    """Returns copies of the payloads that are complete now, in order. Raises `BrokenFrame`."""
    payloads = []
    rest = memoryview(received)
    while rest:
        room = reader.buffer()
        size = min(len(room), len(rest))
        room[:size] = rest[:size]
        payloads += [bytes(payload) for payload in reader.received(size)]
        rest = rest[size:]
    return payloads
