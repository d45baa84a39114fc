"""`chorale bench turns`: when turns end, by silence alone and by words, voice and rhythm; no server, in audio time.

Every recording goes through the real voice detector, segmenter, patience and recogniser. What takes time is put in as
stated delays (`turns_play`), so that a run gives the same figures on every machine with the same models. An end before
the last speech of a recording is too early; in one whose speaker has not finished, any end within the recording is.
"""

import csv
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import track

from benchmarks.outcome import Claim, Outcome, screen, table, this_machine
from benchmarks.recordings import Recording, pick, read_manifest
from benchmarks.turns_judging import Verdict, beaten_on_both, beginnings, judge
from benchmarks.turns_play import DRAFT_TAKES_MS, EARLY_FINAL_TAKES_MS, Policy, play
from benchmarks.turns_plot import plot
from benchmarks.turns_sound import Take, takes
from modalities.audio.patience import Eagerness, SemanticPatience

TURNS = ("turn_midpause", "turn_incomplete", "spontaneous_hesitation")
ORDINARY = ("command",)
NOBODY = ("non_speech",)
SILENCES_MS = (200, 300, 500, 800)
SWEPT_MS = (200, 250, 300, 400, 500, 600, 700, 800, 1_000, 1_200, 1_500)
EAGERNESS: tuple[Eagerness, ...] = ("high", "medium", "low")
SCALES = (0.4, 0.5, 0.6, 0.7, 0.85, 1.0, 1.2, 1.5, 2.0, 2.5)


def command(
    data: Annotated[
        Path | None, typer.Option(envvar="CHORALE_SPEECH_DATA", help="Folder of recordings.")
    ] = None,
    limit: Annotated[int | None, typer.Option(help="At most so many recordings.")] = None,
    plot_file: Annotated[
        Path | None, typer.Option("--plot", help="Draw the trade-off (PNG; needs matplotlib).")
    ] = None,
    csv_file: Annotated[Path | None, typer.Option("--csv", help="Write the points of the curves.")] = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="Where the figures go.")] = None,
) -> None:
    """When turns end: cut-ins against delay, for silence alone and for semantic turn detection.

    Examples: `chorale bench turns --plot turns.png`, `chorale bench turns --limit 12`.
    """
    console, machine = screen(), this_machine()
    if data is None:
        console.print("Where is the recorded speech? Give --data or set CHORALE_SPEECH_DATA.")
        raise typer.Exit(2)
    try:
        recordings = pick(read_manifest(data), (*TURNS, *ORDINARY, *NOBODY), limit)
    except OSError as error:
        console.print(f"No recorded speech in {data}: {error.strerror} (manifest.jsonl).", highlight=False)
        raise typer.Exit(2) from None
    console.print(f"[dim]{machine}[/]")
    outcome = Outcome(
        "turns", {"limit": limit, "draft_ms": DRAFT_TAKES_MS, "early_final_ms": EARLY_FINAL_TAKES_MS}
    )
    loaded = list(track(_takes(recordings), "voice detector", len(recordings), console=console))
    curves = measure(loaded, outcome, console)
    outcome.show(console)
    marked = [verdict for verdicts in curves.values() for verdict in verdicts if verdict.name in _NAMED]
    if csv_file is not None:
        write_curves(curves, csv_file)
    if plot_file is not None:
        plot(curves, marked, plot_file)
    console.print(f"written to {os.path.relpath(outcome.write(json_file, machine))}")
    raise typer.Exit(0 if outcome.holds else 1)


def measure(loaded: Sequence[Take], outcome: Outcome, console: Console) -> dict[str, list[Verdict]]:
    """Judges every policy on every group of recordings; returns the curves over the turns."""
    named = [_silent(ms) for ms in SILENCES_MS] + [
        Policy(f"semantic {eagerness}", patience=SemanticPatience(eagerness)) for eagerness in EAGERNESS
    ]
    groups = {"all three": TURNS, **{name: (name,) for name in (*TURNS, *ORDINARY)}}
    for title, names in groups.items():
        group = [take for take in loaded if take.recording.category in names]
        if group:
            rows = [
                judge(policy.name, [play(take, policy) for take in group]).row()
                for policy in track(named, title, console=console, transient=True)
            ]
            outcome.tables[title] = rows
            console.print(table(title, rows))
    turns = [take for take in loaded if take.recording.category in TURNS]
    swept = {
        "server VAD: silence alone": [_silent(ms) for ms in SWEPT_MS],
        "semantic VAD, medium, all waits scaled": [
            Policy(f"medium x {by:g}", patience=SemanticPatience("medium", by)) for by in SCALES
        ],
        "semantic VAD: high, medium, low": named[len(SILENCES_MS) :],
    }
    curves = {
        name: [
            judge(policy.name, [play(take, policy) for take in turns])
            for policy in track(policies, name, console=console, transient=True)
        ]
        for name, policies in swept.items()
    }
    outcome.tables["curves"] = [
        {"curve": name, **verdict.row()} for name, verdicts in curves.items() for verdict in verdicts
    ]
    silence, semantic, eager = curves.values()
    _claim(outcome, loaded, silence, [*semantic, *eager])
    return curves


def _claim(
    outcome: Outcome, loaded: Sequence[Take], silence: Sequence[Verdict], semantic: Sequence[Verdict]
) -> None:
    missed, invented = beginnings([play(take, _silent(500)) for take in loaded])
    outcome.figures["missed starts"] = missed
    outcome.figures["false starts on non_speech"] = invented
    compared = [
        verdict for verdict in silence if verdict.name in {f"silence {ms} ms" for ms in SILENCES_MS[1:]}
    ]
    beaten = beaten_on_both(compared, semantic)
    outcome.claims += [
        Claim(
            "semantic VAD cuts in less than 300, 500 and 800 ms of silence, at no more delay",
            len(beaten) == len(compared),
            ", ".join(beaten) or None,
        ),
        Claim("no speech is begun where nobody speaks", invented == 0, invented),
        Claim("no recording with speech goes unheard", missed == 0, missed),
    ]


def write_curves(curves: dict[str, list[Verdict]], path: Path) -> None:
    """Writes the points of the curves as comma-separated values."""
    rows = [{"curve": name, **verdict.row()} for name, verdicts in curves.items() for verdict in verdicts]
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def _silent(silence_ms: int) -> Policy:
    return Policy(f"silence {silence_ms} ms", silence_ms)


_NAMED = {f"silence {ms} ms" for ms in SILENCES_MS} | {f"semantic {eagerness}" for eagerness in EAGERNESS}


def _takes(recordings: Sequence[Recording]) -> Iterator[Take]:
    from modalities.adapters.faster_whisper import FasterWhisper, WhisperSettings
    from modalities.adapters.silero import SileroDetector

    settings = WhisperSettings(threads=this_machine().cores, word_times=False)
    return takes(recordings, SileroDetector(), FasterWhisper(settings))
