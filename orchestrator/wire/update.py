"""Applies a partial session to the effective one (protocol reference §2, "session.update semantics").

Everything is validated before anything is changed; what comes out is a new, whole session.
"""

from typing import Annotated, Literal, TypeVar

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType, structs

from orchestrator.errors import WireError
from orchestrator.wire import faults, lenient, limits
from orchestrator.wire.session import (
    EXTENSION_EVENTS,
    Audio,
    AudioFormat,
    AudioInput,
    AudioOutput,
    Extension,
    FunctionTool,
    Modality,
    NoiseReduction,
    Reasoning,
    ServerVad,
    Session,
    ToolChoice,
    Transcription,
    TurnDetection,
)

_ROOT = "session"
_TURNS_OFF = frozenset(
    {
        ("tracing",),
        ("prompt",),
        ("audio", "input", "turn_detection"),
        ("audio", "input", "transcription"),
        ("audio", "input", "noise_reduction"),
    }
)
"""Where null means "off". Everywhere else it means "not given"."""

_BETA_FIELDS = {
    "modalities": "output_modalities",
    "voice": "audio.output.voice",
    "speed": "audio.output.speed",
    "input_audio_format": "audio.input.format",
    "output_audio_format": "audio.output.format",
    "input_audio_transcription": "audio.input.transcription",
    "input_audio_noise_reduction": "audio.input.noise_reduction",
    "turn_detection": "audio.input.turn_detection",
    "max_response_output_tokens": "max_output_tokens",
}

_MAX_PADDING_MS = 10_000
_MAX_SILENCE_MS = 60_000
_encoder = msgspec.json.Encoder()
T = TypeVar("T")


class _InputPart(Struct, frozen=True):
    format: AudioFormat | UnsetType = UNSET
    transcription: Transcription | UnsetType | None = UNSET
    noise_reduction: NoiseReduction | UnsetType | None = UNSET
    turn_detection: TurnDetection | UnsetType | None = UNSET


class _OutputPart(Struct, frozen=True):
    format: AudioFormat | UnsetType = UNSET
    voice: Annotated[str, Meta(min_length=1, max_length=limits.MAX_VOICE_CHARACTERS)] | UnsetType = UNSET
    speed: Annotated[float, Meta(ge=0.25, le=1.5)] | UnsetType = UNSET


class _AudioPart(Struct, frozen=True):
    input: _InputPart = _InputPart()
    output: _OutputPart = _OutputPart()


class _Retention(Struct, frozen=True, tag_field="type", tag="retention_ratio"):
    retention_ratio: Annotated[float, Meta(ge=0, le=1)]
    token_limits: dict[str, int] | UnsetType = UNSET


class _ExtensionPart(Struct, frozen=True):
    typed_turns: bool | UnsetType = UNSET
    ask: bool | UnsetType = UNSET
    events: tuple[str, ...] | UnsetType = UNSET
    record: bool | UnsetType = UNSET


class _SessionPart(Struct, frozen=True):
    """A session in which everything may be missing. Open objects are kept as decoded and only echoed."""

    type: Literal["realtime", "transcription"] | UnsetType = UNSET
    model: str | UnsetType = UNSET
    output_modalities: tuple[Modality, ...] | UnsetType = UNSET
    instructions: Annotated[str, Meta(max_length=limits.MAX_TEXT_CHARACTERS)] | UnsetType = UNSET
    tools: tuple[FunctionTool, ...] | UnsetType = UNSET
    tool_choice: ToolChoice | UnsetType = UNSET
    max_output_tokens: int | Literal["inf"] | UnsetType = UNSET
    tracing: Literal["auto"] | dict[str, object] | UnsetType | None = UNSET
    truncation: Literal["auto", "disabled"] | _Retention | UnsetType = UNSET
    prompt: dict[str, object] | UnsetType | None = UNSET
    include: tuple[Literal["item.input_audio_transcription.logprobs"], ...] | UnsetType = UNSET
    parallel_tool_calls: bool | UnsetType = UNSET
    reasoning: Reasoning | UnsetType = UNSET
    audio: _AudioPart = _AudioPart()
    chorale: _ExtensionPart | UnsetType = UNSET


_decoder = msgspec.json.Decoder(_SessionPart)


