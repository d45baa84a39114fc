"""What is read of sessions' buffers."""

import pytest

from orchestrator.errors import Overloaded
from orchestrator.observability.inventory import Inventory
from orchestrator.telemetry.buffers import SessionBounds, register_sessions
from tests.sessions.running import House, in_house


def test_sessions_tell_what_found_no_room() -> None:
    """Sessions that were not opened, events and items that were refused: each under the name of its buffer."""

    async def test(house: House) -> None:
        session, _ = house.open()
        with pytest.raises(Overloaded):
            house.open()
        session._inbox.refused, session._clips.refused = 2, 3
        inventory = Inventory()
        register_sessions(inventory, house.registry, SessionBounds(1, 1, 1, 1, 1, 1, 1))
        told = inventory.readings()
        assert {name: told[name].dropped for name in ("sessions", "inbox", "clips", "ring")} == {
            "sessions": 1,
            "inbox": 2,
            "clips": 3,
            "ring": 0,
        }

    in_house(test, max_sessions=1)
