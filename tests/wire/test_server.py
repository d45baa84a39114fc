"""Every event that Chorale can send, read by the published types as strictly as the strictest clients read them."""

import inspect
import json

import pytest
from msgspec import Raw
from msgspec.structs import replace
from openai.types.realtime import RealtimeServerEvent
from pydantic import TypeAdapter

from orchestrator.wire import codec, server
from orchestrator.wire.items import (
    OBJECT,
    FunctionCall,
    FunctionCallOutput,
    InputAudio,
    InputImage,
    InputText,
    Item,
    Message,
    OutputAudio,
    OutputText,
)
from orchestrator.wire.session import (
    PCM,
    Audio,
    AudioFormat,
    AudioInput,
    AudioOutput,
    Extension,
    FunctionTool,
    NamedToolChoice,
    NoiseReduction,
    SemanticVad,
    Session,
    Transcription,
)

published: TypeAdapter[RealtimeServerEvent] = TypeAdapter(RealtimeServerEvent)

PLAIN = Session(id="sess_1", model="chorale", expires_at=1_800_000_000)
FULL = Session(
    id="sess_1",
    model="chorale",
    expires_at=1_800_000_000,
    output_modalities=("text",),
    instructions="Be brief.",
    tools=(FunctionTool("f", "d", Raw(b'{"type":"object"}')), FunctionTool("g")),
    tool_choice=NamedToolChoice("f"),
    max_output_tokens=100,
    tracing=Raw(b'"auto"'),
    truncation=Raw(b'{"type":"retention_ratio","retention_ratio":0.5}'),
    include=("item.input_audio_transcription.logprobs",),
    parallel_tool_calls=True,
    reasoning=Raw(b'{"effort":"low"}'),
    audio=Audio(
        AudioInput(
            AudioFormat("audio/pcmu"),
            Transcription(model="whisper-1"),
            NoiseReduction("near_field"),
            SemanticVad(),
        ),
        AudioOutput(AudioFormat("audio/pcma"), "alto", 1.5),
    ),
)
ITEMS: tuple[Item, ...] = (
    Message("system", (InputText("s"),), id="i1", object=OBJECT, status="completed"),
    Message(
        "user",
        (InputText("t"), InputAudio(), InputImage("data:image/png;base64,AA==")),
        id="i2",
        object=OBJECT,
    ),
    Message("user", (InputAudio(transcript="hi", audio="AAA="),), id="i3", object=OBJECT, status="completed"),
    Message("assistant", (), id="i4", object=OBJECT, status="in_progress"),
    Message(
        "assistant", (OutputText("t"), OutputAudio("spoken")), id="i5", object=OBJECT, status="incomplete"
    ),
    FunctionCall("f", "call_1", "", id="i6", object=OBJECT, status="in_progress"),
    FunctionCallOutput("call_1", "42", id="i7", object=OBJECT, status="completed"),
)
RUNNING = server.Response(
    "resp_1",
    "in_progress",
    ("audio",),
    "inf",
    server.ResponseAudio(server.ResponseVoice(PCM, "alto")),
    "conv_1",
)
ENDS = (
    server.StatusDetails("completed"),
    server.StatusDetails("cancelled", "turn_detected"),
    server.StatusDetails("cancelled", "client_cancelled"),
    server.StatusDetails("incomplete", "max_output_tokens"),
    server.StatusDetails("failed", error=server.ErrorBody("server_error", "m", "code")),
)
ENDED = [
    replace(
        RUNNING,
        status=details.type,
        conversation_id=None,
        output=ITEMS[4:6],
        status_details=details,
        metadata={"key": "value"},
        usage=server.Usage(3, 2, 1),
    )
    for details in ENDS
]

