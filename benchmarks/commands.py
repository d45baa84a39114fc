"""`chorale bench commands`: the consistency engine from end to end, on spoken commands in noise, on and off."""

import json
import math
import os
import time
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, TextIO

import typer
from rich.console import Console
from rich.progress import track

from benchmarks.command_cases import Case, drawn, recorded, understood_rightly
from benchmarks.command_figures import Judged, causes, claims, rows
from benchmarks.command_lines import HALVES
from benchmarks.command_sound import Studio
from benchmarks.command_talk import ARMS, converse
from benchmarks.command_work import Models
from benchmarks.outcome import Figure, Outcome, Row, screen, table, this_machine
from orchestrator.errors import ChoraleError

SHOWN = (
    "commands", "n", "right, off", "wrong, off", "wrong, later", "wrong, ask", "fewer, ask", "fewer 95 %, ask",
    "lost, ask", "questions / 100", "delay p50 ms, ask", "delay p95 ms, ask",
)  # fmt: skip
"""What of the figures stands in the table on the screen; the file has all."""


def command(
    limit: Annotated[int, typer.Option(help="Commands of each half that our own voice says.")] = 240,
    speech: Annotated[
        Path | None,
        typer.Option(
            envvar="CHORALE_SPEECH_DATA",
            help="Folder of recorded speech: real noises, and commands of people. Without it both are left out.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="What commands, voices and noises are drawn by.")] = 1,
    half: Annotated[str, typer.Option(help="tuned, held, or both.")] = "both",
    keep: Annotated[
        Path | None,
        typer.Option(
            help="A folder for what voice and recogniser have said: a later run asks them only what is new."
        ),
    ] = None,
    minutes: Annotated[
        float | None, typer.Option(help="Play no more after so long, and report what has been played.")
    ] = None,
    instant: Annotated[
        bool,
        typer.Option("--instant", help="Models take no time: the same everywhere, but no delay is measured."),
    ] = False,
    second: Annotated[bool, typer.Option("--second", help="With Whisper base as second recogniser.")] = False,
    cases: Annotated[
        Path | None, typer.Option(help="Where each command goes with all that came of it (JSON lines).")
    ] = None,
    plot: Annotated[Path | None, typer.Option(help="A PNG of the table (needs Matplotlib).")] = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="Where the figures go.")] = None,
) -> None:
    """Wrong slots that sessions commit with the consistency engine and without it, on spoken commands in noise.

    Examples: `chorale bench commands --limit 30`, `chorale bench commands --speech DIR --keep /tmp/commands`.
    """
    console, machine = screen(), this_machine()
    console.print(f"[dim]{machine}[/]")
    if half not in (*HALVES, "both"):
        console.print(f"--half {half}: expected tuned, held or both.")
        raise typer.Exit(2)
    studio = Studio(speech, keep / "voice" if keep else None)
    models = Models(keep, instant, second)
    arguments: dict[str, Figure] = {
        "limit": limit,
        "speech": speech is not None,
        "seed": seed,
        "half": half,
        "second": second,
    }
    outcome = Outcome("commands", arguments)
    try:
        kinds = [list(drawn(limit, seed, name, studio)) for name in HALVES if half in (name, "both")]
        if half != "tuned":
            kinds.append(list(recorded(studio, limit)))
        with cases.open("w") if cases else nullcontext() as file:
            judged, left_out = play(_in_turn(kinds), models, seed, console, minutes, file)
    except (ChoraleError, OSError) as error:
        console.print(f"{error}", highlight=False)
        raise typer.Exit(2) from None
    outcome.figures["played"], outcome.figures["left out"] = len(judged), left_out
    found = rows(judged)
    outcome.tables["commands"] = found
    console.print(
        table("spoken commands: slots committed without the engine (off) and with it", shown(found))
    )
    if why := causes(judged):
        outcome.tables["causes"] = why
        console.print(table("what is wrong or lost all the same, with leave to ask", why))
    console.print(f"{left_out} commands were left out: the server does not understand their true words.")
    outcome.claims += claims(judged)
    outcome.show(console)
    if plot is not None:
        from benchmarks.commands_plot import draw

        draw(found, plot)
    console.print(f"written to {os.path.relpath(outcome.write(json_file, machine))}")
    raise typer.Exit(0 if outcome.holds else 1)


def play(
    chosen: Sequence[Case],
    models: Models,
    seed: int,
    console: Console,
    minutes: float | None = None,
    file: TextIO | None = None,
) -> tuple[list[Judged], int]:
    """Plays commands in every arm, as long as there is time, and writes each to the file; returns what came of them,
    and how many no recogniser could have helped."""
    judged, left_out = [], 0
    end_s = time.monotonic() + (math.inf if minutes is None else 60 * minutes)
    for case in track(chosen, "commands", console=console, transient=True):
        if time.monotonic() > end_s:
            break
        if understood_rightly(case.line, models):
            went = {arm: converse(case.line, arm, models, case.speak, seed) for arm in ARMS}
            judged.append(Judged(case, went))
            if file is not None:
                print(json.dumps(judged[-1].as_plain()), file=file, flush=True)
        else:
            left_out += 1
    return judged, left_out


def _in_turn(kinds: Sequence[Sequence[Case]]) -> list[Case]:
    """Returns cases of all kinds, evenly spread: a run that ends early has some of all."""
    placed = [
        ((at + 0.5) / len(kind), number, at) for number, kind in enumerate(kinds) for at in range(len(kind))
    ]
    return [kinds[number][at] for _, number, at in sorted(placed)]


def shown(found: Sequence[Row]) -> list[Row]:
    """Returns the columns that fit on a screen."""
    return [{key: one[key] for key in SHOWN} for one in found]
