"""What no client may ask a server to read or keep."""

import base64
import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.errors import WireError
from orchestrator.wire import codec, limits, update
from tests.wire.partials import SERVER

MANY = limits.MAX_VALUES + 2
MIB = 2**20


def update_with(value: bytes) -> bytes:
    """A `session.update` that puts a value where anything is allowed."""
    return b'{"type":"session.update","session":{"type":"realtime","tracing":{"a":' + value + b"}}}"


def item_with(part: object) -> bytes:
    item = {"type": "message", "role": "user", "content": [part]}
    return msgspec.json.encode({"type": "conversation.item.create", "item": item})


@pytest.mark.parametrize(
    "value", [b"0", b"[]", b"{}", b'""', b'{"":0}', b'{"a":0,"b":"\\",\\\\"}', b"null", b"1.5"]
)
def test_check_values_bounds_values_of_any_kind(value: bytes) -> None:
    """Whatever a long array holds, it is refused before it is decoded, in an event as in a part of a session."""
    text = b"[" + b",".join([value] * MANY) + b"]"
    for data in (update_with(text), update_with(text).decode()):
        with pytest.raises(WireError, match="values"):
            codec.decode_client(data)
    with pytest.raises(WireError, match="values"):
        update.initial("sess_1", None, 0, SERVER, b'{"tracing":{"a":' + text + b"}}")


def test_check_values_bounds_numbers_with_exponents() -> None:
    """They take the decoder a hundred times as long as other numbers: some are read, thousands are not."""
    codec.decode_client(update_with(b"[" + b",".join([b"1e300"] * 1_000) + b"]"))
    for number in (b"1e300", b"1.5E+3", b"2e-9"):
        with pytest.raises(WireError, match="values"):
            codec.decode_client(update_with(b"[" + b",".join([number] * 2_000) + b"]"))


@pytest.mark.parametrize(
    "text", ["a," * 100_000, '"' * 100_000, '\\",' * 60_000, "1e5," * 50_000, '","' * 80_000, "\\" * 131_071]
)
def test_check_values_does_not_count_words(text: str) -> None:
    """A table with commas in it, quotes and numbers are text like any other."""
    codec.decode_client(json.dumps({"type": "response.create", "response": {"instructions": text}}))


@given(st.lists(st.text(alphabet=',"\\[{e1 ', max_size=6), min_size=limits.MAX_EXPONENTS, max_size=1_100))
def test_check_values_counts_exactly(words: list[str]) -> None:
    """However strings are written, only the commas between values count."""
    text = json.dumps(words)
    limits.check_values(text)
    padded = words + [0] * (limits.MAX_VALUES - len(words) + 1)
    limits.check_values(json.dumps(padded))
    with pytest.raises(WireError):
        limits.check_values(json.dumps([*padded, 0]))


def test_check_size_lets_only_sound_be_big() -> None:
    """Over a mebibyte only sound is taken: an append, or an item with a clip of the user."""
    sound = base64.b64encode(bytes(MIB)).decode()
    codec.decode_client(json.dumps({"type": "input_audio_buffer.append", "audio": sound}))
    codec.decode_client(item_with({"type": "input_audio", "audio": sound}))
    for event in (
        {"type": "session.update", "session": {"type": "realtime", "prompt": {"id": sound}}},
        {"type": "response.create", "response": {"conversation": "none", "input": [], "x": sound}},
        {"type": "response.cancel", "response_id": sound},
    ):
        with pytest.raises(WireError, match="at most 1048576 characters"):
            codec.decode_client(json.dumps(event))


@pytest.mark.parametrize(
    ("item", "param"),
    [
        (
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "%"}]},
            "item.content",
        ),
        (
            {"type": "message", "role": "user", "content": [{"type": "input_audio", "transcript": "%"}]},
            "item.content",
        ),
        (
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "%"}]},
            "item.content",
        ),
        (
            {"type": "message", "role": "assistant", "content": [{"type": "output_audio", "audio": "%"}]},
            "item.content",
        ),
        ({"type": "function_call", "name": "f", "call_id": "c", "arguments": "%"}, "item.arguments"),
        ({"type": "function_call_output", "call_id": "c", "output": "%"}, "item.output"),
    ],
)
def test_check_item_bounds_what_a_conversation_keeps(item: dict[str, object], param: str) -> None:
    """Words and the assistant's sound, anything of an item that is kept, has at most 262,144 characters."""

    def event(characters: int) -> str:
        text = json.dumps({"type": "conversation.item.create", "item": item})
        return text.replace("%", "a" * characters)

    codec.decode_client(event(limits.MAX_TEXT_CHARACTERS))
    with pytest.raises(WireError) as caught:
        codec.decode_client(event(limits.MAX_TEXT_CHARACTERS + 1))
    assert (caught.value.wire_code, caught.value.param) == ("invalid_value", param)


