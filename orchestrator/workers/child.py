"""The program that a worker process runs: ``python -m orchestrator.workers.child PIPE PARENT``.

It takes its configuration from the pipe, loads an engine, does a small real job with it, and then does what it is
given. It ends with the server, however that ends: at the pipe's end, and on Linux by the kernel's hand as well.

Nothing that could drag in an engine's libraries is imported before the configuration has been read: they look at the
environment for their number of threads when they are loaded.
"""

import ctypes
import faulthandler
import logging
import os
import signal
import socket
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

from modalities.errors import EndpointFailed, ModalityError
from orchestrator.errors import ConfigError
from orchestrator.scheduling.kinds import BATCHED_KINDS
from orchestrator.workers.desk import Craft, Desk, serve
from orchestrator.workers.engines import load
from orchestrator.workers.frames import (
    LENGTH_BYTES,
    Beat,
    BrokenFrame,
    Cancel,
    Configure,
    Loading,
    Ready,
    Run,
    ToWorker,
    Unable,
    frame_length,
    to_worker,
)
from orchestrator.workers.memory import MemoryGauge
from orchestrator.workers.outbox import Outbox

THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)
_PR_SET_PDEATHSIG = 1
_BROKEN_PIPE, _BROKEN_THREAD, _NOT_STARTED = 65, 70, 69


def main(pipe_number: int, parent: int) -> None:
    """Lives until the server ends it."""
    die_with(parent)
    # Libraries print to standard output as they like. It joins standard error, which the server reads for diagnosis.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    faulthandler.enable()
    threading.excepthook = end_with_thread
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    pipe = socket.socket(fileno=pipe_number)
    configure = _receive(pipe)
    if not isinstance(configure, Configure):
        raise BrokenFrame(f"expected a configuration, not {type(configure).__name__}")
    _prepare(configure)
    outbox = Outbox(pipe)
    outbox.start()
    outbox.put(Loading())
    desk = Desk(configure.kind in BATCHED_KINDS)
    _in_background("reader", _read, pipe, desk)
    gauge = MemoryGauge(configure.memory_bytes)
    _in_background("heart", _beat, outbox, gauge, configure.beat_s)
    _in_background("memory", gauge.run)
    craft = _start(configure, outbox)
    extra = 0 if configure.kind in BATCHED_KINDS else configure.parallel - 1
    for number in range(extra):
        _in_background(f"{configure.kind}-{number + 1}", serve, craft, desk, outbox.put)
    serve(craft, desk, outbox.put)


def die_with(parent: int) -> None:
    """Has the kernel kill this process when the server's thread that made it ends (Linux; elsewhere the pipe's end
    does it as soon as the reader thread can run)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before we asked
        os._exit(0)


def _prepare(configure: Configure) -> None:
    for name in THREAD_VARIABLES:
        os.environ[name] = str(configure.threads)
    # A model that is not here is a first error with the command that installs it, never a download that hangs.
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    # Anybody's own engine may bring ONNX Runtime, which would report to its maker (`modalities.adapters.onnx`).
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    os.environ.update(configure.environment)
    if configure.niceness:
        os.nice(configure.niceness)
    # So that `ps` and `top` tell workers apart; the system keeps 15 characters. Not everywhere is there such a file.
    with suppress(OSError):
        Path("/proc/self/comm").write_text(f"chorale-{configure.kind}")


def _start(configure: Configure, outbox: Outbox) -> Craft:
    """Returns the craft, loaded and tried; where that fails, says why and ends the process."""
    began = time.monotonic()
    try:
        craft = load(configure)
        loaded = time.monotonic()
        about = craft.probe()
    except EndpointFailed as fault:  # it may be there in a moment
        outbox.put(Unable(str(fault), lasting=False))
    except (ModalityError, ConfigError) as fault:
        outbox.put(Unable(str(fault), lasting=True))
    except Exception as fault:
        logging.getLogger(__name__).exception("%s cannot start", configure.engine)
        outbox.put(Unable(f"{type(fault).__name__}: {fault}", lasting=False))
    else:
        outbox.put(Ready(loaded - began, time.monotonic() - loaded, about))
        return craft
    outbox.close()
    sys.exit(_NOT_STARTED)


def _read(pipe: socket.socket, desk: Desk) -> None:
    """Lays jobs on the desk and passes cancels on, until the server is gone: then the process ends at once."""
    while True:
        try:
            message = _receive(pipe)
        except (EOFError, OSError):
            os._exit(0)
        match message:
            case Run():
                desk.add(message.tasks)
            case Cancel():
                desk.cancel(message.job_id)
            case Configure():
                raise BrokenFrame("configured twice")


def _receive(pipe: socket.socket) -> ToWorker:
    length = frame_length(_exactly(pipe, LENGTH_BYTES))
    return to_worker(_exactly(pipe, length))


def _exactly(pipe: socket.socket, size: int) -> bytearray:
    buffer = bytearray(size)
    rest = memoryview(buffer)
    while rest:
        received = pipe.recv_into(rest)
        if not received:
            raise EOFError
        rest = rest[received:]
    return buffer


def _beat(outbox: Outbox, gauge: MemoryGauge, beat_s: float) -> None:
    while True:
        outbox.put(Beat(gauge.share))
        time.sleep(beat_s)


def _in_background(name: str, target: object, *arguments: object) -> None:
    assert callable(target)
    threading.Thread(target=target, args=arguments, name=name, daemon=True).start()


def end_with_thread(fault: threading.ExceptHookArgs) -> None:
    """A process that lost one of its threads is of no use: it ends, and the server starts a new one."""
    threading.__excepthook__(fault)
    sys.stderr.flush()
    os._exit(_BROKEN_THREAD)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
