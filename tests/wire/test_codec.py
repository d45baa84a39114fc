import base64
import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from orchestrator.errors import Overloaded, SessionClosed, Unauthorized, WireError
from orchestrator.wire import client, codec, items, server

ITEM = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]}


def _asks(response: object) -> dict[str, object]:
    return {"type": "response.create", "response": response}


def _adds(item: object) -> dict[str, object]:
    return {"type": "conversation.item.create", "item": item}


def _cuts(audio_end_ms: object) -> dict[str, object]:
    return {"type": "conversation.item.truncate", "item_id": "i", "audio_end_ms": audio_end_ms}


def _refusal(event: object) -> WireError:
    with pytest.raises(WireError) as caught:
        codec.decode_client(event if isinstance(event, (bytes, str)) else json.dumps(event))
    return caught.value


@pytest.mark.parametrize(
    ("event", "kind"),
    [
        ({"type": "session.update", "session": {"type": "realtime"}}, client.UpdateSession),
        ({"type": "input_audio_buffer.append", "audio": "AAA="}, client.AppendAudio),
        ({"type": "input_audio_buffer.commit"}, client.CommitAudio),
        ({"type": "input_audio_buffer.clear"}, client.ClearAudio),
        ({"type": "conversation.item.create", "item": ITEM, "previous_item_id": "root"}, client.CreateItem),
        ({"type": "conversation.item.retrieve", "item_id": "item_1"}, client.RetrieveItem),
        (
            {"type": "conversation.item.truncate", "item_id": "i", "content_index": 0, "audio_end_ms": 5},
            client.TruncateItem,
        ),
        ({"type": "conversation.item.delete", "item_id": "item_1"}, client.DeleteItem),
        ({"type": "response.create"}, client.CreateResponse),
        ({"type": "response.cancel", "response_id": "resp_1"}, client.CancelResponse),
        ({"type": "output_audio_buffer.clear"}, client.ClearPlayout),
    ],
)
def test_decode_client_knows_every_event(event: dict[str, object], kind: type[client.ClientEvent]) -> None:
    """Each event of the protocol is read, its event_id kept, unknown fields ignored; str and bytes alike."""
    decorated = {**event, "event_id": "event_7", "from_the_future": {"a": [1, None]}}
    for data in (json.dumps(decorated), json.dumps(decorated).encode()):
        decoded = codec.decode_client(data)
        assert type(decoded) is kind
        assert decoded.event_id == "event_7"


