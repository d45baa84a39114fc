"""Sound on its way out, in the format of its response."""

import base64
import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modalities.audio import g711
from modalities.ports import Pcm
from orchestrator.buffers.output_log import OutputLog
from orchestrator.sessions.links import LogEntry, LoggedAudio, LoggedEvent
from orchestrator.transports.outlet import Outlet
from orchestrator.wire.session import PCM, AudioFormat

MULAW, ALAW = AudioFormat(type="audio/pcmu"), AudioFormat(type="audio/pcma")
NOTHING: Pcm = np.zeros(0, dtype=np.int16)


class Log:
    """A session's log with sound in it, and text between."""

    def __init__(self, max_events: int = 10_000) -> None:
        self.log: OutputLog[LogEntry] = OutputLog(max_events, 10**9)
        self.read = self.log.read
        self._spoken: dict[str, int] = {}

    def speak(
        self, pcm: Pcm, audio_format: AudioFormat, item_id: str = "item_1", last: bool = False
    ) -> LoggedAudio:
        start = self._spoken.get(item_id, 0)
        self._spoken[item_id] = start + len(pcm)
        event_id, sound = f"event_tag_{self.log.last + 1}", pcm.astype("<i2").tobytes()
        entry = LoggedAudio(event_id, "resp_1", item_id, 0, 0, sound, audio_format, start, last)
        self.log.append(entry, 1)
        return entry

    def write(self) -> None:
        self.log.append(LoggedEvent(b"{}"), 1)

    def heard(self, outlet: Outlet, after: int = 0) -> list[bytes]:
        """What a link sends of the sound numbered above `after`."""
        entries = self.read(after, 10_000)
        return [
            event for _, entry in entries if isinstance(entry, LoggedAudio) for event in outlet.encode(entry)
        ]


def noise(samples: int, seed: int = 1) -> Pcm:
    return np.random.default_rng(seed).integers(-20_000, 20_000, samples).astype(np.int16)


def sound_of(events: list[bytes]) -> bytes:
    deltas: list[dict[str, Any]] = [json.loads(event) for event in events]
    assert all(delta["type"] == "response.output_audio.delta" for delta in deltas)
    return b"".join(base64.b64decode(delta["delta"]) for delta in deltas)


def test_outlet_passes_pcm_on_unchanged() -> None:
    """PCM is sent as it was logged, under the log's event id."""
    log = Log()
    entry = log.speak(noise(4_800), PCM)
    (event,) = Outlet(log.read).encode(entry)
    assert sound_of([event]) == entry.pcm
    assert json.loads(event)["event_id"] == "event_tag_1"


@pytest.mark.parametrize("law", [MULAW, ALAW])
def test_outlet_sends_the_rest_of_a_sound_with_its_last_entry(law: AudioFormat) -> None:
    """What the resampler held back comes with the entry that says that no more follows, and all of it is there."""
    log, constant = Log(), np.full(4_800, 1_000, dtype=np.int16)
    log.speak(constant, law)
    log.speak(constant, law)
    outlet = Outlet(log.read)
    events = log.heard(outlet)
    assert len(sound_of(events)) < 3_200
    rest = outlet.encode(log.speak(NOTHING, law, last=True))
    assert len(sound_of([*events, *rest])) == 3_200
    decode = g711.decode_mulaw if law is MULAW else g711.decode_alaw
    assert np.abs(decode(sound_of([*events, *rest]))[50:-50].astype(int) - 1_000).max() < 40


@given(st.lists(st.integers(0, 700), max_size=12), st.integers(1, 3))
@settings(max_examples=30)
def test_outlet_sends_one_event_for_a_number_at_most(sizes: list[int], per_text: int) -> None:
    """A client that has an event has all of its number: where it broke off is one place in the log."""
    log = Log()
    for number, size in enumerate(sizes):
        log.speak(noise(size), MULAW)
        if number % per_text == 0:
            log.write()
    log.speak(NOTHING, MULAW, last=True)
    ids = [json.loads(event)["event_id"] for event in log.heard(Outlet(log.read))]
    assert len(set(ids)) == len(ids)
    numbers = [int(id.removeprefix("event_tag_")) for id in ids]
    assert numbers == sorted(numbers)


