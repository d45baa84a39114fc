"""Sound inside a client's item is read before its session's heart sees the item: in slices, others get their turn."""

import asyncio
from contextlib import closing

from msgspec import structs

from orchestrator.sessions.clips import ClipStore, named, unwritten_sound
from orchestrator.sessions.tap import Tap
from orchestrator.wire.client import CreateItem


async def without_sound(event: CreateItem, clips: ClipStore, tap: Tap | None) -> CreateItem:
    """Takes the sound out of a client's item and leaves its name: hearts hold no samples. Others get their turn between
    slices; `tap` sees what was read. Cancelling loses the event. Raises `WireError`."""
    name: str | None = None
    if sounds := unwritten_sound(event.item):
        with closing(clips.read(sounds)) as reading:
            for read in reading:
                name = read
                await asyncio.sleep(0)
        if tap is not None and name is not None:
            tap.clip(name, clips.sound(name))
    return structs.replace(event, item=named(event.item, name))
