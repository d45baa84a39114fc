"""What a pool is made of, and what it shows of itself."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from orchestrator.scheduling.kinds import BATCHED_KINDS
from orchestrator.scheduling.work import WorkKind
from orchestrator.workers.supervision import Phase, Supervision


@dataclass(frozen=True, slots=True)
class WorkerSpec:
    """`count` processes of one kind. `parallel` is how many jobs one of them has at a time: the size of a batch for
    recognition and understanding, replies side by side for language models, sentences for speech.

    `options` go to the engine as they are, but for ``domain`` of understanding workers, which is the domain
    dictionary. `threads` is what each process may use, `niceness` how far it steps back for the server (0–19).
    `environment` is set in the process before its engine's libraries are imported (``CUDA_VISIBLE_DEVICES``).
    `memory_bytes` is what each process may use of the machine's memory, for limits that look at it; 0: nobody knows.
    """

    kind: WorkKind
    engine: str
    options: Mapping[str, object] = field(default_factory=dict)
    threads: int = 1
    count: int = 1
    parallel: int = 1
    niceness: int = 5
    environment: Mapping[str, str] = field(default_factory=dict)
    memory_bytes: int = 0

    @property
    def batches(self) -> bool:
        return self.kind in BATCHED_KINDS


@dataclass(frozen=True, slots=True)
class PoolSettings:
    """The whole pool."""

    workers: tuple[WorkerSpec, ...]
    supervision: Supervision = field(default_factory=Supervision)


@dataclass(frozen=True, slots=True)
class WorkerState:
    """One worker process now. `reason` says why it is not ready; `about` what its engine says of itself.

    `memory_bytes` and `cpu_s` are of the living process, 0 where the system does not tell. `memory_share` is what it
    has in use of its accelerator's memory or of its own budget, None where it has not told.
    """

    worker_id: str
    kind: WorkKind
    engine: str
    phase: Phase
    reason: str
    about: str
    starts: int
    jobs: int
    pid: int | None
    memory_bytes: int
    cpu_s: float
    memory_share: float | None = None
