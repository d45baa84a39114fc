"""Stand-ins for every port: they answer by a script, without a model, and the same every time.

They are for tests of the server's logic and for trying a configuration, and known to it as ``scripted``. What they
make is no speech and no language. Their options are plain JSON values, since they run in worker processes.
"""

import hashlib
import json
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from modalities.adapters.grammar import shortest
from modalities.adapters.schema_grammar import object_language
from modalities.adapters.tool_form import parameters_of
from modalities.ports import (
    SPEECH_RATE_HZ,
    ChatMessage,
    Claim,
    Clip,
    Completion,
    Fit,
    Fits,
    Pcm,
    Prompt,
    Recognition,
    ReplyDelta,
    Slot,
    TextDelta,
    Tool,
    ToolCall,
    ToolCallDelta,
    Understanding,
    Word,
)

_SILENCE_PEAK = 100


@dataclass(frozen=True, slots=True)
class RecognizerScript:
    """`tones` maps a pitch in Hz to the text that a clip of about this pitch says; `texts` are said in turn by clips
    that no tone explains, from the first again after the last. `words_per_s` is how fast drafts show words.
    """

    tones: Mapping[str, str] = field(default_factory=dict)
    texts: Sequence[str] = ("hello",)
    words_per_s: float = 2.5
    pause_ms: float = 0.0


class ScriptedRecognizer:
    """Stand-in for a speech recogniser. Silence has no text; a tone always has the same; others take their turn."""

    def __init__(self, script: RecognizerScript | None = None) -> None:
        self._script = script or RecognizerScript()
        self._tones = {float(pitch): text for pitch, text in self._script.tones.items()}
        self._turn = 0
        self._lock = threading.Lock()

    def recognize(self, clips: Sequence[Clip]) -> list[Recognition]:
        time.sleep(self._script.pause_ms / 1000)
        return [self._recognition(clip) for clip in clips]

    def score(self, claims: Sequence[Claim]) -> list[Fits | None]:
        """A word that the clip says has log probability -0.1, any other one, or one that is missing, -8."""
        time.sleep(self._script.pause_ms / 1000)
        return [self._fits(claim) for claim in claims]

    def _fits(self, claim: Claim) -> Fits | None:
        if _is_silent(claim.clip.pcm):
            return None
        said = self._tone(claim.clip.pcm)
        said = claim.recognised if said is None else said
        return Fits(
            _scripted_fit(claim.recognised, said), tuple(_scripted_fit(text, said) for text in claim.texts)
        )

    def _recognition(self, clip: Clip) -> Recognition:
        if _is_silent(clip.pcm):
            return Recognition("", no_speech_probability=0.95, rung=clip.rung)
        said = self._text(clip).split()
        duration_s = clip.pcm.size / SPEECH_RATE_HZ
        if clip.draft:
            said = said[: int(duration_s * self._script.words_per_s)]
        step_s = duration_s / max(len(said), 1)
        words = tuple(Word(word, n * step_s, (n + 1) * step_s, 0.95) for n, word in enumerate(said))
        return Recognition(" ".join(said), words, average_logprob=-0.1, compression_ratio=1.0, rung=clip.rung)

    def _tone(self, pcm: Pcm) -> str | None:
        pitch_hz = _pitch_hz(pcm)
        near = (text for tone_hz, text in self._tones.items() if abs(pitch_hz - tone_hz) <= 0.03 * tone_hz)
        return next(near, None)

    def _text(self, clip: Clip) -> str:
        found = self._tone(clip.pcm)
        if found is not None:
            return found
        with self._lock:
            turn = self._turn
            self._turn += not clip.draft  # drafts show what the final pass will say
        texts = self._script.texts
        return texts[turn % len(texts)] if texts else ""


def _is_silent(pcm: Pcm) -> bool:
    return not pcm.size or int(np.abs(pcm.astype(np.int32)).max()) < _SILENCE_PEAK


def _scripted_fit(text: str, said: str) -> Fit:
    words, wanted = (re.findall(r"\w+", one.lower()) for one in (text, said))
    scores = [-0.1 if word in wanted else -8.0 for word in words] + [-8.0] * len(set(wanted) - set(words))
    total = round(sum(scores), 4)
    return Fit(text, total, round(total / max(1, len(scores)), 4), min(scores, default=0.0))


