"""Every adapter by role and name: one line each. Modules, and with them vendors, are imported when first asked for."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Literal

from modalities.adapters.options import settings_from
from modalities.errors import UnknownAdapter

Role = Literal["asr", "llm", "speech", "embed", "vad"]

ADAPTERS: dict[tuple[Role, str], str] = {
    ("asr", "faster_whisper"): "faster_whisper:FasterWhisper:WhisperSettings",
    ("asr", "scripted"): "scripted:ScriptedRecognizer:RecognizerScript",
    ("llm", "llama_cpp"): "llama_cpp:LlamaCpp:LlamaSettings",
    ("llm", "openai_compatible"): "openai_compatible:OpenAiCompatible:EndpointSettings",
    ("llm", "scripted"): "scripted:ScriptedLanguageModel:ReplyScript",
    ("speech", "piper"): "piper:Piper:PiperSettings",
    ("speech", "scripted"): "scripted:ScriptedSynthesizer:VoiceScript",
    ("embed", "minilm_onnx"): "minilm_onnx:MiniLmOnnx:MiniLmSettings",
    (
        "embed",
        "sentence_transformer",
    ): "sentence_transformer:SentenceTransformerEmbedder:SentenceTransformerSettings",
    ("embed", "scripted"): "scripted:ScriptedEmbedder:EmbedderScript",
    ("vad", "silero"): "silero:SileroDetector:SileroSettings",
    ("vad", "scripted"): "scripted:ScriptedDetector:DetectorScript",
}
"""(role, name in the configuration) -> module in this folder : adapter : the dataclass of its options."""


SEEING = frozenset({"openai_compatible", "scripted"})
"""Language models that may be given images. Whether the one behind an endpoint sees them is the operator's to know."""


def names(role: Role) -> list[str]:
    """Returns the names that a configuration may use for a role."""
    return [name for known, name in ADAPTERS if known == role]


def settings_of(role: Role, name: str) -> type[Any]:  # the dataclass depends on the adapter
    """Returns the dataclass of an adapter's options. Raises `UnknownAdapter`; loads no library."""
    module, _, settings = _place(role, name).split(":")
    found: type[Any] = getattr(import_module(f"modalities.adapters.{module}"), settings)
    return found


def build(role: Role, name: str, options: Mapping[str, object]) -> Any:  # the port depends on the role
    """Returns the adapter, loaded and ready. Raises `UnknownAdapter` for a name or option that does not exist and
    `AdapterUnavailable` where its library or model is missing."""
    module, adapter, settings = _place(role, name).split(":")
    found = import_module(f"modalities.adapters.{module}")
    return getattr(found, adapter)(settings_from(getattr(found, settings), name.replace("-", "_"), options))


def _place(role: Role, name: str) -> str:
    name = name.replace("-", "_")
    place = ADAPTERS.get((role, name))
    if place is None:
        raise UnknownAdapter(f"there is no engine '{name}' for {role}; known: {', '.join(names(role))}")
    return place