@pytest.mark.parametrize(
    ("event", "code", "param"),
    [
        (b"", "invalid_json", None),
        (b"{", "invalid_json", None),
        (b'{"type":"input_audio_buffer.commit"} x', "invalid_json", None),
        (b"\xff\xfe", "invalid_json", None),
        ('{"type":"conversation.item.delete","item_id":"\ud800"}', "invalid_json", None),
        (b'{"type":"conversation.item.delete","item_id":"\\ud800"}', "invalid_json", None),
        (b'{"type":"response.create","response":{"max_output_tokens":NaN}}', "invalid_json", None),
        (b"[" * 200_000, "invalid_json", None),
        (b'{"type":"input_audio_buffer.commit","x":' + b"[" * 99_999 + b"]" * 99_999 + b"}", "invalid_json", None),
        ([], "invalid_event", None),
        ("5", "invalid_event", None),
        ({}, "invalid_event", "type"),
        ({"type": None}, "invalid_event", "type"),
        ({"type": 7}, "invalid_event", "type"),
        ({"type": "session.destroy"}, "invalid_event", "type"),
        (b'{"type":"response.cancel","type":"rubbish"}', "invalid_event", "type"),
        ({"type": "response.cancel", "event_id": 7}, "invalid_type", "event_id"),
        ({"type": "response.cancel", "event_id": "x" * 513}, "invalid_value", "event_id"),
        ({"type": "session.update"}, "missing_required_parameter", "session"),
        ({"type": "input_audio_buffer.append"}, "missing_required_parameter", "audio"),
        ({"type": "input_audio_buffer.append", "audio": 5}, "invalid_type", "audio"),
        ({"type": "conversation.item.create"}, "missing_required_parameter", "item"),
        (_adds({}), "missing_required_parameter", "item.type"),
        (_adds({"type": "mcp_call"}), "invalid_value", "item.type"),
        (_adds({**ITEM, "role": "bob"}), "invalid_value", "item.role"),
        (_adds({**ITEM, "id": ""}), "invalid_value", "item.id"),
        (_adds({**ITEM, "content": [{"type": "input_text"}]}), "missing_required_parameter", "item.content[0].text"),
        (
            _adds({**ITEM, "role": "system", "content": [{"type": "input_audio"}]}),
            "invalid_value",
            "item.content[0].type",
        ),
        (_adds({**ITEM, "role": "assistant"}), "invalid_value", "item.content[0].type"),
        (
            _adds({"type": "function_call_output", "call_id": "c", "output": {}}),
            "invalid_type",
            "item.output",
        ),
        ({"type": "conversation.item.truncate", "item_id": "i"}, "missing_required_parameter", "audio_end_ms"),
        (_cuts(-1), "invalid_value", "audio_end_ms"),
        (_cuts(1.5), "invalid_type", "audio_end_ms"),
        (_cuts(10**30), "invalid_value", "audio_end_ms"),
        ({"type": "conversation.item.delete", "item_id": None}, "missing_required_parameter", "item_id"),
        (_asks(5), "invalid_type", "response"),
        (_asks({"max_output_tokens": 0}), "invalid_value", "response.max_output_tokens"),
        (_asks({"max_output_tokens": 4097}), "invalid_value", "response.max_output_tokens"),
        (_asks({"max_output_tokens": "all"}), "invalid_value", "response.max_output_tokens"),
        (_asks({"output_modalities": ["text", "audio"]}), "invalid_value", "response.output_modalities"),
        (_asks({"output_modalities": ["video"]}), "invalid_value", "response.output_modalities[0]"),
        (_asks({"metadata": {"a": 1}}), "invalid_type", "response.metadata"),
        (_asks({"metadata": {str(n): "" for n in range(17)}}), "invalid_value", "response.metadata"),
        (_asks({"metadata": {"k" * 65: ""}}), "invalid_value", "response.metadata"),
        (_asks({"metadata": {"k": "v" * 513}}), "invalid_value", "response.metadata.k"),
        (
            _asks({"input": [{"type": "item_reference"}]}),
            "missing_required_parameter",
            "response.input[0].id",
        ),
        (_asks({"tools": [{"type": "mcp"}]}), "invalid_value", "response.tools[0].type"),
        (
            _asks({"audio": {"output": {"format": {"type": "audio/pcm", "rate": 16000}}}}),
            "invalid_value",
            "response.audio.output.format.rate",
        ),
    ],
)  # fmt: skip
def test_decode_client_names_the_fault(event: object, code: str, param: str | None) -> None:
    """An invalid event yields the protocol's code, the path of the field, and a text that names it."""
    error = _refusal(event)
    assert (error.wire_code, error.param) == (code, param)
    if param is not None and code != "invalid_event":
        assert f"'{param}'" in str(error)


def test_decode_client_says_what_was_expected() -> None:
    """The message names the values that would have been right."""
    assert "'system', 'user', 'assistant'" in str(_refusal(_adds({**ITEM, "role": "bob"})))
    assert "an integer" in str(_refusal(_cuts("5")))


def test_decode_client_takes_null_as_not_given() -> None:
    """Clients that send every field, unset ones as null, are understood (LiveKit does)."""
    event = {
        "type": "response.create",
        "event_id": None,
        "response": {
            "conversation": None,
            "metadata": {"a": "b", "c": None},
            "tools": None,
            "tool_choice": None,
            "audio": {"output": {"voice": None, "format": None}},
            "input": None,
        },
    }
    decoded = codec.decode_client(json.dumps(event))
    assert isinstance(decoded, client.CreateResponse)
    assert decoded.response is not UNSET
    assert decoded.response.conversation == "auto"
    assert decoded.response.metadata == {"a": "b"}
    assert decoded.response.input is None
    item = {**ITEM, "id": None, "status": None, "object": None}
    created = codec.decode_client(
        json.dumps({"type": "conversation.item.create", "item": item, "previous_item_id": None})
    )
    assert isinstance(created, client.CreateItem)
    assert created.item.id is UNSET
    assert created.previous_item_id is None
    assert codec.decode_client('{"type":"response.create","response":null}') == client.CreateResponse()


def test_decode_client_reads_past_numbers_that_no_machine_holds() -> None:
    """A huge integer in an unknown field does no harm, even where the event has to be put right."""
    event = {"type": "response.create", "response": {"conversation": None, "unknown": 10**30}}
    assert isinstance(codec.decode_client(json.dumps(event)), client.CreateResponse)


