"""What share of its memory a worker process has in use: the accelerator's where it works on one, else its own budget's.

Runs in the process itself, which alone knows what its libraries have loaded. No library of an accelerator is loaded to
find out: a worker that does not use one must not pay for it.
"""

import importlib
import logging
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from orchestrator.observability.faults import FAULTS
from orchestrator.workers.resources import resources_of

log = logging.getLogger(__name__)

UNKNOWN = -1.0

EVERY_S = 1.0
"""How often it is looked at."""

MAPS = Path("/proc/self/maps")
_DRIVER = "/libcuda.so"


_told: Callable[[], float] | None = None


def told_by(share: Callable[[], float] | None) -> None:
    """An engine on a device that nothing here knows says itself how full it is, 0 to 1: `share` is asked from now on,
    in a thread of its own. A process has one engine; None takes it back."""
    global _told
    _told = share


class MemoryGauge:
    """The share as of the last look. A look may wait for a driver, so looks have a thread of their own: a worker whose
    driver is slow goes on beating."""

    def __init__(self, budget_bytes: int) -> None:
        """`budget_bytes` is what the process may use of the machine's memory; 0 where nobody knows."""
        self._budget_bytes = budget_bytes
        self._share = UNKNOWN
        self._has_nvml = True
        self._guard = FAULTS.guard("memory")

    @property
    def share(self) -> float:
        """0 to 1, above 1 where a budget is exceeded; `UNKNOWN` before the first look and where nothing tells."""
        return self._share

    def run(self) -> None:
        """Looks once a second, for ever. While a look fails, the share is `UNKNOWN`; the log says when that begins and
        ends."""
        while True:
            with self._guard:  # libraries of accelerators raise what they like
                self.look()
            if self._guard.failed:
                self._share = (
                    UNKNOWN  # what was seen last is no news for ever: nobody knows until a look succeeds
                )
            time.sleep(EVERY_S)

    def look(self) -> None:
        """Looks now: asks the engine where it tells, else looks at the accelerator of torch, at that of any other
        library, or at the process. Raises whatever they raise."""
        share = torch_share() if _told is None else _told()
        if share is None and self._has_nvml and uses_cuda():
            share = self._nvml()
        self._share = budget_share(self._budget_bytes) if share is None else share

    def _nvml(self) -> float | None:
        try:
            return nvml_share()
        except ImportError:
            self._has_nvml = False
            log.warning("the accelerator's memory is not known: pip install 'chorale[gpu]'")
        return None


def torch_share() -> float | None:
    """Returns the share of the accelerator that torch works on; None where it works on none (yet). Raises what torch
    raises where its accelerator fails."""
    torch = sys.modules.get("torch")
    cuda = getattr(torch, "cuda", None)
    # While another thread imports torch it is there in part.
    if cuda is None or not hasattr(cuda, "is_initialized") or not cuda.is_initialized():
        return None
    device = max(range(cuda.device_count()), key=cuda.memory_reserved)
    free, total = cuda.mem_get_info(device)
    return float((total - free) / total)


def uses_cuda(maps: Path = MAPS) -> bool:
    """Says whether this process has loaded NVIDIA's driver, for whichever library."""
    try:
        return _DRIVER in maps.read_text()
    except OSError:
        return False


def nvml_share() -> float | None:
    """Returns the share of the NVIDIA device that this process computes on, None where NVML shows none.

    In a container NVML may not know our process number: then it is the first visible device. Raises `ImportError`
    without nvidia-ml-py, `RuntimeError` where NVML fails.
    """
    nvml = importlib.import_module("pynvml")
    try:
        nvml.nvmlInit()
        try:
            handles = [nvml.nvmlDeviceGetHandleByIndex(number) for number in range(nvml.nvmlDeviceGetCount())]
            if not handles:
                return None
            mine = [
                handle
                for handle in handles
                if any(one.pid == os.getpid() for one in nvml.nvmlDeviceGetComputeRunningProcesses(handle))
            ]
            memory = nvml.nvmlDeviceGetMemoryInfo(mine[0] if mine else _visible(nvml, handles))
            return float(memory.used / memory.total)
        finally:
            nvml.nvmlShutdown()
    except nvml.NVMLError as fault:
        raise RuntimeError(str(fault)) from fault


def _visible(nvml: Any, handles: Sequence[object]) -> object:  # a module without types
    """Returns the first device that ``CUDA_VISIBLE_DEVICES`` names, by number or by name."""
    first = os.environ.get("CUDA_VISIBLE_DEVICES", "").partition(",")[0].strip()
    if first.isdecimal():
        return handles[min(int(first), len(handles) - 1)]
    return nvml.nvmlDeviceGetHandleByUUID(first) if first else handles[0]


def budget_share(budget_bytes: int) -> float:
    """Returns the share of its budget that this process has in use, `UNKNOWN` without one."""
    used = resources_of(os.getpid()).memory_bytes
    return used / budget_bytes if budget_bytes and used else UNKNOWN
