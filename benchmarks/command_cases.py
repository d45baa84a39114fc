"""The commands that `chorale bench commands` plays: drawn ones said by our own voice, and recordings of people."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
import numpy as np

from benchmarks.command_lines import Half, Line, Value, Way, lines
from benchmarks.command_sound import Air, Studio, airs
from benchmarks.command_talk import Speak, comparable, meant
from benchmarks.command_work import Models
from benchmarks.outcome import ROOT
from modalities.ports import SPEECH_RATE_HZ, Pcm
from orchestrator.clients.recording import read_recording
from orchestrator.scheduling.work import Understand, Understood

COFFEE = "coffee"
_SLOTS = {"coffeeDrink": "drink", "size": "size", "roast": "roast", "numberOfShots": "shots"}
"""Slots of the recordings that are looked at. Amounts of milk and sugar are free words."""

_RECORDED: tuple[tuple[Way, int | None, str], ...] = (
    ("spoken", 10, "babble"), ("spoken", 5, "real"), ("form_slip", 10, "real"),
)  # fmt: skip
"""Each recording is played so: how else it comes in, and in which noise."""


@dataclass(frozen=True, slots=True)
class Case:
    """A command and how it sounds."""

    line: Line
    air: Air
    speak: Speak
    group: str
    """What shares this name shares a voice's sentence or a recording: drawn together when intervals are made."""

    @property
    def domain(self) -> str:
        return Path(self.line.domain).stem


def drawn(count: int, seed: int, half: Half, studio: Studio) -> Iterator[Case]:
    """Yields the commands of one half that our own voice says."""
    for number, line in enumerate(lines(count, seed, half)):
        air = airs(half, seed, number, studio.speech is not None)
        yield Case(replace(line, domain=_domain(line.domain)), air, _voice(studio, half, air), line.id)


def recorded(studio: Studio, limit: int | None = None) -> Iterator[Case]:
    """Yields recorded commands whose slots are known, as they are and in noise; none without a folder of speech."""
    if studio.speech is None:
        return
    rows = map(msgspec.json.decode, (studio.speech / "manifest.jsonl").read_bytes().splitlines())
    chosen = [row for row in rows if row.get("slots") and row.get("transcript")]
    for number, row in enumerate(chosen[:limit]):
        values = {_SLOTS[name]: Value(words, words) for name, words in row["slots"].items() if name in _SLOTS}
        slot = sorted(values)[number % len(values)]
        wrong = Value(*2 * (_OTHER[slot][values[slot].spoken == _OTHER[slot][0]],))
        for way, snr, noise in _RECORDED:
            line = Line(
                f"{row['file']}/{way}/{snr}", "held", _domain(COFFEE), way, row["transcript"], row["transcript"],
                values, (slot, wrong),
            )  # fmt: skip
            air = Air(0, "near", snr, noise)
            yield Case(line, air, _recording(studio, studio.speech / row["file"], air), row["file"])


def understood_rightly(line: Line, models: Models) -> bool:
    """Whether the server finds the slots of a command in its true words, as said and as typed: where it does not, no
    recogniser can help."""
    return all(
        {one.name: comparable(one.value) for one in found.slots} == meant(line)
        for text in dict.fromkeys((line.said, line.typed))
        if isinstance(found := models.do(Understand(text), line.domain).report, Understood)
    )


_OTHER = {
    "drink": ("latte", "mocha"), "size": ("sixteen ounce", "small"), "roast": ("dark roast", "light roast"),
    "shots": ("double shot", "triple shot"),
}  # fmt: skip


def _voice(studio: Studio, half: Half, air: Air) -> Speak:
    return lambda text, seed: studio.record(half, text, air, seed)


def _recording(studio: Studio, path: Path, air: Air) -> Speak:
    """Whatever he is asked, the speaker says his command again: there is no other recording of him."""

    def speak(text: str, seed: int) -> Pcm:
        pcm = read_recording(path, SPEECH_RATE_HZ)
        return studio.mix("held", pcm.astype(np.float64) / 32_768, air, seed)

    return speak


def _domain(name: str) -> str:
    folder = ROOT / "benchmarks" / "domains" if name == COFFEE else ROOT / "configs" / "domains"
    return name if name == "default" else str(folder / f"{name}.yaml")
