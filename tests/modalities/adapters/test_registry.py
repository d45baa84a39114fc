"""From names in a configuration to adapters."""

import subprocess
import sys
from typing import get_args

import numpy as np
import pytest

from modalities.adapters.registry import ADAPTERS, Role, build, names
from modalities.errors import UnknownAdapter


@pytest.mark.parametrize("role", get_args(Role))
def test_registry_builds_the_stand_in_of_every_role(role: Role) -> None:
    """Every role can run without a model."""
    assert build(role, "scripted", {}) is not None


@pytest.mark.parametrize("place", sorted(ADAPTERS.values()))
def test_registry_lines_lead_somewhere(place: str) -> None:
    """Each line names a module, an adapter and the settings it takes; a vendor is imported by none of them."""
    module, adapter, settings = place.split(":")
    code = (
        f"import sys; from modalities.adapters import {module} as m; m.{adapter}; m.{settings}();"
        "vendors = {'torch', 'faster_whisper', 'ctranslate2', 'onnxruntime', 'piper', 'xllamacpp', 'openai'};"
        "sys.exit(str(vendors & set(sys.modules)) if vendors & set(sys.modules) else 0)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr


def test_registry_lists_what_it_knows_where_a_name_is_wrong() -> None:
    """The error of an unknown engine names those there are."""
    with pytest.raises(UnknownAdapter, match="piper, scripted"):
        build("speech", "pieper", {})
    assert names("vad") == ["silero", "scripted"]


def test_registry_names_a_wrong_option() -> None:
    """The error of an unknown option names the option and those there are."""
    with pytest.raises(UnknownAdapter, match=r"no option 'thread'.*threads"):
        build("vad", "silero", {"thread": 1})


@pytest.mark.real
def test_registry_embedders_agree_on_the_real_model() -> None:
    """The int8 network and the original give the same vectors to within 1 %."""
    texts = ["turn on the light", "what is the weather in Paris tomorrow?", "No, fifteen.", ""]
    small, original = (
        build("embed", name, {}).embed(texts) for name in ("minilm_onnx", "sentence_transformer")
    )
    assert small.shape == original.shape == (4, 384)
    assert ((small * original).sum(axis=1)[:3] > 0.99).all()


@pytest.mark.real
def test_registry_voice_repeats_itself_where_it_is_not_to_vary() -> None:
    """Without variation a sentence sounds the same each time; the voice's own way differs from time to time."""
    for variation, same in ((0.0, True), (1.0, False)):
        voice = build("speech", "piper", {"variation": variation})
        first, second = (np.concatenate(list(voice.synthesize("Hello there."))) for _ in range(2))
        assert np.array_equal(first, second) == same


@pytest.mark.real
def test_registry_voice_speaks_faster_when_asked() -> None:
    """Piper says a sentence; at speed 1.5 it takes about two thirds of the time."""
    voice = build("speech", "piper", {})
    plain, fast = (
        sum(len(piece) for piece in voice.synthesize("The capital of France is Paris.", speed))
        for speed in (1.0, 1.5)
    )
    assert plain > voice.sample_rate_hz
    assert 0.55 < fast / plain < 0.8
