"""Which of an engine's slots serves a conversation: the one that still holds what it said before, if it is free."""


class Slots:
    """Places of conversations in an engine. A slot keeps its conversation's state until another one takes it."""

    def __init__(self, count: int) -> None:
        self._keys = [""] * count
        self._free = list(range(count))  # least recently used first

    def holds(self, key: str) -> bool:
        """Says whether `take` would bring the conversation `key` back to its own slot."""
        return bool(key) and any(self._keys[slot] == key for slot in self._free)

    def take(self, key: str) -> int | None:
        """Returns the slot for the conversation `key`: its own, else one that no conversation needs, else the one that
        was free for longest. None where all are busy; "" is a conversation that will not come back."""
        if not self._free:
            return None
        own = (slot for slot in self._free if key and self._keys[slot] == key)
        unneeded = (slot for slot in self._free if not self._keys[slot])
        slot = next(own, next(unneeded, self._free[0]))
        self._free.remove(slot)
        self._keys[slot] = key
        return slot

    def give_back(self, slot: int) -> None:
        """The slot's reply has ended; its conversation may come back to it."""
        self._free.append(slot)
