"""What a worker says of its memory: the accelerator's where it uses one, else of its own budget."""

import os
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from orchestrator.workers import memory
from orchestrator.workers.memory import (
    UNKNOWN,
    MemoryGauge,
    budget_share,
    nvml_share,
    told_by,
    torch_share,
    uses_cuda,
)
from orchestrator.workers.resources import resources_of


class _FakeCuda:
    """Two devices; the second one is worked on."""

    def __init__(self, *, initialized: bool = True, broken: bool = False) -> None:
        self._initialized = initialized
        self._broken = broken

    def is_initialized(self) -> bool:
        return self._initialized

    def device_count(self) -> int:
        return 2

    def memory_reserved(self, device: int) -> int:
        return 1_000 * device

    def mem_get_info(self, device: int) -> tuple[int, int]:
        if self._broken:
            raise RuntimeError("CUDA error: the device is gone")
        return (750, 1_000) if device == 0 else (100, 1_000)


class _FakeNvml(ModuleType):
    """Three devices with 10, 20 and 30 % in use, and the processes that compute on each."""

    class NVMLError(Exception):
        pass

    def __init__(self, processes: dict[int, int], broken: bool = False) -> None:
        super().__init__("pynvml")
        self._processes = processes
        self._broken = broken
        self.open = 0

    def nvmlInit(self) -> None:
        if self._broken:
            raise self.NVMLError("Driver Not Loaded")
        self.open += 1

    def nvmlShutdown(self) -> None:
        self.open -= 1

    def nvmlDeviceGetCount(self) -> int:
        return 3

    def nvmlDeviceGetHandleByIndex(self, number: int) -> int:
        return number

    def nvmlDeviceGetHandleByUUID(self, name: str) -> int:
        return {"GPU-a": 0, "GPU-c": 2}[name]

    def nvmlDeviceGetComputeRunningProcesses(self, handle: int) -> list[SimpleNamespace]:
        return [SimpleNamespace(pid=pid) for pid, device in self._processes.items() if device == handle]

    def nvmlDeviceGetMemoryInfo(self, handle: int) -> SimpleNamespace:
        return SimpleNamespace(used=100 * (handle + 1), total=1_000)


@pytest.fixture(autouse=True)
def plain_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither torch nor a driver is loaded, whatever this machine and the tests before have."""
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    monkeypatch.delitem(sys.modules, "pynvml", raising=False)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(memory, "uses_cuda", lambda: False)


def _torch(monkeypatch: pytest.MonkeyPatch, cuda: object) -> None:
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda))


def test_budget_share_is_of_what_this_process_has(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twice the resident memory is a half; without a budget, or without /proc, nobody knows."""
    used = resources_of(os.getpid()).memory_bytes
    assert budget_share(2 * used) == pytest.approx(0.5, rel=0.2)
    assert budget_share(0) == UNKNOWN
    monkeypatch.setattr(memory, "resources_of", lambda _: SimpleNamespace(memory_bytes=0))
    assert budget_share(1_000) == UNKNOWN


def test_torch_share_is_of_the_device_that_is_worked_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """The device on which torch has reserved the most."""
    _torch(monkeypatch, _FakeCuda())
    assert torch_share() == pytest.approx(0.9)


@pytest.mark.parametrize("cuda", [None, SimpleNamespace(), _FakeCuda(initialized=False)])
def test_torch_share_is_none_where_torch_works_on_no_device(
    monkeypatch: pytest.MonkeyPatch, cuda: object
) -> None:
    """Half imported, without devices, or not at work yet: no share, and no error."""
    _torch(monkeypatch, cuda)
    assert torch_share() is None


def test_torch_share_never_imports_torch() -> None:
    """A worker without torch must not load it to be measured."""
    assert torch_share() is None
    assert "torch" not in sys.modules


def test_uses_cuda_is_read_off_the_loaded_libraries(tmp_path: Path) -> None:
    """The driver's library among what is mapped; a system without /proc uses none."""
    maps = tmp_path / "maps"
    maps.write_text("7f00-7f01 r-xp 0 00:00 0 /usr/lib/x86_64-linux-gnu/libcuda.so.1\n")
    assert uses_cuda(maps)
    maps.write_text("7f00-7f01 r-xp 0 00:00 0 /usr/lib/libc.so.6\n")
    assert not uses_cuda(maps)
    assert not uses_cuda(tmp_path / "none")


