import json

import msgspec
import pytest
from hypothesis import given
from msgspec import UNSET, Raw
from openai.types.realtime import (
    RealtimeSessionCreateRequest,
    realtime_audio_config_input,
    realtime_audio_config_output,
)

from orchestrator.errors import WireError
from orchestrator.wire import update
from orchestrator.wire.session import (
    PCM,
    AudioFormat,
    Extension,
    NamedToolChoice,
    SemanticVad,
    ServerVad,
    Transcription,
)
from tests.wire.partials import SERVER, SESSION, Json, came, goes, merge, partials, shown


def test_merge_leaves_what_is_not_mentioned() -> None:
    """A field deep inside changes alone: everything beside it stays (livekit sends instructions and tools apart)."""
    first = merge(SESSION, came(transcription={"model": "whisper-1", "language": "en"}))
    second = merge(first, goes(speed=1.25))
    third = merge(second, {"type": "realtime", "instructions": ""})
    assert third.audio.input.transcription == Transcription(model="whisper-1", language="en")
    assert third.audio.output.speed == 1.25
    assert third.instructions == ""
    assert third.audio.input.turn_detection == SESSION.audio.input.turn_detection


def test_merge_replaces_the_listed_objects_as_wholes() -> None:
    """Turn detection, transcription, format, noise reduction, tools and tool choice are not merged with what was."""
    first = merge(
        SESSION,
        {
            "tools": [{"type": "function", "name": "a"}, {"type": "function", "name": "b"}],
            "tool_choice": {"type": "function", "name": "a"},
            "audio": {
                "input": {
                    "turn_detection": {"type": "server_vad", "threshold": 0.9, "idle_timeout_ms": 6000},
                    "transcription": {"model": "whisper-1", "language": "de"},
                    "noise_reduction": {"type": "near_field", "strength": 0.5},
                    "format": {"type": "audio/pcm", "rate": 24000},
                }
            },
        },
    )
    assert first.tool_choice == NamedToolChoice("a")
    second = merge(
        first,
        {
            "tools": [{"type": "function", "name": "c"}],
            "tool_choice": "required",
            "audio": {
                "input": {
                    "turn_detection": {"type": "server_vad", "silence_duration_ms": 200},
                    "transcription": {"language": "en"},
                    "noise_reduction": {"type": "far_field"},
                    "format": {"type": "audio/pcmu"},
                }
            },
        },
    )
    assert [tool.name for tool in second.tools] == ["c"]
    assert second.tool_choice == "required"
    assert second.audio.input.turn_detection == ServerVad(silence_duration_ms=200)
    assert second.audio.input.transcription == Transcription(language="en")
    assert shown(second)["audio"]["input"]["noise_reduction"] == {"type": "far_field"}
    assert second.audio.input.format == AudioFormat("audio/pcmu")
    assert merge(second, {"tools": []}).tools == ()


def test_merge_null_turns_off_what_can_be_off() -> None:
    """Null switches turn detection, transcription, noise reduction and tracing off; prompt is never on."""
    on = merge(
        SESSION,
        {
            "tracing": "auto",
            "audio": {
                "input": {
                    "turn_detection": {"type": "semantic_vad"},
                    "transcription": {"model": "whisper-1"},
                    "noise_reduction": {"type": "near_field"},
                }
            },
        },
    )
    assert (on.tracing, on.prompt) == (Raw(b'"auto"'), None)
    off = merge(
        on,
        {
            "tracing": None,
            "prompt": None,
            "audio": {"input": {"turn_detection": None, "transcription": None, "noise_reduction": None}},
        },
    )
    assert (off.tracing, off.prompt) == (None, None)
    now = off.audio.input
    assert (now.turn_detection, now.transcription, now.noise_reduction) == (None, None, None)


