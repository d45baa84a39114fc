"""Buffers by name."""

import pytest

from orchestrator.errors import InvalidState
from orchestrator.observability.inventory import BufferReading, Inventory


def test_inventory_asks_each_buffer_when_it_is_asked() -> None:
    """Readings are of now; a group is read in one go."""
    inventory, held, asked = Inventory(), [1], []

    def both() -> dict[str, BufferReading]:
        asked.append(1)
        return {"b": BufferReading(items=2), "c": BufferReading(size_bytes=3)}

    inventory.register("a", lambda: BufferReading(items=held[0], bound_items=9))
    inventory.register_group(("b", "c"), both)
    assert asked == []
    assert inventory.readings()["a"] == BufferReading(items=1, bound_items=9)
    held[0] = 5
    assert {name: one.items for name, one in inventory.readings().items()} == {"a": 5, "b": 2, "c": 0}
    assert len(asked) == 2


def test_inventory_has_each_name_once() -> None:
    """Two buffers of one name would hide each other."""
    inventory = Inventory()
    inventory.register("a", BufferReading)
    with pytest.raises(InvalidState):
        inventory.register("a", BufferReading)
    with pytest.raises(InvalidState):
        inventory.register_group(("b", "a"), dict)