@pytest.mark.parametrize(
    ("processes", "visible", "expected"),
    [
        ({os.getpid(): 1, 1: 0}, "", 0.2),  # NVML knows us
        ({1: 0}, "", 0.1),  # in a container it does not: the first
        ({1: 0}, "2,0", 0.3),
        ({1: 0}, "GPU-c", 0.3),
        ({1: 0}, "9", 0.3),
    ],
)
def test_nvml_share_is_of_the_device_of_this_process(
    monkeypatch: pytest.MonkeyPatch, processes: dict[int, int], visible: str, expected: float
) -> None:
    """Found by process number, else the first visible one; what is opened is closed."""
    nvml = _FakeNvml(processes)
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert nvml_share() == pytest.approx(expected)
    assert nvml.open == 0


def test_memory_gauge_looks_at_the_accelerator_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """torch, then NVML where a driver is loaded, then the budget."""
    gauge = MemoryGauge(10 * resources_of(os.getpid()).memory_bytes)
    assert gauge.share == UNKNOWN
    gauge.look()
    assert gauge.share == pytest.approx(0.1, rel=0.2)
    monkeypatch.setattr(memory, "uses_cuda", lambda: True)
    monkeypatch.setitem(sys.modules, "pynvml", _FakeNvml({os.getpid(): 2}))
    gauge.look()
    assert gauge.share == pytest.approx(0.3)
    _torch(monkeypatch, _FakeCuda())
    gauge.look()
    assert gauge.share == pytest.approx(0.9)


def test_memory_gauge_without_nvml_says_so_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Not installed: one line in the log, and the budget counts from then on."""
    monkeypatch.setattr(memory, "uses_cuda", lambda: True)
    monkeypatch.setitem(sys.modules, "pynvml", None)  # as if it were not installed
    gauge = MemoryGauge(4 * resources_of(os.getpid()).memory_bytes)
    for _ in range(3):
        gauge.look()
    assert gauge.share == pytest.approx(0.25, rel=0.2)
    assert caplog.text.count("the accelerator's memory is not known") == 1


def test_gauge_asks_an_engine_that_tells() -> None:
    """An engine on a device of its own is asked, whatever the process uses, until it is taken back."""
    gauge = MemoryGauge(1)
    told_by(lambda: 0.75)
    try:
        gauge.look()
        assert gauge.share == 0.75
    finally:
        told_by(None)
    gauge.look()
    assert gauge.share > 1


class _Odd(Exception):
    """What some library raises."""


def _run(gauge: MemoryGauge, looks: int, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Runs a gauge for so many looks; returns the share after each."""
    seen: list[float] = []

    def pause(_: float) -> None:
        seen.append(gauge.share)
        if len(seen) == looks:
            raise SystemExit

    monkeypatch.setattr("orchestrator.workers.memory.time.sleep", pause)
    with pytest.raises(SystemExit):
        gauge.run()
    return seen


@pytest.mark.parametrize(
    "fault", [RuntimeError, OSError, AssertionError, AttributeError, ZeroDivisionError, _Odd]
)
def test_memory_gauge_goes_on_looking_after_looks_that_failed(
    fault: type[Exception], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever a driver raises leaves no old share behind, is told once, and the next look tells again."""
    shares = iter([0.97, None, None, 0.5])

    def share() -> float:
        found = next(shares)
        if found is None:
            raise fault("the driver failed")
        return found

    monkeypatch.setattr(memory, "_told", share)
    assert _run(MemoryGauge(0), 4, monkeypatch) == [0.97, UNKNOWN, UNKNOWN, 0.5]
    assert [record.levelname for record in caplog.records] == ["ERROR"]


def test_memory_gauge_knows_nothing_while_a_device_does_not_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    """The budget is no answer for an accelerator that fails; once NVML and torch work again they are asked again."""
    monkeypatch.setattr(memory, "uses_cuda", lambda: True)
    nvml = _FakeNvml({os.getpid(): 2}, broken=True)
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    gauge = MemoryGauge(4 * resources_of(os.getpid()).memory_bytes)
    assert _run(gauge, 2, monkeypatch) == [UNKNOWN, UNKNOWN]
    nvml._broken = False
    assert _run(gauge, 1, monkeypatch) == [pytest.approx(0.3)]
    _torch(monkeypatch, _FakeCuda(broken=True))
    assert _run(gauge, 1, monkeypatch) == [UNKNOWN]
    _torch(monkeypatch, _FakeCuda())
    assert _run(gauge, 1, monkeypatch) == [pytest.approx(0.9)]
