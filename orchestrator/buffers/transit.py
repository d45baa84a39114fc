"""Jobs between the queue and their end: the second of the three layers. Each has a slot with a version.

A slot is READY, then in PROCESSING by who claims it first, then DONE by the first end that names its version. What
comes back from a lost worker has a new version, so that whatever was meant for the old one comes to nothing.
"""

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from orchestrator.errors import InvalidState, Overloaded

MOST_SLOTS = 1 << 17
"""More than all workers have places."""


class Slot(NamedTuple):
    """A place, and which of its contents is meant."""

    number: int
    version: int


class SlotState(Enum):
    """READY: nobody has it. PROCESSING: one does. DONE: it has ended."""

    READY = "ready"
    PROCESSING = "processing"
    DONE = "done"


@dataclass(slots=True, eq=False)
class _Place:
    payload: str | None = None
    version: int = 0
    state: SlotState = SlotState.DONE
    by: str | None = None


@dataclass(frozen=True, slots=True)
class TransitStatistics:
    """`ready` and `processing` are now; the rest counts since the start. `stale` came for an older version."""

    ready: int
    processing: int
    done: int
    repeated: int
    stale: int


class Transit:
    """Slots of payloads (ids of jobs).

    `claim` is a compare-and-swap by ``dict.pop`` with the slot's number and version as the key, which is one step in
    CPython: of any number of threads that claim one version one gets it, whatever their names, and none an older one,
    whatever happened since it looked. Everything else belongs to the slot's owner, which is one thread.
    """

    def __init__(self, capacity: int = MOST_SLOTS) -> None:
        self._capacity = capacity
        self._places: list[_Place] = []
        self._free: list[int] = []
        self._ready: dict[Slot, bool] = {}
        self._held: dict[str, set[int]] = {}
        self._done = 0
        self._repeated = 0
        self._stale = 0

    def add(self, payload: str) -> Slot:
        """Takes a free slot; it is READY. Raises `Overloaded` where all are taken."""
        if self._free:
            number = self._free.pop()
        elif len(self._places) < self._capacity:
            number = len(self._places)
            self._places.append(_Place())
        else:
            raise Overloaded(f"all {self._capacity} slots are taken", 1.0)
        place = self._places[number]
        place.payload, place.state, place.by = payload, SlotState.READY, None
        place.version += 1
        return self._is_ready(Slot(number, place.version))

    def claim(self, slot: Slot, by: str) -> bool:
        """Says whether the slot is `by`'s: it was READY with this version, and nobody was before."""
        if not self._ready.pop(slot, False):
            self._stale += 1
            return False
        place = self._places[slot.number]
        place.state, place.by = SlotState.PROCESSING, by
        self._held.setdefault(by, set()).add(slot.number)
        return True

    def finish(self, slot: Slot) -> bool:
        """Ends what is in PROCESSING; False where it is not (any more), or this version of it."""
        place = self._places[slot.number]
        if place.version != slot.version or place.state is not SlotState.PROCESSING:
            self._stale += 1
            return False
        self._let_go(place, slot.number)
        place.state = SlotState.DONE
        self._done += 1
        return True

    def back(self, slot: Slot) -> Slot:
        """Whoever had it is lost: it is READY again, with a new version. Raises `InvalidState` where nobody had it."""
        place = self._places[slot.number]
        if place.version != slot.version or place.state is not SlotState.PROCESSING:
            raise InvalidState(f"slot {slot.number}", place.state.value, f"version {slot.version} back")
        self._let_go(place, slot.number)
        place.state = SlotState.READY
        place.version += 1
        self._repeated += 1
        return self._is_ready(Slot(slot.number, place.version))

    def release(self, slot: Slot) -> None:
        """The slot is free, whatever it was. Raises `InvalidState` for a version that it does not have."""
        place = self._places[slot.number]
        if place.version != slot.version or place.payload is None:
            raise InvalidState(
                f"slot {slot.number}", f"version {place.version}", f"version {slot.version} released"
            )
        if place.state is SlotState.PROCESSING:
            self._let_go(place, slot.number)
        self._ready.pop(slot, False)
        place.state, place.payload = SlotState.DONE, None
        self._free.append(slot.number)

    def held_by(self, by: str) -> list[str]:
        """Returns what one has in PROCESSING, without a look at the others."""
        payloads = (self._places[number].payload for number in self._held.get(by, ()))
        return [payload for payload in payloads if payload is not None]

    def statistics(self) -> TransitStatistics:
        return TransitStatistics(
            ready=len(self._ready),
            processing=sum(map(len, self._held.values())),
            done=self._done,
            repeated=self._repeated,
            stale=self._stale,
        )

    def _is_ready(self, slot: Slot) -> Slot:
        self._ready[slot] = True
        return slot

    def _let_go(self, place: _Place, number: int) -> None:
        assert place.by is not None
        held = self._held[place.by]
        held.remove(number)
        if not held:
            del self._held[place.by]
        place.by = None
