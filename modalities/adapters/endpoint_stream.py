"""One streamed request, read by a thread of its own, so that a silent endpoint never holds its caller."""

import contextlib
import queue
import socket
import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Any, Protocol

_WAITING = 256
"""Chunks read ahead of the caller. The reader waits when they are this many; the connection then holds the endpoint."""


class EndpointStream(Protocol):
    """What the openai client returns for a streamed request."""

    response: Any  # httpx's response; the client brings its own version of it

    def __iter__(self) -> Iterator[Any]: ...

    def close(self) -> None: ...


Open = Callable[[], EndpointStream]
Again = Callable[[Exception, int], float | None]
"""What a failure before the first chunk means, after so many tries: seconds until the next, None to give up."""


class StreamReader:
    """Opens a stream and reads its chunks. Use it in a ``with`` block, whose end hangs up.

    A failure before the first chunk is tried again as `again` says; later ones are the caller's.
    """

    def __init__(self, open_stream: Open, again: Again, faults: tuple[type[Exception], ...]) -> None:
        self._open = open_stream
        self._again = again
        self._faults = faults
        self._chunks: queue.Queue[Any] = queue.Queue(_WAITING)
        self._closed = threading.Event()
        self._lock = threading.Lock()
        self._stream: EndpointStream | None = None
        self._thread = threading.Thread(target=self._run, name="endpoint-reader", daemon=True)

    def __enter__(self) -> "StreamReader":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closed.set()
        with self._lock:
            stream = self._stream
        if stream is not None:
            _hang_up(stream)

    def chunks(self, idle: Callable[[], bool], poll_s: float) -> Iterable[Any]:
        """Yields the chunks; asks `idle` after every `poll_s` of silence whether to go on. Raises what the stream
        raised, of the kinds that were named."""
        while True:
            try:
                item = self._chunks.get(timeout=poll_s)
            except queue.Empty:
                if not idle():
                    return
                if not self._thread.is_alive() and self._chunks.empty():
                    raise RuntimeError("the reader of an endpoint has died") from None
                continue
            if isinstance(item, _End):
                if item.fault is not None:
                    raise item.fault
                return
            yield item

    def _run(self) -> None:
        fault: Exception | None = None
        tries = 0
        while not self._closed.is_set():
            begun = False
            try:
                with contextlib.closing(self._opened()) as chunks:
                    for chunk in chunks:
                        begun = True
                        if not self._put(chunk):
                            # What the connection still holds may be megabytes: nobody wants it parsed.
                            break
                fault = None
            except self._faults as raised:
                fault = raised
            tries += 1
            delay_s = None if fault is None or begun else self._again(fault, tries)
            if delay_s is None:
                break
            self._closed.wait(delay_s)
        self._put(_End(fault))

    def _opened(self) -> Generator[Any, None, None]:
        stream = self._open()
        with self._lock:
            self._stream = stream
        try:
            if not self._closed.is_set():
                yield from stream
        finally:
            stream.close()

    def _put(self, item: Any) -> bool:
        """Returns whether somebody still reads."""
        while not self._closed.is_set():
            with contextlib.suppress(queue.Full):
                self._chunks.put(item, timeout=0.1)
                return True
        return False


class _End:
    """Behind the last chunk."""

    def __init__(self, fault: Exception | None) -> None:
        self.fault = fault


def _hang_up(stream: EndpointStream) -> None:
    """Wakes a reader that waits for the endpoint: closing the descriptor under it would not."""
    network = stream.response.extensions.get("network_stream")
    connection = network.get_extra_info("socket") if network is not None else None
    if connection is not None:
        with contextlib.suppress(OSError):
            # The method of plain sockets: that of TLS sockets takes the cipher away from under the reader.
            socket.socket.shutdown(connection, socket.SHUT_RDWR)