def test_decode_client_keeps_an_empty_context_apart_from_none() -> None:
    """`input: []` is an empty context; a missing one is the conversation."""
    decoded = codec.decode_client('{"type":"response.create","response":{"input":[]}}')
    assert isinstance(decoded, client.CreateResponse)
    assert decoded.response is not UNSET
    assert decoded.response.input == ()


def test_decode_client_maps_the_part_types_of_the_beta_protocol() -> None:
    """`text` and `audio` parts take the side of their role, also inside a response's input."""
    says: dict[str, tuple[list[dict[str, str]], tuple[items.Part, ...]]] = {
        "user": (
            [{"type": "text", "text": "a"}, {"type": "audio", "audio": "AA==", "transcript": "e"}],
            (items.InputText("a"), items.InputAudio("e", "AA==")),
        ),
        "assistant": (
            [{"type": "text", "text": "b"}, {"type": "audio", "transcript": "c"}],
            (items.OutputText("b"), items.OutputAudio("c")),
        ),
        "system": ([{"type": "text", "text": "d"}], (items.InputText("d"),)),
    }
    for role, (parts, wanted) in says.items():
        message = {"type": "message", "role": role, "content": parts}
        created = codec.decode_client(json.dumps(_adds(message)))
        assert isinstance(created, client.CreateItem)
        assert isinstance(created.item, items.Message)
        assert created.item.content == wanted
        asked = codec.decode_client(json.dumps(_asks({"input": [message]})))
        assert isinstance(asked, client.CreateResponse)
        assert asked.response is not UNSET
        assert asked.response.input == (created.item,)


def test_decode_client_takes_a_voice_object_and_whole_decimals() -> None:
    """A voice may be given by `{id}`, an integer as 12.0."""
    voice = _asks({"audio": {"output": {"voice": {"id": "v1"}}}})
    decoded = codec.decode_client(json.dumps(voice))
    assert isinstance(decoded, client.CreateResponse)
    assert decoded.response is not UNSET
    assert decoded.response.audio == client.ParamsAudio(client.ParamsVoice(voice="v1"))
    cut = codec.decode_client('{"type":"conversation.item.truncate","item_id":"i","audio_end_ms":12.0}')
    assert cut == client.TruncateItem(item_id="i", audio_end_ms=12)


def test_decode_client_keeps_a_tool_schema_as_written() -> None:
    """Nulls and decimals inside a tool's JSON Schema are the client's own, even where the rest has to be put right."""
    schema = '{"type":"object","properties":{"a":{"default":null,"minimum":1.0}}}'
    tool = f'{{"type":"function","name":"f","parameters":{schema}}}'
    data = f'{{"type":"response.create","response":{{"conversation":null,"tools":[{tool}]}}}}'
    decoded = codec.decode_client(data)
    assert isinstance(decoded, client.CreateResponse)
    assert decoded.response is not UNSET
    assert decoded.response.tools is not None
    parameters = decoded.response.tools[0].parameters
    assert parameters is not UNSET
    assert json.loads(bytes(parameters)) == json.loads(schema)
    assert b"1.0" in bytes(parameters)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
FIELDS = """
    type event_id session audio item id object role content text transcript status previous_item_id item_id
    content_index audio_end_ms response response_id instructions output_modalities tools tool_choice name
    parameters max_output_tokens output format voice rate metadata conversation input call_id arguments
"""
field_names = st.sampled_from(FIELDS.split())
field_values = st.one_of(
    st.sampled_from(
        [*codec.EVENT_NAMES, "message", "function_call", "input_text", "text", "audio", "user", "assistant"]
    ),
    st.sampled_from([None, 10**25, -1, 1.5, "", "\ud800", float("nan"), float("inf"), 1e300]),
    json_values,
)
almost_events = st.recursive(
    st.dictionaries(field_names, field_values, max_size=5),
    lambda inner: st.dictionaries(
        field_names, inner | st.lists(inner, max_size=3) | field_values, max_size=6
    ),
    max_leaves=10,
)


event_like = st.builds(
    lambda kind, rest: json.dumps({**rest, "type": kind}), st.sampled_from(codec.EVENT_NAMES), almost_events
)
CODES = {"invalid_json", "invalid_event", "missing_required_parameter", "invalid_type", "invalid_value"}


def _outcome(data: bytes | str) -> client.AnyClientEvent | WireError:
    try:
        return codec.decode_client(data)
    except WireError as error:
        return error


