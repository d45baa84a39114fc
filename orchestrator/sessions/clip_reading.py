"""What is big inside a client's item is read before its session's heart sees the item: in slices, others get their
turn."""

import asyncio
from collections.abc import Generator
from contextlib import closing
from typing import TypeVar

from msgspec import structs

from orchestrator.errors import WireError
from orchestrator.sessions.clips import ClipStore, named, places_of_sound, unwritten_sound, without_name
from orchestrator.sessions.pictures import PictureStore, names_of
from orchestrator.sessions.tap import Tap
from orchestrator.wire.client import AnyClientEvent, CreateItem

Read = TypeVar("Read")


async def without_content(
    event: CreateItem, clips: ClipStore, pictures: PictureStore, tap: Tap | None
) -> CreateItem:
    """Takes sound and images out of a client's item and leaves their names: hearts hold no samples. Others get their
    turn between slices; `tap` sees the sound that was read. Cancelling loses the event. Raises `WireError`."""
    name: str | None = None
    item = await _in_slices(pictures.read(event.item))
    if sounds := unwritten_sound(item):
        try:
            with closing(clips.read(sounds, places_of_sound(item))) as reading:
                for read in reading:
                    name = read
                    await asyncio.sleep(0)
        except (WireError, asyncio.CancelledError):
            for one in names_of(item):
                pictures.forget(one)
            raise
        if tap is not None and name is not None:
            tap.clip(name, clips.sound(name))
    return structs.replace(event, item=named(item, name))


def forgotten(event: AnyClientEvent, clips: ClipStore, pictures: PictureStore) -> None:
    """Lets go of what `without_content` has kept of an event that never reached its session."""
    if isinstance(event, CreateItem):
        _, name = without_name(event.item)
        if name is not None:
            clips.forget(name)
        for one in names_of(event.item):
            pictures.forget(one)


async def _in_slices(reading: Generator[None, None, Read]) -> Read:
    """Returns what a generator returns; others get their turn wherever it yields."""
    with closing(reading):
        while True:
            try:
                next(reading)
            except StopIteration as end:
                read: Read = end.value
                return read
            await asyncio.sleep(0)
