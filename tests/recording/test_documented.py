"""The scenarios of the README and docs/replay.md are as good as they say: a newcomer who copies them sees them pass."""

import wave
from pathlib import Path

import numpy as np
import pytest

from orchestrator.recording.scenario import parse
from orchestrator.settings.studio import Studio

ROOT = Path(__file__).parents[2]


def documented() -> list[str]:
    """Returns the scenarios of the pages."""
    pages = [(ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "docs/replay.md")]
    blocks = [block for page in pages for block in page.split("```yaml\n")[1:]]
    return [block for block in (one.partition("```")[0] for one in blocks) if "expect:" in block]


@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_scenario_of_the_documentation_passes(number: int, tmp_path: Path) -> None:
    """As it stands there, with a sound of the name that it has."""
    assert len(documented()) == 3
    say(tmp_path / "order.wav", 0.0)
    scenario = parse(documented()[number], "documented.session.yaml")
    rehearsed = Studio().rehearse(scenario, tmp_path / "documented.session.yaml")
    assert rehearsed.misses == ()


def test_a_script_hears_every_word_of_a_recording_with_silence_around(tmp_path: Path) -> None:
    """Words lie where the sound is: a recording need not be cut tightly."""
    say(tmp_path / "order.wav", 1.5)
    scenario = parse(documented()[0], "documented.session.yaml")
    rehearsed = Studio().rehearse(scenario, tmp_path / "documented.session.yaml")
    assert rehearsed.misses == ()


def say(path: Path, quiet_s: float) -> None:
    """Writes a tone of 1.6 s, with silence before and after it."""
    sound = 8_000 * np.sin(2 * np.pi * 220 * np.arange(25_600) / 16_000)
    quiet = np.zeros(int(quiet_s * 16_000))
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(16_000)
        file.writeframes(np.concatenate((quiet, sound, quiet)).astype("<i2").tobytes())
