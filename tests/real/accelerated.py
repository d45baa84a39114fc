"""Simulated accelerators whose words can be told apart: a reply names the question that it answers, what is heard names
the pitch of the sound. How long they take is `benchmarks.load`'s doing."""

from collections.abc import Callable, Mapping
from typing import Any

from benchmarks.load import accelerator
from benchmarks.load.accelerator import SimulatedEmbedder, SimulatedLanguageModel, SimulatedRecognizer
from modalities.adapters.scripted import RecognizerScript, ScriptedRecognizer
from modalities.ports import Completion, Prompt, ReplyDelta, TextDelta

ENGINE = "tests.real.accelerated:make"
PITCHES_HZ = (300, 400, 530, 700, 930, 1_230, 1_640, 2_180)
DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven")
"""What a tone of each pitch says."""


class NamingModel:
    """The tokens of a reply are ``NAME.1 NAME.2 …``: its name is the last word that was said."""

    def __init__(self, model: SimulatedLanguageModel) -> None:
        self._model = model

    def generate(self, prompt: Prompt, emit: Callable[[ReplyDelta], bool]) -> Completion:
        """As the simulated model, with words of its own."""
        said = next(message.content for message in reversed(prompt.messages) if message.role == "user")
        name, told = said.split()[-1], 0

        def tell(_: ReplyDelta) -> bool:
            nonlocal told
            told += 1
            return emit(TextDelta(f"{name}.{told} "))

        return self._model.generate(prompt, tell)


def words_of(name: str, tokens: int) -> str:
    """Returns the whole reply of so many tokens to a question of this name."""
    return "".join(f"{name}.{number} " for number in range(1, tokens + 1))


def make(options: Mapping[str, Any]) -> NamingModel | SimulatedRecognizer | SimulatedEmbedder:
    """Returns the engine of ``options["role"]``, as `benchmarks.load.accelerator.make`."""
    engine = accelerator.make(options)
    if isinstance(engine, SimulatedLanguageModel):
        return NamingModel(engine)
    if isinstance(engine, SimulatedRecognizer):
        tones = dict(zip(map(str, PITCHES_HZ), DIGITS, strict=True))
        engine._heard = ScriptedRecognizer(RecognizerScript(tones=tones))
    return engine


def roles(places: int, **language_model: float) -> dict[str, dict[str, Any]]:
    """Returns a configuration's workers: every question and answer is as long as the next, an answer as long as its
    client allows."""
    even = {"spread": 0.0, "jitter": 0.0, "context_tokens": 40, "output_tokens": 100_000}
    waits = {"prefill_ms": 1.0, "prefill_ms_per_token": 0.0, "step_ms": 10.0, "step_ms_per_reply": 0.1}
    return {
        "asr": _worker("asr", 16, {"batch_ms": 5.0, "jitter": 0.5}),
        "understand": _worker("embed", 32, {"batch_ms": 2.0}) | {"domain": None},
        "llm": _worker("llm", places, {**even, **waits, **language_model}),
    }


def _worker(role: str, parallel: int, options: Mapping[str, float]) -> dict[str, Any]:
    return {"engine": ENGINE, "parallel": parallel, "options": {"role": role, "seed": 1, **options}}
