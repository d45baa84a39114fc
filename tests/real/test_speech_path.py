"""A small part of `chorale bench speech`: real recordings through real calls to the real server."""

import asyncio
from pathlib import Path

import pytest

from benchmarks.calling import Doors
from benchmarks.direct import decode_directly
from benchmarks.judging import Played
from benchmarks.playing import play_all
from benchmarks.recordings import Recording, pick, read_manifest
from benchmarks.scoring import score, total

pytestmark = [pytest.mark.real, pytest.mark.corpus]

SENTENCES = ("clean_read", "command", "telephone_8k")
ODD_FILES = (
    "broken/not_audio.wav",
    "broken/truncated_half.wav",
    "nonspeech/dog_bark_esc10.flac",
    "formats/ulaw_8k.wav",
)


def played(url: str, recordings: list[Recording]) -> dict[str, Played]:
    doors, found = Doors(url), list[Played]()

    async def run() -> None:
        await play_all(recordings, doors, 2, found.append)
        assert await doors.healthy()

    asyncio.run(run())
    return {one.name: one for one in found}


def test_recorded_speech_comes_through_a_call_as_the_recogniser_hears_it(
    server_url: str, speech_data: Path
) -> None:
    """Opus, ring, segmenter, batches and short encoder windows together cost few words; every clip is answered.

    Isolated words and digits are a matter of luck for the small model: the whole benchmark counts them.
    """
    sentences = [one for one in read_manifest(speech_data) if one.speech_s >= 1.5]
    clips = pick(sentences, SENTENCES, 8)
    direct = {clip.name: text for clip, text in decode_directly(clips, threads=1)}
    calls = played(server_url, clips)
    scores = {
        clip.name: score(clip.transcript, direct[clip.name], calls[clip.name].heard.transcript)
        for clip in clips
    }
    told = {name: (direct[name], call.heard) for name, call in calls.items()}
    assert {call.heard.outcome for call in calls.values()} == {"reply"}, told
    assert all(call.alive for call in calls.values())
    totals = total(scores.values())
    assert totals.words > 40
    assert totals.points <= 5, told
    assert totals.ends_kept >= totals.clips - 1, told


def test_odd_files_end_in_events_that_make_sense(server_url: str, speech_data: Path) -> None:
    """Text named .wav, a file that breaks off, a barking dog and µ-law: each is answered as fits, and sessions live."""
    files = [one for one in read_manifest(speech_data) if one.name in ODD_FILES]
    assert len(files) == len(ODD_FILES)
    calls = played(server_url, files)
    assert {name: call.sensible for name, call in calls.items()} == dict.fromkeys(ODD_FILES, True), calls
