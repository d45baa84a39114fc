"""Partial sessions as clients send them, and the session that the tests of updates begin with."""

import json
from typing import Any

import msgspec
from hypothesis import strategies as st

from orchestrator.wire import update
from orchestrator.wire.session import Session

SERVER = Session(id="", model="chorale", expires_at=0, instructions="Be brief.")
SESSION = update.initial("sess_1", None, 60, SERVER, None)

Json = Any  # the JSON of a client: whatever a test wants to send


def shown(session: Session) -> Json:
    """The session as a client sees it."""
    return json.loads(msgspec.json.encode(session))


def merge(session: Session, partial: Json, **flags: bool) -> Session:
    return update.merge(session, json.dumps(partial).encode(), **{"audio_started": False, **flags})


def came(**fields: Json) -> Json:
    return {"type": "realtime", "audio": {"input": fields}}


def goes(**fields: Json) -> Json:
    return {"type": "realtime", "audio": {"output": fields}}


formats = st.sampled_from(
    [{"type": "audio/pcm", "rate": 24000}, {"type": "audio/pcmu"}, {"type": "audio/pcma"}, None]
)
vads = st.one_of(
    st.none(),
    st.fixed_dictionaries(
        {"type": st.just("server_vad")},
        optional={"threshold": st.floats(0, 1) | st.none(), "silence_duration_ms": st.integers(0, 9_000)},
    ),
    st.fixed_dictionaries(
        {"type": st.just("semantic_vad")}, optional={"eagerness": st.sampled_from(["low", "auto"])}
    ),
)
partials = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["realtime", None]),
        "output_modalities": st.sampled_from([["text"], ["audio"], None]),
        "instructions": st.text(max_size=10) | st.none(),
        "max_output_tokens": st.integers(1, 4096) | st.sampled_from(["inf", None, 7.0]),
        "tracing": st.sampled_from(["auto", None, {"workflow_name": "w", "n": 1.0}]),
        "tools": st.lists(
            st.builds(lambda name: {"type": "function", "name": name}, st.text(min_size=1, max_size=5)),
            max_size=2,
        ),
        "truncation": st.sampled_from(
            ["auto", "disabled", {"type": "retention_ratio", "retention_ratio": 0.5}]
        ),
        "unknown": st.integers(),
        "audio": st.fixed_dictionaries(
            {},
            optional={
                "input": st.fixed_dictionaries(
                    {},
                    optional={
                        "format": formats,
                        "turn_detection": vads,
                        "transcription": st.sampled_from([None, {"model": "m"}, {}]),
                        "noise_reduction": st.sampled_from([None, {"type": "near_field"}]),
                    },
                ),
                "output": st.fixed_dictionaries(
                    {},
                    optional={
                        "format": formats,
                        "voice": st.sampled_from(["a", "b"]),
                        "speed": st.floats(0.25, 1.5),
                    },
                ),
            },
        ),
        "chorale": st.fixed_dictionaries({}, optional={"typed_turns": st.booleans()}),
    },
)