def test_outlet_begins_anew_with_another_item() -> None:
    """A sound that was cut off leaves nothing of itself in the next one."""
    log = Log()
    cut = Outlet(log.read)
    cut.encode(log.speak(noise(4_801), MULAW))
    entries = [log.speak(noise(4_800), MULAW, "item_2"), log.speak(NOTHING, MULAW, "item_2", last=True)]
    fresh = Outlet(log.read)
    assert [cut.encode(entry) for entry in entries] == [fresh.encode(entry) for entry in entries]


@given(st.data())
@settings(max_examples=60)
def test_outlet_resumed_anywhere_is_to_the_byte_what_it_would_have_been(data: st.DataObject) -> None:
    """What was sent before a cut and what a new link sends after it are together the unbroken sound: whatever the sizes
    of its pieces, wherever text stands between them, as long as the log holds what was shortly before."""
    sizes = data.draw(st.lists(st.integers(1, 700), min_size=1, max_size=20))
    log = Log()
    log.speak(noise(100), MULAW, "item_0")
    for seed, size in enumerate(sizes):
        log.speak(noise(size, seed), MULAW)
        for _ in range(data.draw(st.integers(0, 2))):
            log.write()
    log.speak(NOTHING, MULAW, last=True)
    whole = log.heard(Outlet(log.read))
    cut = data.draw(st.integers(0, log.log.last))
    after = log.heard(Outlet(log.read), after=cut)
    before = [event for event in whole if int(json.loads(event)["event_id"].rpartition("_")[2]) <= cut]
    assert before + after == whole


def test_outlet_looks_far_back_for_the_sound_before_a_cut() -> None:
    """Words fill the log while a long piece sounds: it is found behind them."""
    log = Log()
    log.speak(noise(4_801), MULAW)
    for _ in range(500):
        log.write()
    cut = log.log.last
    log.speak(noise(4_800, 2), MULAW)
    log.speak(NOTHING, MULAW, last=True)
    whole = log.heard(Outlet(log.read))
    assert log.heard(Outlet(log.read), after=cut) == whole[1:]


def test_outlet_reads_as_much_of_the_sound_before_a_cut_as_still_matters() -> None:
    """A piece that is shorter than what a sample depends on is not enough: the one before it is found too."""
    log = Log()
    log.speak(noise(4_801), MULAW)
    for seed in (2, 3):
        for _ in range(63):
            log.write()
        log.speak(noise(100, seed), MULAW)
    cut = log.log.last - 1
    whole = log.heard(Outlet(log.read))
    assert log.heard(Outlet(log.read), after=cut) == whole[2:]


def test_outlet_takes_what_the_log_still_holds_of_the_sound_before_a_cut() -> None:
    """The log begins right before: the one piece that is there is found, however far one would look."""
    log = Log(max_events=2)
    log.speak(noise(4_801), MULAW)
    log.speak(noise(4_800, 2), MULAW)
    entry = log.speak(noise(4_800, 3), MULAW)
    whole = Log()
    for seed, size in ((1, 4_801), (2, 4_800), (3, 4_800)):
        whole.speak(noise(size, seed), MULAW)
    assert Outlet(log.read).encode(entry) == whole.heard(Outlet(whole.read))[2:]


@pytest.mark.parametrize("lost", [4_800, 4_801, 4_802])
def test_outlet_without_the_sound_before_keeps_its_place(lost: int) -> None:
    """What was shortly before is gone: there may be a seam of 4 ms, and behind it every sample is the unbroken one."""
    kept, dropped = Log(), Log(max_events=2)
    for log in (kept, dropped):
        log.speak(noise(lost, 1), MULAW)
        log.speak(noise(4_800, 2), MULAW)
        log.speak(NOTHING, MULAW, last=True)
    whole = sound_of(kept.heard(Outlet(kept.read)))
    resumed = sound_of(dropped.heard(Outlet(dropped.read), after=1))
    assert abs(len(resumed) - 4_800 // 3) <= 1 + 32
    assert resumed[64:] == whole[-(len(resumed) - 64) :]