def test_merge_other_nulls_mean_not_given() -> None:
    """What livekit sends first (`speed: null` and more) changes nothing and is no error."""
    changed = merge(
        SESSION, {"output_modalities": ["text"], "instructions": "x", **goes(speed=1.5, voice="alto")}
    )
    nothing = {
        "model": None,
        "instructions": None,
        "output_modalities": None,
        "tools": None,
        "tool_choice": None,
        "max_output_tokens": None,
        "include": None,
        "truncation": None,
        "reasoning": None,
        "parallel_tool_calls": None,
        "chorale": None,
        "audio": {"input": {"format": None}, "output": {"speed": None, "voice": None, "format": None}},
    }
    assert merge(changed, nothing) == changed
    assert merge(changed, {"audio": None}) == changed
    inside = came(turn_detection={"type": "server_vad", "threshold": None, "idle_timeout_ms": None})
    assert merge(changed, inside).audio.input.turn_detection == ServerVad()


def test_merge_echoes_what_the_client_set_field_for_field() -> None:
    """Clients read their settings back, `interrupt_response` above all."""
    sent = {
        "type": "realtime",
        "output_modalities": ["text"],
        "instructions": "Speak like a pirate.",
        "tools": [
            {
                "type": "function",
                "name": "f",
                "description": "d",
                "parameters": {"type": "object", "properties": {"a": {"default": None, "minimum": 1.0}}},
            }
        ],
        "tool_choice": {"type": "function", "name": "f"},
        "max_output_tokens": 512,
        "parallel_tool_calls": False,
        "reasoning": {"effort": "low"},
        "tracing": {"workflow_name": "w", "metadata": {"k": "v"}},
        "truncation": {
            "type": "retention_ratio",
            "retention_ratio": 0.8,
            "token_limits": {"post_instructions": 99},
        },
        "include": ["item.input_audio_transcription.logprobs"],
        "audio": {
            "input": {
                "format": {"type": "audio/pcma"},
                "transcription": {
                    "model": "gpt-4o-transcribe",
                    "language": "en",
                    "prompt": "names",
                    "keywords": ["a"],
                },
                "noise_reduction": {"type": "near_field"},
                "turn_detection": {
                    "type": "server_vad",
                    "threshold": 0.4,
                    "prefix_padding_ms": 200,
                    "silence_duration_ms": 700,
                    "create_response": False,
                    "interrupt_response": False,
                    "idle_timeout_ms": 5000,
                },
            },
            "output": {"format": {"type": "audio/pcm", "rate": 24000}, "voice": "alto", "speed": 0.5},
        },
        "chorale": {"typed_turns": True, "events": ["chorale.gap"]},
    }
    seen = shown(merge(SESSION, sent))
    assert {name: seen[name] for name in sent} == sent
    semantic = {
        "type": "semantic_vad",
        "eagerness": "low",
        "create_response": True,
        "interrupt_response": False,
    }
    assert (
        shown(merge(SESSION, came(turn_detection=semantic)))["audio"]["input"]["turn_detection"] == semantic
    )


def test_merge_fills_the_defaults_of_the_protocol_in() -> None:
    """`semantic_vad` alone is the default of three clients; a server VAD alone has 0.5, 300 ms, 500 ms."""
    assert (
        merge(SESSION, came(turn_detection={"type": "semantic_vad"})).audio.input.turn_detection
        == SemanticVad()
    )
    seen = shown(merge(SESSION, came(turn_detection={"type": "server_vad"})))
    assert seen["audio"]["input"]["turn_detection"] == {
        "type": "server_vad",
        "threshold": 0.5,
        "prefix_padding_ms": 300,
        "silence_duration_ms": 500,
        "create_response": True,
        "interrupt_response": True,
        "idle_timeout_ms": None,
    }


def test_merge_takes_the_voice_as_an_object_and_shows_it_as_a_string() -> None:
    """Pipecat and the JavaScript SDK accept only strings back."""
    assert merge(SESSION, goes(voice={"id": "voice_1"})).audio.output.voice == "voice_1"


