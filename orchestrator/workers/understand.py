"""Understanding in a worker process: a batch of texts in, vector, intent and slots of each out."""

from collections.abc import Sequence

import numpy as np

from modalities.ports import Understander, Understanding
from orchestrator.scheduling.work import SlotFound, Understand, Understood
from orchestrator.workers.desk import Tell, Wanted
from orchestrator.workers.frames import Task

VECTOR_SCALE = 32_767
"""A component of a unit vector times this, rounded, is what crosses: equal on every processor from there on."""


class TextUnderstander:
    """One call for a whole batch is one step."""

    def __init__(self, understander: Understander) -> None:
        self._understander = understander

    def probe(self) -> str:
        """Understands a greeting."""
        (found,) = self._understander.understand(["hello there"])
        return f"{type(self._understander).__name__}, {len(found.vector)} dimensions"

    def do(self, tasks: Sequence[Task], tell: Tell, wanted: Wanted) -> None:
        found = self._understander.understand([_text(task) for task in tasks])
        for task, one in zip(tasks, found, strict=True):
            if wanted(task.job_id):
                tell(understood(task.job_id, one))


def understood(job_id: str, found: Understanding) -> Understood:
    """Returns a finding as a report, its vector in int16 little-endian."""
    vector = np.clip(np.rint(found.vector * VECTOR_SCALE), -VECTOR_SCALE, VECTOR_SCALE).astype("<i2")
    slots = tuple(
        SlotFound(slot.name, slot.value, slot.start, slot.stop, slot.confidence) for slot in found.slots
    )
    return Understood(job_id, vector.tobytes(), found.intent, found.confidence, slots)


def _text(task: Task) -> str:
    if not isinstance(task.work, Understand):
        raise TypeError(f"an understanding worker was given {type(task.work).__name__}")
    return task.work.text
