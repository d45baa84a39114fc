"""Sound on its way in is one stream, however it is cut."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from modalities.audio import g711
from modalities.ports import Pcm
from orchestrator.transports.inlet import SLICE_BYTES, Inlet
from orchestrator.wire.session import PCM, AudioFormat

MULAW = AudioFormat(type="audio/pcmu")


def taken(inlet: Inlet, pieces: list[bytes], audio_format: AudioFormat) -> Pcm:
    """All samples that feeding the pieces gives, the last ones included."""
    slices = [pcm for piece in pieces for pcm in inlet.feed(piece, audio_format)]
    return np.concatenate([*slices, inlet.flush()])


def cut(sound: bytes, places: list[int]) -> list[bytes]:
    edges = [0, *sorted(place % (len(sound) + 1) for place in places), len(sound)]
    return [sound[start:stop] for start, stop in pairwise(edges)]


def tone(samples: int) -> bytes:
    sound: bytes = np.round(9_000 * np.sin(np.arange(samples) * 0.1)).astype("<i2").tobytes()
    return sound


@given(st.lists(st.integers(0, 10**6), max_size=20), st.integers(1, 30_000))
def test_inlet_gives_the_same_samples_however_the_sound_is_cut(places: list[int], samples: int) -> None:
    """Appends need not be aligned: any cutting, also inside a sample, gives the sound of one piece to one step."""
    whole = taken(Inlet(), [tone(samples)], PCM)
    pieces = taken(Inlet(), cut(tone(samples), places), PCM)
    assert len(pieces) == len(whole) == -(-samples * 2 // 3)
    assert np.abs(pieces.astype(int) - whole.astype(int)).max() <= 1


def test_inlet_takes_big_appends_in_slices() -> None:
    """Nobody waits for the whole of a big append: each step is a quarter of a second at most."""
    slices = list(Inlet().feed(bytes(10 * SLICE_BYTES + 2), PCM))
    assert len(slices) == 12  # the empty one of the first format among them
    assert max(map(len, slices)) <= SLICE_BYTES // 2 * 2 // 3 + 1


def test_inlet_begins_anew_after_a_flush() -> None:
    """Half a sample that was left at a commit does not shift the sound after it."""
    inlet = Inlet()
    first = taken(inlet, [tone(2_400) + b"\x01"], PCM)
    again = taken(inlet, [tone(2_400)], PCM)
    assert (first == again).all()


@pytest.mark.parametrize("samples", [800, 801])
def test_inlet_ends_one_format_before_it_begins_another(samples: int) -> None:
    """A session that changes its format loses nothing of the sound before the change."""
    inlet = Inlet()
    before = list(inlet.feed(g711.encode_mulaw(np.zeros(samples, np.int16)), MULAW))
    after = list(inlet.feed(tone(2_400), PCM))
    total = sum(map(len, [*before, *after, inlet.flush()]))
    assert total == 2 * samples + 1_600


def test_inlet_keeps_nothing_of_an_append_but_its_last_half_sample() -> None:
    """What was appended can be let go: the byte that waits for the next append is a copy."""
    inlet, appended = Inlet(), bytearray(tone(100) + b"\x01")
    came = [len(pcm) for pcm in inlet.feed(appended, PCM)]
    appended += b"more"  # raises where a view of it lives on
    came += [len(pcm) for pcm in inlet.feed(b"\x02", PCM)]
    assert sum(came) + len(inlet.flush()) == -(-101 * 2 // 3)
