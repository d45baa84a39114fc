"""One partial session laid over another."""

import json

import pytest

from orchestrator.errors import WireError
from orchestrator.transports.partial import MAX_MODEL_CHARACTERS, model, overlay, transcription


def laid(under: object, over: object) -> object:
    result = overlay(json.dumps(under).encode(), json.dumps(over).encode())
    assert result is not None
    return json.loads(result)


def test_overlay_merges_the_deep_parts_and_replaces_the_rest() -> None:
    """Audio merges field by field; turn detection, formats and tools are wholes."""
    under = {
        "instructions": "one",
        "tools": [{"type": "function", "name": "a"}],
        "audio": {
            "input": {
                "turn_detection": {"type": "server_vad", "threshold": 0.9},
                "format": {"type": "audio/pcmu"},
            },
            "output": {"voice": "v"},
        },
        "chorale": {"typed_turns": True},
    }
    over = {
        "tools": [],
        "audio": {"input": {"turn_detection": {"type": "semantic_vad"}}, "output": {"speed": 1.1}},
        "chorale": {"events": ["chorale.token"]},
    }
    assert laid(under, over) == {
        "instructions": "one",
        "tools": [],
        "audio": {
            "input": {"turn_detection": {"type": "semantic_vad"}, "format": {"type": "audio/pcmu"}},
            "output": {"voice": "v", "speed": 1.1},
        },
        "chorale": {"typed_turns": True, "events": ["chorale.token"]},
    }


def test_overlay_takes_null_as_off_only_where_it_means_that() -> None:
    """An explicit null switches turn detection off; elsewhere it is as if not given."""
    under = {"audio": {"input": {"turn_detection": {"type": "server_vad"}}, "output": {"speed": 1.2}}}
    over = {"audio": {"input": {"turn_detection": None}, "output": {"speed": None}}}
    assert laid(under, over) == {"audio": {"input": {"turn_detection": None}, "output": {"speed": 1.2}}}


def test_overlay_of_one_is_that_one() -> None:
    """With nothing to lay over or under, the bytes stay as they are."""
    assert overlay(None, None) is None
    assert overlay(b'{"a": 1}', None) == b'{"a": 1}'
    assert overlay(None, b'{"a": 1}') == b'{"a": 1}'


@pytest.mark.parametrize("broken", [b"[]", b"{", b"\xff", b"null"])
def test_overlay_refuses_what_is_no_object(broken: bytes) -> None:
    """The error names the session, wherever the broken one came from."""
    for under, over in ((broken, None), (None, broken), (broken, b"{}"), (b"{}", broken)):
        with pytest.raises(WireError) as caught:
            overlay(under, over)
        assert caught.value.param == "session"


def test_transcription_keeps_a_type_that_is_settled() -> None:
    """The URL asks for transcription; a secret that says otherwise is contradicted later, not silently changed."""
    assert json.loads(transcription(None)) == {"type": "transcription"}
    assert json.loads(transcription(b'{"type":"realtime"}')) == {"type": "realtime"}
    assert json.loads(transcription(b'{"instructions":"x"}')) == {
        "type": "transcription",
        "instructions": "x",
    }


def test_model_is_any_name_of_sensible_length() -> None:
    """Unknown models are accepted; an endless name is refused by its parameter."""
    assert model(None) is model("") is None
    assert model("gpt-anything") == "gpt-anything"
    with pytest.raises(WireError) as caught:
        model("m" * (MAX_MODEL_CHARACTERS + 1))
    assert caught.value.param == "model"
