"""The session object: the effective configuration, shown whole to clients (protocol reference §2)."""

from typing import Literal

from msgspec import UNSET, Raw, Struct, UnsetType

Modality = Literal["audio", "text"]


class AudioFormat(Struct, frozen=True, omit_defaults=True):
    """``audio/pcm`` (24 kHz int16), ``audio/pcmu`` or ``audio/pcma`` (8 kHz G.711)."""

    type: Literal["audio/pcm", "audio/pcmu", "audio/pcma"]
    rate: int | UnsetType = UNSET


PCM = AudioFormat(type="audio/pcm", rate=24_000)


class ServerVad(Struct, frozen=True, tag_field="type", tag="server_vad"):
    """A turn ends after `silence_duration_ms` of silence."""

    threshold: float = 0.5
    prefix_padding_ms: int = 300
    silence_duration_ms: int = 500
    create_response: bool = True
    interrupt_response: bool = True
    idle_timeout_ms: int | None = None


class SemanticVad(Struct, frozen=True, tag_field="type", tag="semantic_vad"):
    """A turn ends when the sentence sounds finished; `eagerness` sets how long to wait at most."""

    eagerness: Literal["low", "medium", "high", "auto"] = "auto"
    create_response: bool = True
    interrupt_response: bool = True


TurnDetection = ServerVad | SemanticVad


class Transcription(Struct, frozen=True):
    """How the user's speech is written down. Any model name is accepted; the server's recogniser does it."""

    model: str | UnsetType = UNSET
    language: str | UnsetType = UNSET
    prompt: str | UnsetType = UNSET
    languages: tuple[str, ...] | UnsetType = UNSET
    keywords: tuple[str, ...] | UnsetType = UNSET
    delay: str | UnsetType = UNSET


class NoiseReduction(Struct, frozen=True):
    """Accepted and echoed."""

    type: Literal["near_field", "far_field"] | UnsetType = UNSET
    strength: float | UnsetType = UNSET


class AudioInput(Struct, frozen=True):
    """How sound comes in."""

    format: AudioFormat = PCM
    transcription: Transcription | None = None
    noise_reduction: NoiseReduction | None = None
    turn_detection: TurnDetection | None = ServerVad()


class AudioOutput(Struct, frozen=True):
    """How sound goes out."""

    format: AudioFormat = PCM
    voice: str = "default"
    speed: float = 1.0


class Audio(Struct, frozen=True):
    """Both directions of sound."""

    input: AudioInput = AudioInput()
    output: AudioOutput = AudioOutput()


class ToolExtension(Struct, frozen=True, omit_defaults=True):
    """Chorale's own part of a tool. `reversible` names the function that undoes what this one did: it is called with
    the same arguments where the reply that called this one is rolled back."""

    reversible: str | UnsetType = UNSET


class FunctionTool(Struct, frozen=True, tag_field="type", tag="function", omit_defaults=True):
    """A function that the model may call; `parameters` is a JSON Schema, kept as the client wrote it."""

    name: str
    description: str = ""
    parameters: Raw | UnsetType = UNSET
    chorale: ToolExtension | UnsetType = UNSET


class NamedToolChoice(Struct, frozen=True, tag_field="type", tag="function"):
    """Call exactly this function."""

    name: str


ToolChoice = Literal["auto", "none", "required"] | NamedToolChoice


class Reasoning(Struct, frozen=True, omit_defaults=True):
    """Accepted and echoed."""

    effort: Literal["minimal", "low", "medium", "high", "xhigh"] | UnsetType = UNSET


EXTENSION_EVENTS = (
    "chorale.verdict",
    "chorale.frozen",
    "chorale.realigned",
    "chorale.rolled_back",
    "chorale.gap",
    "chorale.token",
    "chorale.overload",
)
"""Chorale's own event types; a session gets those it asks for."""


class Extension(Struct, frozen=True):
    """Chorale's own switches (design §11); shown only to clients that set them.

    `typed_turns`: a typed message interrupts and is answered like speech. `events`: names of Chorale's own event
    types that this session wants (``chorale.token`` …). `ask`: the user may be asked which of two contradicting
    things he meant. `secret` is the server's to give: with the session's id it lets a client come back. It is empty
    where there is one that is not told (`sessions.secrecy`). `record`: the client agrees to be recorded, or does not;
    left out, the server's configuration decides.
    """

    typed_turns: bool = False
    ask: bool | UnsetType = UNSET
    events: tuple[str, ...] = ()
    secret: str | UnsetType = UNSET
    record: bool | UnsetType = UNSET


LOGPROBS = "item.input_audio_transcription.logprobs"
"""What a session may `include`."""


class Session(Struct, frozen=True):
    """The effective session. Frozen: an update makes a new one (`wire.update.merge`)."""

    id: str
    model: str
    expires_at: int
    type: Literal["realtime", "transcription"] = "realtime"
    object: str = "realtime.session"
    output_modalities: tuple[Modality, ...] = ("audio",)
    instructions: str = ""
    tools: tuple[FunctionTool, ...] = ()
    tool_choice: ToolChoice = "auto"
    max_output_tokens: int | Literal["inf"] = "inf"
    tracing: Raw | None = None
    truncation: Raw | str = "auto"
    prompt: Raw | None = None
    include: tuple[str, ...] | None = None
    parallel_tool_calls: bool | UnsetType = UNSET
    reasoning: Raw | UnsetType = UNSET
    audio: Audio = Audio()
    chorale: Extension | UnsetType = UNSET


class TranscriptionAudio(Struct, frozen=True):
    """A transcription session has no sound that goes out."""

    input: AudioInput


class TranscriptionView(Struct, frozen=True):
    """What clients see of a transcription session."""

    id: str
    object: str
    type: str
    model: str
    expires_at: int
    include: tuple[str, ...] | None
    audio: TranscriptionAudio
    chorale: Extension | UnsetType = UNSET


def as_shown(session: Session) -> Session | TranscriptionView:
    """Returns the session as clients see it."""
    if session.type == "realtime":
        return session
    return TranscriptionView(
        session.id,
        session.object,
        session.type,
        session.model,
        session.expires_at,
        session.include,
        TranscriptionAudio(session.audio.input),
        session.chorale,
    )
