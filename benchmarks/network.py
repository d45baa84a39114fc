"""`chorale bench network`: calls over a bad network, ours beside aiortc's in one run.

Part *delay*: how long sound takes into the server's hand before, during and after loss, and what an outage shifts. Part
*words*: what loss costs in words, over real calls; *outage*: the words before and after three seconds of nothing;
*coding*: what guessing, or in-band correction (FEC), saves.
No server is needed: both ways run in this process, behind a relay of its own.
"""

import asyncio
import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import Progress

from benchmarks import network_coding, network_delay, network_outage, network_words
from benchmarks.network_delay import Delay, Stages
from benchmarks.network_outage import Outage
from benchmarks.network_words import Words
from benchmarks.outcome import Claim, Outcome, Row, screen, table, this_machine
from benchmarks.playing import LEAST_SPEECH_S
from benchmarks.recordings import Recording, pick, read_manifest

PARTS = ("delay", "words", "outage", "coding")
SPOKEN = ("clean_read", "command", "digits_numbers")
MAX_SHIFT_MS = 40

EXAMPLES = """\b
Examples:
  chorale bench network                      all parts; words need recordings (CHORALE_SPEECH_DATA)
  chorale bench network --parts delay        a minute, no recordings
  chorale bench network --limit 20 --seed 7  fewer clips, other losses
"""


def command(
    data: Annotated[
        Path | None, typer.Option(envvar="CHORALE_SPEECH_DATA", help="Folder of recordings.")
    ] = None,
    parts: Annotated[str, typer.Option(help="Comma-separated: delay, words, outage, coding.")] = ",".join(
        PARTS
    ),
    limit: Annotated[int, typer.Option(min=1, help="At most so many recordings.")] = 12,
    seconds: Annotated[int, typer.Option(min=2, help="How long the line is bad.")] = 20,
    seed: Annotated[int, typer.Option(help="Which packets are lost.")] = 1,
    json_file: Annotated[Path | None, typer.Option("--json", help="Where the figures go.")] = None,
) -> None:
    console, machine = screen(), this_machine()
    chosen = [name for name in parts.split(",") if name]
    if unknown := [name for name in chosen if name not in PARTS]:
        console.print(f"There is no part {', '.join(unknown)}; there are {', '.join(PARTS)}.")
        raise typer.Exit(2)
    recordings = _recordings(console, data, limit) if set(chosen) - {"delay"} else []
    console.print(f"[dim]{machine}[/]")
    outcome = Outcome("network", {"parts": parts, "limit": limit, "seconds": seconds, "seed": seed})
    if "delay" in chosen:
        with console.status("delay: beeps over a clear, a bad, a cut and a clear line"):
            delays = asyncio.run(network_delay.measure(Stages(bad=seconds), seed=seed))
        _show(console, outcome, "Delay and place of sound, ms", delays)
        claim_delays(outcome, *delays)
    if recordings:
        recognise = network_words.recogniser(machine.cores)
        with Progress(console=console) as bar:
            if "words" in chosen:
                task = bar.add_task("words", total=len(recordings))
                words = asyncio.run(network_words.compare(recordings, recognise, lambda: bar.advance(task)))
            if "outage" in chosen:
                task = bar.add_task("outage", total=len(recordings) - 1)
                outage = asyncio.run(network_outage.compare(recordings, recognise, lambda: bar.advance(task)))
            if "coding" in chosen:
                task = bar.add_task("coding", total=len(recordings))
                codings = network_coding.compare(recordings, recognise, seed, lambda: bar.advance(task))
        if "words" in chosen:
            _show(console, outcome, "Word errors over real calls", words)
            claim_words(outcome, words)
        if "outage" in chosen:
            _show(console, outcome, "Words around an outage of 3 s", [outage])
            claim_outage(outcome, outage)
        if "coding" in chosen:
            _show(console, outcome, "Word errors by what is made of a lost packet", codings)
    outcome.show(console)
    console.print(f"written to {os.path.relpath(outcome.write(json_file, machine))}")
    raise typer.Exit(0 if outcome.holds else 1)


command.__doc__ = f"Calls over a bad network: delay, place and words, ours beside aiortc's.\n\n{EXAMPLES}"


def claim_delays(outcome: Outcome, ours: Delay, theirs: Delay) -> None:
    """Says what is to hold of both ways."""
    outcome.claims += [
        Claim("our delay returns to its base after loss (ms above it)", ours.mended_ms < ours.base_ms + 20,
              round(ours.mended_ms - ours.base_ms, 1)),
        Claim("bare aiortc's does not (ms above its base)", theirs.mended_ms > theirs.base_ms + 60,
              round(theirs.mended_ms - theirs.base_ms, 1)),
        Claim(f"nothing after an outage is shifted by {MAX_SHIFT_MS} ms (worst)", ours.shift_ms <= MAX_SHIFT_MS,
              ours.shift_ms),
    ]  # fmt: skip


def claim_words(outcome: Outcome, words: Sequence[Words]) -> None:
    """Errors grow by no more than what was lost, in percent points."""
    clear = words[0].errors_percent
    for line in words[1:]:
        grown = round(line.errors_percent - clear, 1)
        text = f"{line.line}: errors grow by at most the loss of {line.lost_percent} % (points)"
        outcome.claims.append(Claim(text, grown <= line.lost_percent, grown))


def claim_outage(outcome: Outcome, outage: Outage) -> None:
    """What was said before and after lost nothing, and lies where it was said."""
    for part, errors, clear in (
        ("before", outage.before_percent, outage.clear_before_percent),
        ("after", outage.after_percent, outage.clear_after_percent),
    ):
        grown = round(errors - clear, 1)
        outcome.claims.append(
            Claim(f"words {part} an outage are those of a clear line (points)", grown <= 0, grown)
        )
    text = f"words after an outage lie within {MAX_SHIFT_MS} ms of their places (worst)"
    outcome.claims.append(Claim(text, outage.shift_ms <= MAX_SHIFT_MS, outage.shift_ms))


def _recordings(console: Console, data: Path | None, limit: int) -> list[Recording]:
    if data is None:
        console.print("Without recordings (--data or CHORALE_SPEECH_DATA) there are no words: only delays.")
        return []
    try:
        every = read_manifest(data)
    except OSError as error:
        console.print(f"No recorded speech in {data}: {error.strerror} (manifest.jsonl).", highlight=False)
        raise typer.Exit(2) from None
    spoken = [one for one in every if one.speech_s >= LEAST_SPEECH_S and one.transcript]
    return pick(spoken, SPOKEN, limit)


def _show(console: Console, outcome: Outcome, title: str, figures: Sequence[Any]) -> None:
    rows: list[Row] = [
        {key.replace("_", " "): value for key, value in asdict(one).items()} for one in figures
    ]
    console.print(table(title, rows))
    outcome.tables[title] = rows
