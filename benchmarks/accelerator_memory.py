"""Does a worker tell its accelerator's memory rightly? Run on a machine with an NVIDIA device, with torch and the extra
``gpu``: ``python -m benchmarks.accelerator_memory``. Takes a quarter of the device and compares what torch, NVML and a
worker's gauge say before and after."""

import sys

from orchestrator.workers.memory import MemoryGauge, nvml_share, torch_share, uses_cuda

TAKEN = 0.25
NEAR = 0.02


def main() -> int:
    """Returns 0 where all agree, 1 where they do not, 2 where there is no device."""
    try:
        import torch
    except ImportError:
        print("torch is not installed")
        return 2
    if not torch.cuda.is_available():
        print("torch sees no CUDA device here")
        return 2
    torch.zeros(1, device="cuda")
    gauge = MemoryGauge(1 << 30)
    gauge.look()
    before = gauge.share
    _, total = torch.cuda.mem_get_info()
    taken = torch.zeros(int(total * TAKEN), dtype=torch.uint8, device="cuda")
    gauge.look()
    said = {"torch": torch_share(), "NVML": nvml_share(), "gauge": gauge.share}
    print(f"driver found: {uses_cuda()}; before: {before:.3f}; with {TAKEN:.0%} more: {said}")
    del taken
    agree = all(one is not None and abs(one - before - TAKEN) <= NEAR for one in said.values())
    return 0 if agree and uses_cuda() else 1


if __name__ == "__main__":
    sys.exit(main())
