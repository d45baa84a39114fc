"""Long recordings are cut where it is quiet, and nothing of them is lost."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modalities.audio.pauses import LONGEST, SHORTEST, PauseCutter, quietest
from modalities.ports import SPEECH_RATE_HZ, Pcm

NOISE: Pcm = np.random.default_rng(5).normal(0, 3_000, 3 * LONGEST).astype(np.int16)


def cut(pcm: Pcm, chunks: list[int]) -> list[Pcm]:
    """All pieces of a recording that comes in chunks of these sizes, the rest at once."""
    cutter, at = PauseCutter(), 0
    pieces: list[Pcm] = []
    for size in [*chunks, len(pcm)]:
        pieces.extend(cutter.feed(pcm[at : at + size]))
        at += size
    return [*pieces, cutter.close()]


@pytest.mark.parametrize("pause_s", [9.0, 15.0, 19.0])
def test_cut_is_made_in_a_pause(pause_s: float) -> None:
    """Half a second of silence between eight seconds and the longest piece is found; the cut lies in it."""
    pcm = NOISE[:LONGEST].copy()
    begin = int(pause_s * SPEECH_RATE_HZ)
    pcm[begin : begin + SPEECH_RATE_HZ // 2] = 0
    assert begin < quietest(pcm) < begin + SPEECH_RATE_HZ // 2


@pytest.mark.parametrize("amplitude", [0, 20, 8_000])
def test_cut_where_all_is_equally_loud_is_late(amplitude: int) -> None:
    """In silence, in a steady tone: the piece is as long as it may be, so that pieces are few."""
    tone = amplitude * np.sin(2 * np.pi * 440 * np.arange(LONGEST) / SPEECH_RATE_HZ)
    assert LONGEST - SPEECH_RATE_HZ < quietest(tone.astype(np.int16)) <= LONGEST


def test_short_recording_is_one_piece() -> None:
    """Nothing is cut that a recogniser takes at once."""
    (piece,) = cut(NOISE[: LONGEST - 1], [])
    assert len(piece) == LONGEST - 1


@settings(max_examples=25, deadline=None)
@given(st.integers(0, len(NOISE)), st.lists(st.integers(1, LONGEST), max_size=6))
def test_pieces_together_are_the_recording(length: int, chunks: list[int]) -> None:
    """In any chunks the same pieces, none too long, none but the last too short, every sample once and in order."""
    pcm = NOISE[:length]
    pieces = cut(pcm, chunks)
    assert [len(piece) for piece in pieces] == [len(piece) for piece in cut(pcm, [])]
    assert np.array_equal(np.concatenate(pieces), pcm)
    assert all(SHORTEST <= len(piece) <= LONGEST for piece in pieces[:-1])
    assert len(pieces[-1]) < LONGEST