@given(
    st.one_of(st.binary(max_size=200), st.text(max_size=200), event_like, st.builds(json.dumps, json_values))
)
def test_decode_client_of_anything_gives_a_value_or_a_wire_error(data: bytes | str) -> None:
    """No bytes, however broken, raise anything but `WireError`; what is accepted can be written out again; and the
    answer to a refusal can be sent."""
    event_id = codec.client_event_id(data)
    assert event_id is None or len(event_id) <= 512
    outcome = _outcome(data)
    if isinstance(outcome, WireError):
        assert outcome.wire_code in CODES
        assert len(str(outcome)) < 2_000
        json.loads(codec.encode(codec.error_event(outcome, event_id), "event_1"))
    elif not isinstance(outcome, client.UpdateSession):
        msgspec.json.encode(outcome)


@pytest.mark.parametrize(
    ("data", "event_id"),
    [
        ('{"event_id":"e1","type":"nonsense"}', "e1"),
        ('{"type":"conversation.item.delete","event_id":"e2"}', "e2"),
        ('{"event_id":7,"type":"response.cancel"}', None),
        ('{"event_id":null}', None),
        (json.dumps({"event_id": "x" * 512}), "x" * 512),
        (json.dumps({"event_id": "x" * 513}), None),
        ("[1]", None),
        ("{", None),
        (b"\xff", None),
        ("[" * 200_000, None),
        ('"\ud800"', None),
    ],
)
def test_client_event_id_is_found_in_broken_events(data: bytes | str, event_id: str | None) -> None:
    """An error can name the event that it answers, whatever else is wrong with that event."""
    assert codec.client_event_id(data) == event_id


@given(st.binary(max_size=300))
def test_decode_audio_reads_what_base64_writes(sound: bytes) -> None:
    """Any bytes survive the way through JSON."""
    assert codec.decode_audio(base64.b64encode(sound).decode()) == sound


@pytest.mark.parametrize(
    "b64", ["AAA", "A", "AA=A", "AA==AA==", "AA\nA=", "-_-_", "AAA=\n", "é===", "\ud800", "AA= ="]
)
def test_decode_audio_refuses_what_is_no_base64(b64: str) -> None:
    """Strict: a damaged chunk is an error on `audio`, not noise in the recogniser."""
    with pytest.raises(WireError) as caught:
        codec.decode_audio(b64)
    assert (caught.value.wire_code, caught.value.param) == ("invalid_value", "audio")


def test_decode_audio_takes_15_mib_and_no_more() -> None:
    """The protocol's limit of one append is exact."""
    most = base64.b64encode(bytes(codec.MAX_APPEND_BYTES)).decode()
    assert len(codec.decode_audio(most)) == codec.MAX_APPEND_BYTES
    with pytest.raises(WireError, match="15728640"):
        codec.decode_audio(most + "AAAA")


def test_encode_puts_the_event_id_into_any_event() -> None:
    """The id is part of the object, escaped if need be; an event without other fields has it too."""
    assert json.loads(codec.encode(server.BufferCleared(), 'event_"1"')) == {
        "event_id": 'event_"1"',
        "type": "input_audio_buffer.cleared",
    }
    assert json.loads(codec.encode(server.ItemDeleted("item_1"), "event_2")) == {
        "event_id": "event_2",
        "type": "conversation.item.deleted",
        "item_id": "item_1",
    }


def test_encode_leaves_unset_fields_out_and_writes_required_nulls() -> None:
    """Strict clients drop objects with needless nulls, and need the ones that the protocol lists."""
    item = items.Message("user", (items.InputAudio(),), id="i", object=items.OBJECT, status="completed")
    shown = json.loads(codec.encode(server.ItemAdded(item, None), "event_1"))
    assert shown["previous_item_id"] is None
    assert shown["item"]["content"] == [{"type": "input_audio", "transcript": None}]
    assert "audio" not in shown["item"]["content"][0]


@pytest.mark.parametrize(
    ("error", "kind", "code", "param"),
    [
        (WireError("invalid_value", "no", "item.id"), "invalid_request_error", "invalid_value", "item.id"),
        (Overloaded("full", 2.5), "rate_limit_error", "rate_limit_exceeded", None),
        (Unauthorized("no key"), "invalid_request_error", "invalid_api_key", None),
        (SessionClosed("over"), "server_error", "session_expired", None),
        (KeyError("secret detail"), "server_error", "server_error", None),
    ],
)
def test_error_event_carries_code_and_the_event_it_answers(
    error: Exception, kind: str, code: str, param: str | None
) -> None:
    """Each of our errors has its type and code; a foreign one is told without its text."""
    details = codec.error_event(error, "event_9").error
    assert (details.type, details.code, details.param, details.event_id) == (kind, code, param, "event_9")
    assert "secret detail" not in details.message
    assert details.message