def _pitch_hz(pcm: Pcm) -> float:
    spectrum = np.abs(np.fft.rfft(pcm.astype(np.float64) * np.hanning(pcm.size)))
    return float(np.argmax(spectrum)) * SPEECH_RATE_HZ / pcm.size


@dataclass(frozen=True, slots=True)
class ReplyScript:
    """`replies` maps words to a reply: the first entry whose words all stand in the last user message is taken, else
    `default`, in which ``{words}`` stands for that message. `tool_calls` maps words to ``{"name", "arguments"}``
    in the same way: called where that tool is offered. `pause_ms` passes before every token.
    """

    replies: Mapping[str, str] = field(default_factory=dict)
    default: str = "You said: {words}"
    tool_calls: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    pause_ms: float = 0.0


class ScriptedLanguageModel:
    """Stand-in for a language model: a token is a word, a tool's result is read out."""

    def __init__(self, script: ReplyScript | None = None) -> None:
        self._script = script or ReplyScript()

    def generate(self, prompt: Prompt, emit: Callable[[ReplyDelta], bool]) -> Completion:
        input_tokens = sum(len(message.content.split()) for message in prompt.messages)
        call = self._call(prompt)
        if call:
            deltas = _call_deltas(call)
        else:
            deltas = [TextDelta(token) for token in re.findall(r"\s*\S+", self._reply(prompt.messages))]
        limit = len(deltas) if prompt.max_tokens is None or call else prompt.max_tokens
        for sent, delta in enumerate(deltas[:limit]):
            time.sleep(self._script.pause_ms / 1000)
            if not emit(delta):
                return Completion("cancelled", input_tokens, 0, sent)
        if call:
            return Completion("tool_calls", input_tokens, 0, len(deltas), (call,))
        return Completion("length" if limit < len(deltas) else "stop", input_tokens, 0, limit)

    def _reply(self, messages: Sequence[ChatMessage]) -> str:
        if messages and messages[-1].role == "tool":
            return f"The result is {messages[-1].content}"
        words = _last_user_words(messages)
        if seen := sum(len(message.images) for message in messages):
            words = f"{words} [{seen} images]".strip()
        found = next((reply for key, reply in self._script.replies.items() if _stand_in(key, words)), None)
        return self._script.default.replace("{words}", words) if found is None else found

    def _call(self, prompt: Prompt) -> ToolCall | None:
        if prompt.tool_choice == "none" or not prompt.tools:
            return None
        if prompt.messages and prompt.messages[-1].role == "tool" and prompt.tool_choice == "auto":
            return None
        offered = {tool.name for tool in prompt.tools}
        if prompt.tool_choice.startswith("="):
            offered &= {prompt.tool_choice[1:]}
        words = _last_user_words(prompt.messages)
        for key, call in self._script.tool_calls.items():
            if call.get("name") in offered and _stand_in(key, words):
                return _tool_call(prompt, str(call["name"]), json.dumps(call.get("arguments", {})))
        if prompt.tool_choice == "auto":
            return None
        fitting = [tool for tool in prompt.tools if tool.name in offered]
        return _tool_call(prompt, fitting[0].name, _least_arguments(fitting[0])) if fitting else None


def _last_user_words(messages: Sequence[ChatMessage]) -> str:
    return next((message.content for message in reversed(messages) if message.role == "user"), "")


def _stand_in(words: str, text: str) -> bool:
    return set(re.findall(r"\w+", words.lower())) <= set(re.findall(r"\w+", text.lower()))


def _tool_call(prompt: Prompt, name: str, arguments: str) -> ToolCall:
    told = repr(prompt.messages) + name
    return ToolCall("call_" + hashlib.blake2b(told.encode(), digest_size=8).hexdigest(), name, arguments)


def _least_arguments(tool: Tool) -> str:
    return shortest(object_language(parameters_of(tool))) or "{}"


def _call_deltas(call: ToolCall) -> list[ReplyDelta]:
    pieces = re.findall(r".{1,8}", call.arguments)
    first = ToolCallDelta(0, "", call.name, call.call_id)
    return [first, *(ToolCallDelta(0, piece) for piece in pieces)]


@dataclass(frozen=True, slots=True)
class VoiceScript:
    """A tone of `pitch_hz` that lasts `ms_per_character` for each character, in chunks of `chunk_ms`."""

    pitch_hz: float = 440.0
    ms_per_character: float = 60.0
    chunk_ms: int = 100
    pause_ms: float = 0.0