def merge(
    session: Session,
    partial: bytes | Raw,
    *,
    audio_started: bool,
    type_settled: bool = True,
    heeds: bool = True,
) -> Session:
    """Returns `session` changed by a client's partial session object (JSON).

    `audio_started`: the session has produced sound, so its voice is fixed. `type_settled` is False only for the first
    update of a session, which may still make it a transcription session. `heeds` False: a stored prompt, and what tools
    are, is shown and not looked at (`SessionRules.heeds`). Raises `WireError`; then nothing has changed.
    """
    part = _read(partial, heeds)
    if part.model is not UNSET and part.model != session.model:
        raise faults.bad_value(
            f"{_ROOT}.model", f"the model of a session cannot change from '{session.model}'."
        )
    if type_settled and part.type is not UNSET and part.type != session.type:
        raise faults.bad_value(f"{_ROOT}.type", f"the type of a session cannot change from '{session.type}'.")
    if audio_started and part.audio.output.voice not in (UNSET, session.audio.output.voice):
        raise faults.bad_value(
            f"{_ROOT}.audio.output.voice", "the voice cannot change once the session has produced audio."
        )
    return _apply(session, part)


def initial(
    session_id: str, model: str | None, expires_at: int, defaults: Session, partial: bytes | Raw | None
) -> Session:
    """Returns the effective session of a new connection or of a client secret.

    `defaults` is the server's own session (its id and expiry do not count); `partial` the client's object, if any.
    The model is the one asked for, else the client object's, else the default. Raises `WireError`.
    """
    session = structs.replace(defaults, id=session_id, expires_at=expires_at, model=model or defaults.model)
    if partial is None:
        return session
    part = _read(partial)
    if model is None and part.model is not UNSET:
        session = structs.replace(session, model=part.model)
    return _apply(session, part)


def _read(partial: bytes | Raw, heeds: bool = True) -> _SessionPart:
    """Reads and validates a partial session on its own."""
    limits.check_values(partial)
    try:
        plain = msgspec.json.decode(partial)
        if not isinstance(plain, dict):
            raise faults.wrong_type(_ROOT, "an object", "another type")
        _refuse_beta(plain)
        tidied = lenient.tidy(plain, _TURNS_OFF)
        assert isinstance(tidied, dict)
        if isinstance(audio := tidied.get("audio"), dict):
            lenient.named_voice(audio.get("output"))
        part = _decoder.decode(_encoder.encode(tidied))
    except msgspec.ValidationError as error:
        raise faults.translate(error, _ROOT) from None
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise WireError("invalid_json", f"The session is not valid JSON: {error}.", _ROOT) from None
    _check(part, heeds)
    return part


def _refuse_beta(plain: dict[str, object]) -> None:
    """Tells a beta client, which is known by its missing type, where its fields have gone. With a type the fields are
    unknown ones and ignored like any other."""
    if "type" in plain:
        return
    for old, new in _BETA_FIELDS.items():
        if old in plain:
            raise WireError(
                "missing_required_parameter",
                f"Missing required parameter: '{_ROOT}.type'. '{old}' belongs to the beta protocol; "
                f"it is now '{_ROOT}.{new}'.",
                f"{_ROOT}.type",
            )


def _check(part: _SessionPart, heeds: bool) -> None:
    """Checks what the types of the parts do not say."""
    if part.output_modalities is not UNSET:
        limits.check_modalities(part.output_modalities, f"{_ROOT}.output_modalities")
    if part.max_output_tokens is not UNSET:
        limits.check_output_tokens(part.max_output_tokens, f"{_ROOT}.max_output_tokens")
    if heeds and part.prompt not in (UNSET, None):
        raise limits.no_prompts(f"{_ROOT}.prompt")
    if part.tools is not UNSET:
        limits.check_count_of_tools(part.tools, f"{_ROOT}.tools")
        if heeds:
            limits.check_tools(part.tools, f"{_ROOT}.tools")
    if isinstance(part.audio.input.transcription, Transcription):
        _check_hints(part.audio.input.transcription, f"{_ROOT}.audio.input.transcription")
    if part.audio.input.format is not UNSET:
        limits.check_format(part.audio.input.format, f"{_ROOT}.audio.input.format")
    if part.audio.output.format is not UNSET:
        limits.check_format(part.audio.output.format, f"{_ROOT}.audio.output.format")
    if isinstance(part.audio.input.turn_detection, ServerVad):
        _check_vad(part.audio.input.turn_detection, f"{_ROOT}.audio.input.turn_detection")
    if part.chorale is not UNSET and part.chorale.events is not UNSET:
        for index, name in enumerate(part.chorale.events):
            if name not in EXTENSION_EVENTS:
                known = ", ".join(f"'{event}'" for event in EXTENSION_EVENTS)
                raise faults.bad_value(f"{_ROOT}.chorale.events[{index}]", f"supported values are: {known}.")


