"""Whatever a body says, it becomes work that a worker can be sent, or a refusal: never a fault of the server."""

import io
import json
from contextlib import closing, suppress
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from modalities.text.sentences import speakable
from orchestrator.errors import WireError
from orchestrator.scheduling.work import Speak, Work
from orchestrator.transports.media import SoundFile, Unreadable
from orchestrator.transports.openai_chat import ChatRequest, reply_of
from orchestrator.transports.openai_http import EmbeddingRequest
from orchestrator.transports.openai_speech import SpeechRequest, sentences_of
from orchestrator.transports.transcription_form import Wanted, wanted_of
from orchestrator.workers.frames import Run, Task, frame, to_worker
from tests.transports.test_media import encoded, tone
from tests.transports.test_openai_chat import PNG

# As JSON can write it: halves of characters, numbers of many digits, NaN.
halves = st.text(st.sampled_from("ab\ud83d\ude00\ud800"), max_size=4)
texts = st.text(st.sampled_from("ab .!{}<\n\0é漢"), max_size=8)
anything: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts | halves,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)


def mostly(value: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """This value; now and then anything."""
    return st.integers(0, 19).flatmap(lambda dice: halves if dice == 1 else value if dice else anything)


def nearly(*needed: str, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Objects with fields that are right for the most part; `needed` ones are there."""
    some = {name: mostly(value) for name, value in fields.items()}
    return st.fixed_dictionaries(
        {name: some[name] for name in needed},
        optional={name: value for name, value in some.items() if name not in needed},
    )


functions = nearly(
    "name", name=st.sampled_from(["f", "g"]), arguments=texts, parameters=anything, description=texts
)
calls = nearly("id", "function", id=texts, type=st.just("function"), function=functions)
images = nearly(
    "url",
    url=st.sampled_from([PNG, "data:image/png;base64,", "data:image/jpeg;base64,é", "http://a/b", ""])
    | texts,
    detail=st.sampled_from(["auto", "low"]),
)
parts = nearly(
    "type",
    "text",
    "refusal",
    "image_url",
    image_url=images,
    type=st.sampled_from(["text", "refusal", "image_url"]),
    text=texts,
    refusal=texts,
)
messages = nearly(
    "role",
    "content",
    role=st.sampled_from(["system", "developer", "user", "assistant", "tool"]),
    content=texts | st.lists(parts, max_size=3),
    tool_calls=st.lists(calls, max_size=2),
    tool_call_id=texts,
)
chats = nearly(
    "messages",
    messages=st.lists(messages, min_size=1, max_size=4),
    model=texts,
    stream=st.booleans(),
    stream_options=nearly(include_usage=st.booleans()),
    tools=st.lists(calls, max_size=2),
    tool_choice=st.sampled_from(["none", "auto", "required"]) | calls,
    max_tokens=st.integers(-1, 5),
    temperature=st.floats(-1, 3),
    seed=st.integers(),
    stop=texts | st.lists(texts, max_size=5),
    n=st.integers(0, 2),
    response_format=nearly(type=st.just("text")),
)


def crosses(work: Work) -> None:
    """A worker gets what was sent."""
    run = Run((Task("j", work),))
    assert to_worker(bytes(frame(run))[4:]) == run


def as_json(value: Any) -> Any:
    """What arrives of a value that a client wrote as JSON, in the escapes of ASCII."""
    return json.loads(json.dumps(value))


@settings(deadline=None)
@given(chats | anything, st.booleans())
def test_any_chat_is_work_or_a_refusal(body: Any, looks: bool) -> None:
    """And what is work can be sent to a worker, whether it looks at images or not."""
    try:
        work = reply_of(ChatRequest.model_validate(as_json(body)), looks)
    except (ValidationError, WireError):
        return
    crosses(work)


@settings(deadline=None)
@given(nearly("input", input=texts | st.lists(texts, max_size=4), dimensions=st.integers(0, 3)) | anything)
def test_any_embedding_request_is_read_or_refused(body: Any) -> None:
    """Texts that are none get no further."""
    try:
        EmbeddingRequest.model_validate(as_json(body)).model_dump_json()
    except ValidationError:
        return


@settings(deadline=None)
@given(nearly("input", input=texts, speed=st.floats(0, 5), voice=texts) | anything)
def test_any_speech_request_is_sentences_or_a_refusal(body: Any) -> None:
    """What is to be said can be sent to a worker, and there is something to say in it."""
    try:
        asked = SpeechRequest.model_validate(as_json(body))
    except ValidationError:
        return
    for sentence in sentences_of(asked.input):
        assert speakable(sentence)
        crosses(Speak(sentence, asked.speed))


@given(
    st.dictionaries(
        st.sampled_from(
            [
                "language",
                "prompt",
                "response_format",
                "stream",
                "temperature",
                "include[]",
                "timestamp_granularities[]",
            ]
        ),
        st.sampled_from(["true", "en", "json", "verbose_json", "srt", "word", ""]) | st.text(max_size=8),
    )
)
def test_any_form_is_read_or_refused(form: dict[str, str]) -> None:
    """Each field on its own and all together."""
    with suppress(WireError):
        assert isinstance(wanted_of(form), Wanted)


FILES = [
    encoded(container, codec, tone(0.3, 16_000), 16_000)
    for container, codec in (
        ("wav", "pcm_s16le"),
        ("mp3", "libmp3lame"),
        ("ogg", "libopus"),
        ("flac", "flac"),
        ("mp4", "aac"),
        ("webm", "libopus"),
        ("avi", "pcm_s16le"),
    )
]


@settings(deadline=None, max_examples=60)
@given(
    st.sampled_from(FILES),
    st.lists(st.tuples(st.integers(0, 50_000), st.binary(min_size=1, max_size=64)), max_size=8),
    st.integers(0, 50_000),
)
def test_any_broken_file_ends(file: bytes, changes: list[tuple[int, bytes]], length: int) -> None:
    """Bytes changed anywhere and cut anywhere: some sound or none, in bounds, or a refusal; never another fault."""
    data = bytearray(file)
    for at, change in changes:
        at %= len(data)
        data[at : at + len(change)] = change
    sound = SoundFile(io.BytesIO(bytes(data[: length + 100])), 10.0)
    with closing(sound), suppress(Unreadable):
        while sound.next() is not None:
            assert sound.duration_s <= 10.0