def test_check_item_bounds_all_parts_together() -> None:
    """Many parts of a legal length are still one item."""
    parts = [{"type": "input_text", "text": "a" * 100_000}] * 3
    item = {"type": "message", "role": "user", "content": parts}
    with pytest.raises(WireError, match="262144"):
        codec.decode_client(json.dumps({"type": "conversation.item.create", "item": item}))


def test_check_params_bounds_instructions_and_tools() -> None:
    """What holds for a session holds for a single response."""
    tool = {"type": "function", "name": "f"}
    for params, param in (
        ({"instructions": "a" * 262_145}, "response.instructions"),
        ({"tools": [tool] * 129}, "response.tools"),
    ):
        with pytest.raises(WireError) as caught:
            codec.decode_client(json.dumps({"type": "response.create", "response": params}))
        assert (caught.value.wire_code, caught.value.param) == ("invalid_value", param)


def test_transcription_hints_are_bounded() -> None:
    """Prompt and keywords go with each draft to the recogniser: 16,384 characters together, no more."""
    path = "session.audio.input.transcription"
    for hints in (
        {"prompt": "a" * 16_385},
        {"keywords": ["a" * 100] * 164},
        {"prompt": "a", "keywords": ["b" * 16_384]},
    ):
        part = {"audio": {"input": {"transcription": {"model": "m", **hints}}}}
        with pytest.raises(WireError) as caught:
            update.initial("sess_1", None, 0, SERVER, json.dumps(part).encode())
        assert (caught.value.wire_code, caught.value.param) == ("invalid_value", path)


PNG = "data:image/png;base64,"


def image(url: str, **fields: str) -> str:
    part = {"type": "input_image", "image_url": url, **fields}
    item = {"type": "message", "role": "user", "content": [part]}
    return json.dumps({"type": "conversation.item.create", "item": item})


def test_check_item_takes_images_as_data_of_two_kinds_up_to_a_size() -> None:
    """PNG and JPEG, 4 MiB of address; nothing that would have to be fetched, nothing else."""
    codec.decode_client(image(PNG + "A" * (limits.MAX_IMAGE_CHARACTERS - len(PNG)), detail="high"))
    codec.decode_client(image("data:image/jpeg;base64,AAAA"))
    for url, field in (
        (PNG + "A" * (limits.MAX_IMAGE_CHARACTERS - len(PNG) + 1), "image_url"),
        ("https://example.com/a.png", "image_url"),
        ("data:image/gif;base64,AAAA", "image_url"),
        ("chorale:image:1", "image_url"),
        ("", "image_url"),
    ):
        with pytest.raises(WireError) as caught:
            codec.decode_client(image(url))
        assert (caught.value.wire_code, caught.value.param) == ("invalid_value", f"item.content[0].{field}")
    with pytest.raises(WireError) as caught:
        codec.decode_client(image(PNG, detail="huge"))
    assert caught.value.param == "item.content[0].detail"


def test_check_item_bounds_the_images_of_an_item() -> None:
    """Eight of one item."""
    part = {"type": "input_image", "image_url": PNG + "AAAA"}
    for images, fits in ((limits.MAX_IMAGES, True), (limits.MAX_IMAGES + 1, False)):
        item = {"type": "message", "role": "user", "content": [part] * images}
        event = json.dumps({"type": "conversation.item.create", "item": item})
        if fits:
            codec.decode_client(event)
        else:
            with pytest.raises(WireError, match="8 images"):
                codec.decode_client(event)


def test_check_params_refuses_images_and_sound_outside_of_items() -> None:
    """What is in one response's input alone nobody would read: the error says what to do instead."""
    for part in (
        {"type": "input_image", "image_url": PNG + "AAAA"},
        {"type": "input_audio", "audio": "AAAA"},
        {"type": "input_audio", "audio": "AAAA", "transcript": None},
    ):
        item = {"type": "message", "role": "user", "content": [part]}
        with pytest.raises(WireError, match="item_reference") as caught:
            codec.decode_client(json.dumps({"type": "response.create", "response": {"input": [item]}}))
        assert caught.value.param == "response.input[0].content[0].type"
    known = {"type": "input_audio", "audio": "AAAA", "transcript": "Hello."}
    item = {"type": "message", "role": "user", "content": [known]}
    codec.decode_client(json.dumps({"type": "response.create", "response": {"input": [item]}}))


def test_check_params_refuses_a_stored_prompt() -> None:
    """As in a session; null is none."""
    codec.decode_client('{"type": "response.create", "response": {"prompt": null}}')
    with pytest.raises(WireError, match="keeps no prompts") as caught:
        codec.decode_client('{"type": "response.create", "response": {"prompt": {"id": "pmpt_1"}}}')
    assert caught.value.param == "response.prompt"