EVENTS: tuple[server.ServerEvent, ...] = (
    server.SessionCreated(PLAIN),
    server.SessionUpdated(FULL),
    *(server.ItemAdded(item, None) for item in ITEMS),
    *(server.ItemDone(item, "item_0") for item in ITEMS),
    *(server.ItemRetrieved(item) for item in ITEMS),
    server.ItemTruncated("i", 0, 500),
    server.ItemDeleted("i"),
    server.TranscriptionDelta("i", 0, "he"),
    server.TranscriptionCompleted("i", 0, "", server.DurationUsage(1.5)),
    server.TranscriptionCompleted("i", 0, "", server.DurationUsage(1.5), None),
    server.TranscriptionCompleted(
        "i", 0, "a", server.DurationUsage(1.5), (server.LogProb("a", -0.5, (97,)),)
    ),
    server.TranscriptionFailed("i", 0, server.ErrorBody("server_error", "m")),
    server.SpeechStarted("i", 0),
    server.SpeechStopped("i", 10),
    server.BufferCommitted("i", None),
    server.BufferCleared(),
    server.BufferTimedOut("i", 0, 6_000),
    server.RateLimitsUpdated(
        (server.RateLimit("requests", 1_000, 999, 60.0), server.RateLimit("tokens", 50_000, 0, 0.5))
    ),
    server.ResponseCreated(RUNNING),
    *(server.ResponseDone(response) for response in ENDED),
    *(server.OutputItemAdded("r", 0, item) for item in ITEMS[3:6]),
    *(server.OutputItemDone("r", 1, item) for item in ITEMS[3:6]),
    server.ContentPartAdded("r", "i", 0, 0, server.ShownPart("text", text="")),
    server.ContentPartDone("r", "i", 0, 0, server.ShownPart("audio", transcript="x")),
    server.TextDelta("r", "i", 0, 0, "a"),
    server.TextDone("r", "i", 0, 0, "ab"),
    server.AudioTranscriptDelta("r", "i", 0, 0, "a"),
    server.AudioTranscriptDone("r", "i", 0, 0, "ab"),
    server.AudioDelta("r", "i", 0, 0, "AAA="),
    server.AudioDone("r", "i", 0, 0),
    server.ArgumentsDelta("r", "i", 0, "call_1", "{"),
    server.ArgumentsDone("r", "i", 0, "call_1", "f", "{}"),
    server.PlayoutStarted("r"),
    server.PlayoutStopped("r"),
    server.PlayoutCleared("r"),
    server.Error(server.ErrorDetails("invalid_request_error", "m", "invalid_value", "item.id", "event_9")),
    server.Error(server.ErrorDetails("server_error", "m")),
)
OURS = "chorale."


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: event.__struct_config__.tag)
def test_server_event_passes_the_strictest_parser(event: server.ServerEvent) -> None:
    """The event is one of the published ones, with every required field and no wrong type (Agents SDK, Pipecat)."""
    data = codec.encode(event, "event_1")
    parsed = published.validate_json(data, strict=True)
    assert parsed.type == event.__struct_config__.tag
    assert getattr(parsed, "event_id", None) == "event_1"


def test_server_events_are_all_covered() -> None:
    """A new kind of event needs an example above, unless it is Chorale's own, which only those get who ask."""
    kinds = {
        kind
        for _, kind in inspect.getmembers(server, inspect.isclass)
        if issubclass(kind, server.ServerEvent) and "." in str(kind.__struct_config__.tag)
    }
    published_kinds = {kind for kind in kinds if not str(kind.__struct_config__.tag).startswith(OURS)}
    assert published_kinds <= {type(event) for event in EVENTS}


@pytest.mark.parametrize("event", [event for event in EVENTS if isinstance(event, server.ItemAdded)])
def test_server_item_carries_no_needless_null(event: server.ItemAdded) -> None:
    """The JavaScript SDK drops items with null names, ids or parts; only an unknown transcript is null."""

    def nulls(value: object, path: str) -> list[str]:
        if isinstance(value, dict):
            return [found for name, member in value.items() for found in nulls(member, f"{path}.{name}")]
        if isinstance(value, list):
            return [found for member in value for found in nulls(member, path)]
        return [path] if value is None else []

    shown = json.loads(codec.encode(event, "event_1"))
    assert set(nulls(shown["item"], "item")) <= {"item.content.transcript"}


def test_server_usage_of_a_response_names_every_count() -> None:
    """Clients add the counts up: zeros are written, not left out."""
    shown = json.loads(codec.encode(server.ResponseDone(ENDED[0]), "event_1"))["response"]["usage"]
    assert shown["input_token_details"]["cached_tokens_details"] == {
        "text_tokens": 0,
        "audio_tokens": 0,
        "image_tokens": 0,
    }
    assert shown["output_token_details"] == {"text_tokens": 0, "audio_tokens": 0}


@pytest.mark.parametrize("kind", [server.SessionCreated, server.SessionUpdated])
def test_a_transcription_session_is_shown_without_what_responses_go_by(
    kind: type[server.SessionCreated] | type[server.SessionUpdated],
) -> None:
    """No output, instructions or tools, which it will never have; a realtime session is shown whole."""
    transcribing = replace(
        FULL, type="transcription", object="realtime.transcription_session", chorale=Extension(True)
    )
    shown = json.loads(codec.encode(kind(transcribing), "event_1"))
    assert (shown["event_id"], shown["type"]) == ("event_1", kind.__struct_config__.tag)
    session = shown["session"]
    assert session.keys() == {
        "id",
        "object",
        "type",
        "model",
        "expires_at",
        "include",
        "audio",
        "chorale",
    }
    assert session["audio"].keys() == {"input"}
    assert session["audio"]["input"] == json.loads(codec.encode(kind(FULL), "e"))["session"]["audio"]["input"]
    published.validate_python(shown)
    assert "instructions" in json.loads(codec.encode(kind(FULL), "e"))["session"]