def test_merge_takes_the_sessions_own_model_silently() -> None:
    """The Agents SDKs send the model with every update."""
    assert merge(SESSION, {"type": "realtime", "model": "chorale"}) == SESSION


def test_merge_voice_is_fixed_once_sound_was_made() -> None:
    """Before the first sound it may change, afterwards only to itself."""
    chosen = merge(SESSION, goes(voice="alto"))
    assert merge(chosen, goes(voice="alto"), audio_started=True) == chosen
    with pytest.raises(WireError) as caught:
        merge(chosen, goes(voice="bass"), audio_started=True)
    assert caught.value.param == "session.audio.output.voice"


def test_merge_first_update_may_make_a_transcription_session() -> None:
    """Until the type is settled it may be chosen; then it stays."""
    chosen = merge(SESSION, {"type": "transcription"}, type_settled=False)
    assert (chosen.type, chosen.object) == ("transcription", "realtime.transcription_session")
    with pytest.raises(WireError):
        merge(chosen, {"type": "realtime"})


def test_merge_without_a_type_is_accepted() -> None:
    """Clients that leave the type out mean the session's own."""
    assert merge(SESSION, {"instructions": "x"}).instructions == "x"


def test_merge_keeps_the_extension_and_its_secret() -> None:
    """Fields of the extension merge one by one, and a client cannot set the session's secret."""
    session = msgspec.structs.replace(SESSION, chorale=Extension(secret="s3"))
    typed = merge(session, {"chorale": {"typed_turns": True, "secret": "mine"}})
    both = merge(typed, {"chorale": {"events": ["chorale.token"]}})
    assert both.chorale == Extension(typed_turns=True, events=("chorale.token",), secret="s3")
    assert merge(SESSION, {"instructions": "x"}).chorale is UNSET


def test_initial_takes_the_server_defaults_and_the_clients_wishes() -> None:
    """Id and expiry are the connection's; the model is the one asked for, else the secret's, else the server's."""
    wishes = json.dumps({"type": "realtime", "model": "from-secret", **goes(voice="alto")}).encode()
    session = update.initial("sess_9", None, 77, SERVER, wishes)
    assert (session.id, session.expires_at, session.model) == ("sess_9", 77, "from-secret")
    assert session.instructions == "Be brief."
    assert session.audio.output.voice == "alto"
    assert update.initial("s", "from-url", 1, SERVER, wishes).model == "from-url"
    assert update.initial("s", None, 1, SERVER, None).model == "chorale"
    transcription = update.initial("s", None, 1, SERVER, b'{"type":"transcription"}')
    assert transcription.object == "realtime.transcription_session"
    with pytest.raises(WireError):
        update.initial("s", None, 1, SERVER, b'{"type":5}')


@given(partials, partials)
def test_merge_twice_is_merge_once(first: Json, second: Json) -> None:
    """The same update again changes nothing more, after any history."""
    session = merge(SESSION, first)
    once = merge(session, second)
    assert merge(once, second) == once


@given(partials)
def test_merge_of_what_is_shown_changes_nothing(partial: Json) -> None:
    """A client that sends back the session it was shown (as the Agents SDKs nearly do) leaves it as it is."""
    session = merge(SESSION, partial)
    assert merge(session, shown(session), audio_started=True) == session


def test_merge_knows_every_field_of_the_published_session() -> None:
    """No field of the openai package's session request is ignored by mistake."""
    known = {field.name for field in msgspec.structs.fields(update._SessionPart)}
    assert set(RealtimeSessionCreateRequest.model_fields) <= known
    inputs = {field.name for field in msgspec.structs.fields(update._InputPart)}
    assert set(realtime_audio_config_input.RealtimeAudioConfigInput.model_fields) == inputs
    outputs = {field.name for field in msgspec.structs.fields(update._OutputPart)}
    assert set(realtime_audio_config_output.RealtimeAudioConfigOutput.model_fields) == outputs
    assert PCM.rate == 24_000
