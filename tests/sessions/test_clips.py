"""Sound in clients' own items."""

import base64

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from modalities.audio.resample import Resampler
from orchestrator.errors import WireError
from orchestrator.sessions.clips import ClipStore, named, unwritten_sound, without_name
from orchestrator.wire.items import InputAudio, InputText, Message


def encoded(samples: int, value: int = 5_000) -> str:
    return base64.b64encode(np.full(samples, value, dtype="<i2").tobytes()).decode()


def read(store: ClipStore, *sounds: str) -> str:
    *others, name = store.read(sounds)
    assert set(others) <= {None}
    assert isinstance(name, str)
    return name


@given(st.binary(max_size=60_000))
def test_clip_is_the_same_however_it_is_sliced(data: bytes) -> None:
    """Slices of base64 give, to one step, what resampling the whole gives; an odd byte at the end is dropped."""
    store = ClipStore()
    clip = np.frombuffer(store.sound(read(store, base64.b64encode(data).decode())), dtype="<i2")
    whole = np.frombuffer(data[: len(data) & ~1], dtype="<i2").astype(np.int16)
    resampler = Resampler(24_000, 16_000)
    expected = np.concatenate((resampler.feed(whole), resampler.flush()))
    assert len(clip) == len(expected)
    assert not len(clip) or np.abs(clip.astype(int) - expected).max() <= 1


def test_clip_holds_all_sound_of_its_item_and_names_it_once() -> None:
    """Two parts of sound are one clip: nothing of it is lost, and what has a transcript is left alone."""
    parts = (
        InputAudio(audio=encoded(2_400)),
        InputText("and"),
        InputAudio(audio=encoded(4_800)),
        InputAudio(transcript="known", audio=encoded(9_600)),
    )
    item = Message("user", parts)
    store = ClipStore()
    name = read(store, *unwritten_sound(item))
    assert len(store.sound(name)) == 2 * 4_800
    bare, found = without_name(named(item, name))
    assert found == name
    assert isinstance(bare, Message)
    assert bare.content == (
        InputAudio(),
        InputText("and"),
        InputAudio(transcript=""),
        InputAudio(transcript="known"),
    )


def test_clip_store_is_bounded_and_forgets() -> None:
    """Over the bound a clip is refused before anything of it is read; room comes back."""
    store = ClipStore(limit=10_000)
    name = read(store, encoded(6_000))
    with pytest.raises(WireError) as refused:
        read(store, encoded(6_000))
    assert refused.value.param == "item.content[0].audio"
    assert store.refused == 1
    store.forget(name)
    store.forget(name)
    assert store.held_bytes == 0
    read(store, encoded(6_000))
    store.clear()
    assert store.held_bytes == 0


@pytest.mark.parametrize("broken", ["no!", "AAA", "clip:1"])
def test_clip_store_keeps_nothing_of_what_cannot_be_read(broken: str) -> None:
    """Bad base64 behind good, or a reader that gives up: the room is free again."""
    store = ClipStore()
    with pytest.raises(WireError):
        read(store, encoded(40_000), broken)
    reading = store.read((encoded(40_000),))
    next(reading)
    assert store.held_bytes > 0
    reading.close()
    assert store.held_bytes == 0