class ScriptedSynthesizer:
    """Stand-in for a voice: a tone at 24 kHz, as long as the text."""

    sample_rate_hz = 24_000

    def __init__(self, script: VoiceScript | None = None) -> None:
        self._script = script or VoiceScript()

    def synthesize(self, text: str, speed: float = 1.0) -> Iterator[Pcm]:
        script = self._script
        length = int(len(text.strip()) * script.ms_per_character / 1000 * self.sample_rate_hz / speed)
        step = self.sample_rate_hz * script.chunk_ms // 1000
        for start in range(0, length, step):
            time.sleep(script.pause_ms / 1000)
            t = np.arange(start, min(start + step, length)) / self.sample_rate_hz
            yield (6000 * np.sin(2 * np.pi * script.pitch_hz * t)).astype(np.int16)


@dataclass(frozen=True, slots=True)
class EmbedderScript:
    """Only the length of a vector."""

    dimensions: int = 384


class ScriptedEmbedder:
    """Stand-in for a sentence embedder: the mean of one random vector per word, which its hash decides.

    Texts with the same words are equal, texts without a common word about orthogonal; nothing is known of meaning.
    """

    def __init__(self, script: EmbedderScript | None = None) -> None:
        self._dimensions = (script or EmbedderScript()).dimensions

    @property
    def dimensions(self) -> int:
        return self._dimensions

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        rows = np.zeros((len(texts), self._dimensions))
        for row, text in zip(rows, texts, strict=True):
            for word in re.findall(r"\w+", text.lower()) or [""]:
                seed = hashlib.blake2b(word.encode(), digest_size=8).digest()
                row += np.random.default_rng(int.from_bytes(seed)).standard_normal(self._dimensions)
            row /= np.linalg.norm(row)
        return rows.astype(np.float32)


@dataclass(frozen=True, slots=True)
class UnderstanderScript:
    """`intents` maps an intent to its words: the first intent with one of them in the text is meant. `slots` maps a
    slot's name to the words that fill it."""

    intents: Mapping[str, Sequence[str]] = field(default_factory=dict)
    slots: Mapping[str, Sequence[str]] = field(default_factory=dict)
    dimensions: int = 384


class ScriptedUnderstander:
    """Stand-in for understanding: single words decide."""

    def __init__(self, script: UnderstanderScript | None = None) -> None:
        self._script = script or UnderstanderScript()
        self._embedder = ScriptedEmbedder(EmbedderScript(self._script.dimensions))

    @property
    def embedder(self) -> ScriptedEmbedder:
        return self._embedder

    def understand(self, texts: Sequence[str]) -> list[Understanding]:
        vectors = self._embedder.embed(texts)
        return [self._understanding(text, vector) for text, vector in zip(texts, vectors, strict=True)]

    def _understanding(self, text: str, vector: NDArray[np.float32]) -> Understanding:
        found = [(match[0].lower(), match.start(), match.end()) for match in re.finditer(r"\w+", text)]
        words = {word for word, _, _ in found}
        intent = next((name for name, signs in self._script.intents.items() if words & set(signs)), None)
        slots = tuple(
            Slot(name, word, start, stop)
            for name, values in self._script.slots.items()
            for word, start, stop in found
            if word in values
        )
        return Understanding(vector, intent, 0.0 if intent is None else 1.0, slots)


@dataclass(frozen=True, slots=True)
class DetectorScript:
    """Sound louder than `threshold_dbfs` (RMS of a window against full scale) is speech."""

    threshold_dbfs: float = -40.0
    window: int = 512


class ScriptedDetector:
    """Stand-in for a voice activity detector: loudness decides, 0.5 at the threshold. Its state is of no effect."""

    def __init__(self, script: DetectorScript | None = None) -> None:
        self._script = script or DetectorScript()

    @property
    def window(self) -> int:
        return self._script.window

    def new_state(self) -> NDArray[np.float32]:
        return np.zeros(1, np.float32)

    def detect(
        self, windows: NDArray[np.float32], states: NDArray[np.float32]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        power = np.mean(np.square(windows, dtype=np.float64), axis=1)
        above_db = 10 * np.log10(power + 1e-12) - self._script.threshold_dbfs
        return (1 / (1 + np.exp(-above_db))).astype(np.float32), states
