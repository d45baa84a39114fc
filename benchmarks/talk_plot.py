"""The picture of `talk`: answer time, prompt and memory along the turns; whoever has Matplotlib may draw it."""

from collections.abc import Sequence
from pathlib import Path

from benchmarks.talk_turn import Turn


def draw(turns: Sequence[Turn], path: Path) -> None:
    """Writes a PNG. Raises `ModuleNotFoundError` without matplotlib."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 8), layout="constrained")
    times, tokens, memory = figure.subplots(3, 1, sharex=True)
    numbers = [turn.number for turn in turns]
    times.plot(numbers, [turn.answer.first_text_ms for turn in turns], label="first text")
    times.plot(numbers, [turn.answer.first_sound_ms for turn in turns], label="first sound")
    times.set_ylabel("ms from the question's end")
    tokens.plot(numbers, [turn.answer.input_tokens for turn in turns], label="prompt")
    tokens.plot(numbers, [turn.answer.new_tokens for turn in turns], label="computed anew")
    tokens.set_ylabel("tokens")
    for name in turns[0].memory_mib:
        memory.plot(numbers, [turn.memory_mib.get(name, 0.0) for turn in turns], label=name)
    memory.set_ylabel("MiB resident")
    memory.set_xlabel("turn")
    for axes in (times, tokens, memory):
        axes.set_ylim(bottom=0)
        axes.legend(loc="upper left", fontsize=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
