"""The scenarios of docs/replay.md are as good as it says: a newcomer who copies them sees them pass."""

import wave
from pathlib import Path

import numpy as np
import pytest

from orchestrator.recording.scenario import parse
from orchestrator.settings.studio import Studio

PAGE = Path(__file__).parents[2] / "docs" / "replay.md"


def documented() -> list[str]:
    """Returns the page's scenarios."""
    blocks = PAGE.read_text(encoding="utf-8").split("```yaml\n")[1:]
    return [block for block in (one.partition("```")[0] for one in blocks) if "expect:" in block]


@pytest.mark.parametrize("number", [0, 1])
def test_a_scenario_of_the_documentation_passes(number: int, tmp_path: Path) -> None:
    """As it stands there, with a sound of the name that it has."""
    assert len(documented()) == 2
    sound = 8_000 * np.sin(2 * np.pi * 220 * np.arange(25_600) / 16_000)
    with wave.open(str(tmp_path / "order.wav"), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(16_000)
        file.writeframes(sound.astype("<i2").tobytes())
    scenario = parse(documented()[number], "documented.session.yaml")
    rehearsed = Studio().rehearse(scenario, tmp_path / "documented.session.yaml")
    assert rehearsed.misses == ()