def _check_hints(transcription: Transcription, path: str) -> None:
    characters = 0 if transcription.prompt is UNSET else len(transcription.prompt)
    if transcription.keywords is not UNSET:
        characters += sum(map(len, transcription.keywords))
    if characters > limits.MAX_HINT_CHARACTERS:
        at_most = f"prompt and keywords have at most {limits.MAX_HINT_CHARACTERS} characters together."
        raise faults.bad_value(path, at_most)


def _check_vad(vad: ServerVad, path: str) -> None:
    _check_range(vad.threshold, 0, 1, f"{path}.threshold")
    _check_range(vad.prefix_padding_ms, 0, _MAX_PADDING_MS, f"{path}.prefix_padding_ms")
    _check_range(vad.silence_duration_ms, 0, _MAX_SILENCE_MS, f"{path}.silence_duration_ms")
    if vad.idle_timeout_ms is not None:
        _check_range(vad.idle_timeout_ms, 5_000, 30_000, f"{path}.idle_timeout_ms")


def _check_range(value: float, lowest: float, highest: float, path: str) -> None:
    if not lowest <= value <= highest:
        raise faults.bad_value(path, f"expected a value from {lowest} to {highest}.")


def _apply(session: Session, part: _SessionPart) -> Session:
    """Merges a valid part: objects field by field, the listed ones as wholes."""
    kind = _or(part.type, session.type)
    return structs.replace(
        session,
        type=kind,
        object="realtime.session" if kind == "realtime" else "realtime.transcription_session",
        output_modalities=_or(part.output_modalities, session.output_modalities),
        instructions=_or(part.instructions, session.instructions),
        tools=_or(part.tools, session.tools),
        tool_choice=_or(part.tool_choice, session.tool_choice),
        max_output_tokens=_or(part.max_output_tokens, session.max_output_tokens),
        tracing=_raw_or(part.tracing, session.tracing),
        truncation=_truncation(part.truncation, session.truncation),
        prompt=_raw_or(part.prompt, session.prompt),
        include=_or(part.include, session.include),
        parallel_tool_calls=_or(part.parallel_tool_calls, session.parallel_tool_calls),
        reasoning=session.reasoning if part.reasoning is UNSET else Raw(_encoder.encode(part.reasoning)),
        audio=_audio(session.audio, part.audio),
        chorale=_extension(session.chorale, part.chorale),
    )


def _audio(audio: Audio, part: _AudioPart) -> Audio:
    came, goes = part.input, part.output
    return Audio(
        input=AudioInput(
            format=_or(came.format, audio.input.format),
            transcription=_or(came.transcription, audio.input.transcription),
            noise_reduction=_or(came.noise_reduction, audio.input.noise_reduction),
            turn_detection=_or(came.turn_detection, audio.input.turn_detection),
        ),
        output=AudioOutput(
            format=_or(goes.format, audio.output.format),
            voice=_or(goes.voice, audio.output.voice),
            speed=_or(goes.speed, audio.output.speed),
        ),
    )


def _extension(now: Extension | UnsetType, part: _ExtensionPart | UnsetType) -> Extension | UnsetType:
    if part is UNSET:
        return now
    base = Extension() if now is UNSET else now
    return structs.replace(
        base,
        typed_turns=_or(part.typed_turns, base.typed_turns),
        ask=_or(part.ask, base.ask),
        events=_or(part.events, base.events),
        record=_or(part.record, base.record),
    )


def _truncation(part: str | _Retention | UnsetType, now: Raw | str) -> Raw | str:
    if part is UNSET:
        return now
    return Raw(_encoder.encode(part)) if isinstance(part, _Retention) else part


def _raw_or(part: object, now: Raw | None) -> Raw | None:
    if part is UNSET:
        return now
    return None if part is None else Raw(_encoder.encode(part))


def _or(part: T | UnsetType, now: T) -> T:
    return now if part is UNSET else part
