"""Where the recogniser's tables come from: encoder lengths, and how much silence must stand behind a clip.

Every row decodes all clips greedily, once, from an encoder that reads the clip and `behind` frames of silence, rounded
up to a multiple of `step` and to `least` frames; behind what it makes of that come the encoder's own output for
silence, up to 1500 positions, of which one in `thinned` is kept (0: none at all). The full 30 s encoder stands first.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray

from benchmarks.asr_clips import Spoken, spoken_clips
from benchmarks.outcome import Figure, Outcome, screen, table, this_machine
from modalities.adapters.faster_whisper import FasterWhisper, WhisperSettings
from modalities.adapters.whisper_engine import FULL, Encoded, WhisperEngine, token_limit
from modalities.adapters.whisper_judgement import SHORT, believable, loops
from modalities.ports import SPEECH_RATE_HZ, Pcm
from modalities.text.normalize import normalize, word_errors

LONGEST_S = 12.0
_HOP = SPEECH_RATE_HZ // 100
_TOGETHER = 8


@dataclass(frozen=True, slots=True)
class Rule:
    """How long an encoder input is made, in frames of 10 ms, and what stands behind its output."""

    least: int = 300
    step: int = 50
    behind: int = 50
    thinned: int = 1

    def frames(self, samples: int) -> int:
        """Returns the encoder length of a clip."""
        needed = max(self.least, -(-samples // _HOP) + self.behind)
        return min(FULL, -(-needed // self.step) * self.step)


FULL_WINDOW = Rule(least=FULL)
RULES = (
    FULL_WINDOW,
    Rule(thinned=0),
    Rule(least=1000, thinned=0),
    Rule(),
    Rule(behind=0),
    Rule(behind=20),
    Rule(least=200),
    Rule(least=250),
    Rule(least=400),
    Rule(thinned=2),
    Rule(thinned=4),
)


def command(
    data: Annotated[
        Path | None, typer.Option(envvar="CHORALE_SPEECH_DATA", help="Folder of recordings.")
    ] = None,
    limit: Annotated[int | None, typer.Option(help="At most so many clips.")] = None,
    threads: Annotated[int, typer.Option(help="Threads of the recogniser.")] = 1,
    json_file: Annotated[Path | None, typer.Option("--json", help="Where the figures go.")] = None,
) -> None:
    """The sweep over encoder lengths behind the recogniser's tables.

    Example: chorale bench asr-sweep --limit 60
    """
    console, machine = screen(), this_machine()
    console.print(f"[dim]{machine}[/]")
    clips = [clip for clip in spoken_clips(data, limit) if len(clip.pcm) <= LONGEST_S * SPEECH_RATE_HZ]
    engine = FasterWhisper(WhisperSettings(threads=threads)).engine
    rows = []
    for rule in RULES:
        rows.append(measure(engine, clips, rule))
        console.print(f"[dim]{len(rows)} of {len(RULES)}[/]")
    console.print(table(f"{len(clips)} clips, decoded once", rows))
    outcome = Outcome("asr-sweep", {"limit": limit, "threads": threads, "clips": len(clips)})
    outcome.tables["rules"] = rows
    console.print(f"written to {outcome.write(json_file, machine)}")


def measure(engine: WhisperEngine, clips: Sequence[Spoken], rule: Rule) -> dict[str, Figure]:
    """Decodes all clips by a rule. `doubted` would be decoded again; `cpu ms` is processor time per clip."""
    looping = doubted = errors = words = 0
    begin = time.process_time()
    by_length: dict[int, list[Spoken]] = {}
    for clip in clips:
        by_length.setdefault(rule.frames(len(clip.pcm)), []).append(clip)
    for frames, every in by_length.items():
        for at in range(0, len(every), _TOGETHER):
            together = every[at : at + _TOGETHER]
            encoded = _encode(engine, [clip.pcm for clip in together], frames, rule.thinned)
            for clip, found in zip(together, engine.decode(encoded, "en", None, 1, SHORT), strict=True):
                looping += loops(found)
                doubted += not believable(found)
                wanted = normalize(clip.transcript or "")
                words += len(wanted)
                errors += word_errors(wanted, normalize(found.text))
    return {
        "least": rule.least,
        "step": rule.step,
        "behind": rule.behind,
        "silence kept": "none" if not rule.thinned else f"1/{rule.thinned}",
        "loops": looping,
        "doubted": doubted,
        "word errors %": round(100 * errors / max(1, words), 2),
        "cpu ms": round(1000 * (time.process_time() - begin) / max(1, len(clips)), 1),
    }


def _encode(engine: WhisperEngine, clips: Sequence[Pcm], frames: int, thinned: int) -> Encoded:
    import ctranslate2

    own: NDArray[np.float32] = np.array(engine.hear(clips, frames))
    silence = engine.silence
    assert silence is not None, "the sweep needs the encoder of a processor"
    tail = silence[:, own.shape[1] :: thinned] if thinned else silence[:, :0]
    behind = np.broadcast_to(tail, (len(clips), *tail.shape[1:]))
    full = ctranslate2.StorageView.from_array(np.concatenate((own, behind), axis=1))
    limit = max(token_limit(len(clip)) for clip in clips)
    return Encoded(tuple(clips), full, (), limit, shortened=True)
