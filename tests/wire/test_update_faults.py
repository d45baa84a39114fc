import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.errors import WireError
from orchestrator.wire import update
from tests.wire.partials import SESSION, Json, came, goes, merge, partials, shown

VAD = "audio.input.turn_detection"


def _server_vad(**fields: Json) -> Json:
    return came(turn_detection={"type": "server_vad", **fields})


FAULTS = [
    (_server_vad(threshold=1.01), "invalid_value", f"{VAD}.threshold"),
    (_server_vad(threshold="x"), "invalid_type", f"{VAD}.threshold"),
    (_server_vad(idle_timeout_ms=4999), "invalid_value", f"{VAD}.idle_timeout_ms"),
    (_server_vad(idle_timeout_ms=30001), "invalid_value", f"{VAD}.idle_timeout_ms"),
    (_server_vad(prefix_padding_ms=-1), "invalid_value", f"{VAD}.prefix_padding_ms"),
    (_server_vad(silence_duration_ms=2.5), "invalid_type", f"{VAD}.silence_duration_ms"),
    (came(turn_detection={"type": "psychic_vad"}), "invalid_value", f"{VAD}.type"),
    (came(turn_detection={"threshold": 0.5}), "missing_required_parameter", f"{VAD}.type"),
    (came(turn_detection={"type": "semantic_vad", "eagerness": "max"}), "invalid_value", f"{VAD}.eagerness"),
    (came(format={"type": "audio/pcm", "rate": 16000}), "invalid_value", "audio.input.format.rate"),
    (came(format={"type": "audio/opus"}), "invalid_value", "audio.input.format.type"),
    (came(format="pcm16"), "invalid_type", "audio.input.format"),
    (came(noise_reduction={"type": "mid_field"}), "invalid_value", "audio.input.noise_reduction.type"),
    (came(transcription={"model": 5}), "invalid_type", "audio.input.transcription.model"),
    (goes(speed=0.2), "invalid_value", "audio.output.speed"),
    (goes(speed=1.6), "invalid_value", "audio.output.speed"),
    (goes(voice=5), "invalid_type", "audio.output.voice"),
    (goes(format={"type": "audio/pcmu", "rate": 24000}), "invalid_value", "audio.output.format.rate"),
    ({"output_modalities": ["text", "audio"]}, "invalid_value", "output_modalities"),
    ({"output_modalities": []}, "invalid_value", "output_modalities"),
    ({"output_modalities": ["smell"]}, "invalid_value", "output_modalities[0]"),
    ({"max_output_tokens": 0}, "invalid_value", "max_output_tokens"),
    ({"max_output_tokens": 4097}, "invalid_value", "max_output_tokens"),
    ({"max_output_tokens": "lots"}, "invalid_value", "max_output_tokens"),
    ({"instructions": 5}, "invalid_type", "instructions"),
    ({"tools": {}}, "invalid_type", "tools"),
    ({"tools": [{"type": "function"}]}, "missing_required_parameter", "tools[0].name"),
    ({"tools": [{"type": "mcp", "server_label": "x"}]}, "invalid_value", "tools[0].type"),
    ({"tool_choice": "maybe"}, "invalid_value", "tool_choice"),
    (
        {"truncation": {"type": "retention_ratio", "retention_ratio": 2}},
        "invalid_value",
        "truncation.retention_ratio",
    ),
    ({"truncation": "never"}, "invalid_value", "truncation"),
    ({"tracing": "loud"}, "invalid_value", "tracing"),
    ({"include": ["everything"]}, "invalid_value", "include[0]"),
    ({"type": "telepathy"}, "invalid_value", "type"),
    ({"type": "transcription"}, "invalid_value", "type"),
    ({"model": "another"}, "invalid_value", "model"),
    ({"chorale": {"events": ["chorale.gap", "chorale.party"]}}, "invalid_value", "chorale.events[1]"),
    ({"chorale": {"typed_turns": "yes"}}, "invalid_type", "chorale.typed_turns"),
    ({"max_output_tokens": 10**30}, "invalid_value", "max_output_tokens"),
]


@pytest.mark.parametrize(("partial", "code", "param"), FAULTS)
def test_merge_names_the_fault_and_changes_nothing(partial: Json, code: str, param: str) -> None:
    """An invalid field refuses the whole update, valid fields beside it included, and its path is told."""
    before = shown(SESSION)
    with pytest.raises(WireError) as caught:
        merge(SESSION, {"instructions": "changed", **partial})
    assert (caught.value.wire_code, caught.value.param) == (code, f"session.{param}")
    assert f"'session.{param}'" in str(caught.value)
    assert shown(SESSION) == before


@pytest.mark.parametrize(
    "partial", [b"", b"null", b"[]", b'"x"', b"{", b"\xff", b'{"a":"\\ud800"}', b"[" * 100_000]
)
def test_merge_of_what_is_no_object_is_refused(partial: bytes) -> None:
    """The session has to be an object; the error names it."""
    with pytest.raises(WireError) as caught:
        update.merge(SESSION, partial, audio_started=False)
    assert caught.value.param == "session"


def test_merge_tells_a_beta_client_where_its_fields_have_gone() -> None:
    """Without a type the flat fields of the beta protocol are answered with their new place; with one they are unknown
    fields like any other and ignored."""
    with pytest.raises(WireError, match=r"session\.audio\.input\.format") as caught:
        merge(SESSION, {"input_audio_format": "pcm16"})
    assert (caught.value.wire_code, caught.value.param) == ("missing_required_parameter", "session.type")
    assert merge(SESSION, {"type": "realtime", "input_audio_format": "pcm16", "temperature": 0.8}) == SESSION


@given(partials, st.sampled_from(FAULTS))
def test_merge_fault_beside_valid_fields_refuses_all(partial: Json, fault: tuple[Json, str, str]) -> None:
    """Nothing of an update with one fault in it is taken."""
    with pytest.raises(WireError):
        merge(SESSION, {**partial, **fault[0]})


def test_merge_refuses_a_stored_prompt() -> None:
    """There are none here, and a session without its instructions would not be what the client meant."""
    with pytest.raises(WireError, match="keeps no prompts") as caught:
        merge(SESSION, {"prompt": {"id": "pmpt_1"}})
    assert (caught.value.wire_code, caught.value.param) == ("invalid_value", "session.prompt")
    assert merge(SESSION, {"prompt": None}).prompt is None
