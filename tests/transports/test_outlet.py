"""Sound on its way out, in the format of its response."""

import base64
import json
from typing import Any

import numpy as np
import pytest

from modalities.audio import g711
from orchestrator.sessions.links import LoggedAudio, LoggedEvent
from orchestrator.transports.outlet import Outlet
from orchestrator.wire import codec
from orchestrator.wire.server import AudioDone, TextDone
from orchestrator.wire.session import PCM, AudioFormat

MULAW, ALAW = AudioFormat(type="audio/pcmu"), AudioFormat(type="audio/pcma")


def piece(
    number: int, audio_format: AudioFormat, samples: int = 4_800, item_id: str = "item_1"
) -> LoggedAudio:
    sound = np.full(samples, 1_000, dtype="<i2").tobytes()
    return LoggedAudio(f"event_{number}", "resp_1", item_id, 0, 0, sound, audio_format)


def done(number: int, item_id: str = "item_1") -> LoggedEvent:
    return LoggedEvent(codec.encode(AudioDone("resp_1", item_id, 0, 0), f"event_{number}"))


def sound_of(events: list[bytes]) -> bytes:
    deltas: list[dict[str, Any]] = [json.loads(event) for event in events]
    assert all(delta["type"] == "response.output_audio.delta" for delta in deltas)
    return b"".join(base64.b64decode(delta["delta"]) for delta in deltas)


def test_outlet_passes_pcm_on_unchanged() -> None:
    """PCM is sent as it was logged, under the log's event id, and nothing before the end."""
    outlet = Outlet()
    (event,) = outlet.encode(piece(1, PCM))
    assert sound_of([event]) == piece(1, PCM).pcm
    assert json.loads(event)["event_id"] == "event_1"
    assert outlet.before(done(2)) == []


@pytest.mark.parametrize("law", [MULAW, ALAW])
def test_outlet_sends_the_rest_of_a_sound_before_it_is_done(law: AudioFormat) -> None:
    """What the resampler held back comes before the done event of its sound, and only there, once."""
    outlet = Outlet()
    events = [*outlet.encode(piece(1, law)), *outlet.encode(piece(2, law))]
    text = LoggedEvent(
        codec.encode(TextDone("resp_1", "item_1", 0, 0, "response.output_audio.done"), "event_3")
    )
    assert outlet.before(text) == []
    short = len(sound_of(events))
    rest = outlet.before(done(4))
    assert short < 3_200
    assert short + len(sound_of(rest)) == 3_200
    assert outlet.before(done(5)) == []
    decode = g711.decode_mulaw if law is MULAW else g711.decode_alaw
    assert np.abs(decode(sound_of([*events, *rest]))[50:-50].astype(int) - 1_000).max() < 40


def test_outlet_names_the_rest_by_the_number_of_its_piece() -> None:
    """Every id is unique and ends in the log's number, so that a client can come back to it."""
    outlet = Outlet()
    outlet.encode(piece(17, MULAW))
    (rest,) = outlet.before(done(18))
    event_id = json.loads(rest)["event_id"]
    assert event_id != "event_17"
    assert event_id.endswith("_17")


def test_outlet_begins_anew_with_another_item() -> None:
    """A sound that was cut off leaves nothing of itself in the next one."""
    cut = Outlet()
    cut.encode(piece(1, MULAW, 4_801))
    fresh = Outlet()
    assert cut.encode(piece(2, MULAW, item_id="item_2")) == fresh.encode(piece(2, MULAW, item_id="item_2"))
    assert cut.before(done(3)) == fresh.before(done(3))
