"""`chorale bench speech`: recorded speech through the real path, its words beside those of the bare recogniser.

Two parts. *Spoken* categories are played into WebRTC calls, a call for every clip; the final transcripts are compared
with what was said and with the direct decode of the same file by the same model. Clips count where the direct decode
finds words and a voice activity detector 200 ms of speech. *Odd* categories (broken files, noise, other languages)
must each end in an event that makes sense, in a session that still answers, on a server that is still healthy.
"""

import asyncio
import os
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from benchmarks.calling import Doors
from benchmarks.direct import decode_directly
from benchmarks.judging import Played, judge_odd, judge_spoken
from benchmarks.outcome import RESULTS, Claim, Outcome, screen, table, this_machine
from benchmarks.playing import LEAST_SPEECH_S, Journal, play_all
from benchmarks.recordings import Recording, pick, read_manifest

SPOKEN = ("clean_read", "command", "telephone_8k", "digits_numbers")
ODD = ("odd_format", "broken", "non_speech", "non_english", "overlap", "noisy")


def command(
    data: Annotated[
        Path | None, typer.Option(envvar="CHORALE_SPEECH_DATA", help="Folder of recordings.")
    ] = None,
    url: Annotated[
        str, typer.Option(envvar="CHORALE_URL", help="A running server.")
    ] = "http://127.0.0.1:8080",
    key: Annotated[
        str | None, typer.Option(envvar="CHORALE_API_KEY", help="API key, where the server wants one.")
    ] = None,
    categories: Annotated[str, typer.Option(help="Comma-separated; empty: all of both parts.")] = "",
    limit: Annotated[int | None, typer.Option(help="At most so many files of each part.")] = None,
    calls: Annotated[int, typer.Option(help="Calls at one time.")] = 1,
    resume: Annotated[bool, typer.Option(help="Go on where a run broke off.")] = False,
    json_file: Annotated[Path | None, typer.Option("--json", help="Where the figures go.")] = None,
) -> None:
    """Recorded speech through WebRTC calls.

    Counts word errors beside the bare recogniser's, and odd files survived.
    """
    console, machine = screen(), this_machine()
    if data is None:
        console.print("Where is the recorded speech? Give --data or set CHORALE_SPEECH_DATA.")
        raise typer.Exit(2)
    chosen = [name for name in categories.split(",") if name] or [*SPOKEN, *ODD]
    try:
        every = read_manifest(data)
    except OSError as error:
        console.print(f"No recorded speech in {data}: {error.strerror} (manifest.jsonl).", highlight=False)
        raise typer.Exit(2) from None
    doors = Doors(url, key)
    if not asyncio.run(doors.healthy()):
        console.print(f"No server is ready at {url}. Start one with: chorale serve", highlight=False)
        raise typer.Exit(1)
    spoken = pick(every, [name for name in chosen if name not in ODD], limit)
    odd = pick(every, [name for name in chosen if name in ODD], limit)
    spoken = [recording for recording in spoken if recording.speech_s >= LEAST_SPEECH_S]
    console.print(f"[dim]{machine}[/]")

    direct = _decode(console, spoken, machine.cores)
    spoken = [recording for recording in spoken if direct[recording.name].strip()]
    journal = Journal(RESULTS / "speech.jsonl", resume=resume)
    played, healthy = _call(console, [*spoken, *odd], journal, doors, calls)

    outcome = Outcome("speech", {"url": url, "categories": ",".join(chosen), "limit": limit, "calls": calls})
    if spoken:
        rows = judge_spoken([(one, direct[one.name], played[one.name]) for one in spoken], outcome)
        console.print(table("Word error rates, %", rows))
    if odd:
        console.print(table("Odd files", judge_odd([played[one.name] for one in odd], outcome)))
    outcome.claims.append(Claim("the server is healthy afterwards", healthy, healthy))
    outcome.show(console)
    console.print(f"written to {os.path.relpath(outcome.write(json_file, machine))}")
    raise typer.Exit(0 if outcome.holds else 1)


def _decode(console: Console, recordings: list[Recording], threads: int) -> dict[str, str]:
    direct: dict[str, str] = {}
    with _progress(console) as bar:
        task = bar.add_task("direct decode", total=len(recordings))
        for recording, text in decode_directly(recordings, threads):
            direct[recording.name] = text
            bar.advance(task)
    return direct


def _call(
    console: Console, recordings: list[Recording], journal: Journal, doors: Doors, calls: int
) -> tuple[dict[str, Played], bool]:
    """Plays what the journal does not hold yet; returns everything played and whether the server is healthy."""
    played = journal.read()
    waiting = [recording for recording in recordings if recording.name not in played]
    with _progress(console) as bar:
        task = bar.add_task("calls", total=len(recordings), completed=len(recordings) - len(waiting))

        def done(one: Played) -> None:
            played[one.name] = one
            journal.add(one)
            bar.advance(task)

        async def run() -> bool:
            await play_all(waiting, doors, calls, done)
            return await doors.healthy()

        return played, asyncio.run(run())


def _progress(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description:14}"), *Progress.get_default_columns()[1:2],
        MofNCompleteColumn(), TimeElapsedColumn(), console=console,
    )  # fmt: skip
