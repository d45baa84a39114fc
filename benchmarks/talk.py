"""`chorale bench talk`: one long conversation, turn by turn: does it get slower, does it grow, is the prompt reused?

The benchmark starts its own server with the real models and holds one session over a WebSocket, push-to-talk, one turn
every few seconds. Answer times are the client's: from the commit of the question to the first text and sound of the
reply. What a turn must compute of its prompt is what the language model had not cached.
"""

import asyncio
import base64
import itertools
import os
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from benchmarks.outcome import Claim, Outcome, Row, screen, table, this_machine
from benchmarks.talk_plot import draw
from benchmarks.talk_turn import Talker, Turn, memory_mib
from benchmarks.voice_clips import QUESTIONS, synthesized
from benchmarks.voice_servers import ServerFailed, chorale
from modalities.audio.resample import Resampler
from modalities.errors import AdapterUnavailable
from orchestrator.clients.recording import CALL_RATE_HZ
from orchestrator.clients.text_socket import RealtimeSocket

MOST_NEW_TOKENS = 150
"""What a turn may compute of its prompt at most: its question, the end of the last reply, the template."""

EXAMPLES = """\b
Examples:
  chorale bench talk                                   ten minutes, a spoken question every ten seconds
  chorale bench talk --minutes 60 --plot talk.png
  chorale bench talk --turns 60 --pace 0 --say text    sixty typed turns, one behind the other
"""


def command(
    minutes: Annotated[float, typer.Option(min=0.1, help="How long the talk is.")] = 10,
    pace: Annotated[float, typer.Option(min=0, help="Seconds from one question to the next.")] = 10,
    turns: Annotated[int | None, typer.Option(min=1, help="As many turns, in place of --minutes.")] = None,
    say: Annotated[str, typer.Option(help="voice or text: how questions are asked.")] = "voice",
    json_file: Annotated[Path | None, typer.Option("--json", help="Where the figures go.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Where the picture goes (PNG).")] = None,
) -> None:
    """One long conversation: answer time, reused prompt and memory, turn by turn."""
    console, machine = screen(), this_machine()
    if say not in ("voice", "text"):
        console.print("--say is voice or text.")
        raise typer.Exit(2)
    console.print(f"[dim]{machine}[/]")
    count = turns or max(1, round(minutes * 60 / pace) if pace else round(minutes * 30))
    try:
        told = asyncio.run(_talk(console, count, pace, say))
    except (ServerFailed, AdapterUnavailable) as error:
        console.print(str(error), highlight=False)
        raise typer.Exit(1) from None
    outcome = Outcome("talk", {"turns": count, "pace": pace, "say": say})
    outcome.tables = {"turns": [turn.row() for turn in told], "tenths": tenths(told)}
    outcome.claims = claims(told)
    console.print(
        table("Medians of each tenth of the talk; tokens and MiB at its end", outcome.tables["tenths"])
    )
    outcome.show(console)
    if plot is not None:
        draw(told, plot)
    console.print(f"written to {os.path.relpath(outcome.write(json_file, machine))}")
    raise typer.Exit(0 if outcome.holds else 1)


command.__doc__ = f"{command.__doc__}\n\n{EXAMPLES}"


def questions(say: str) -> list[str]:
    """Returns what is said, turn by turn in a circle: texts, or sound in the protocol's form."""
    if say == "text":
        return list(QUESTIONS)
    sounds = []
    for clip in synthesized():
        resampler = Resampler(CALL_RATE_HZ, 24_000)
        pcm = b"".join((resampler.feed(clip.samples).tobytes(), resampler.flush().tobytes()))
        sounds.append(base64.b64encode(pcm).decode())
    return sounds


async def _talk(console: Console, count: int, pace_s: float, say: str) -> list[Turn]:
    asked = questions(say)
    told: list[Turn] = []
    with tempfile.TemporaryDirectory() as folder:
        async with (
            chorale(Path(folder) / "log", {}) as server,
            RealtimeSocket.connect(server.url) as socket,
        ):
            talker = Talker(socket, spoken=say == "voice")
            await talker.begin()
            began_s = time.monotonic()
            with _progress(console) as bar:
                task = bar.add_task("turns", total=count)
                for number in range(count):
                    await asyncio.sleep(began_s + number * pace_s - time.monotonic())
                    at_s, used_s = time.monotonic() - began_s, server.usage().own_s
                    answer = await talker.ask(asked[number % len(asked)])
                    used_ms = 1_000 * (server.usage().own_s - used_s)
                    told.append(Turn(number + 1, at_s, answer, memory_mib(server.pid), used_ms))
                    bar.advance(task)
    return told


def tenths(turns: Sequence[Turn]) -> list[Row]:
    """Returns a row for each tenth of the talk."""
    rows: list[Row] = []
    for part in _parts(turns, 10):
        last = part[-1]
        rows.append(
            {
                "turns": f"{part[0].number}–{last.number}",
                "first text ms": _median([turn.answer.first_text_ms for turn in part]),
                "first sound ms": _median([turn.answer.first_sound_ms for turn in part]),
                "server's CPU ms": _mean([turn.server_cpu_ms for turn in part]),
                "prompt": last.answer.input_tokens,
                "cached": last.answer.cached_tokens,
                "most new": max(turn.answer.new_tokens for turn in part),
                **{f"{name} MiB": round(mib) for name, mib in last.memory_mib.items()},
            }
        )
    return rows


def claims(turns: Sequence[Turn]) -> list[Claim]:
    """Returns what a long talk is held to. The first quarter warms up: the second is what the last is compared with.

    Answer times are shown and decide nothing: what else the machine does is in them, and the model's own cost, which
    grows with the prompt until that is full.
    """
    unanswered = sum(turn.answer.status != "completed" for turn in turns)
    found = [Claim("turns without a complete answer", unanswered == 0, unanswered)]
    quarters = _parts(turns, 4)
    if len(quarters) < 4:
        return found
    early, late = quarters[1], quarters[3]
    ratio = _mean([turn.server_cpu_ms for turn in late]) / max(
        _mean([turn.server_cpu_ms for turn in early]), 1
    )
    most = max(turn.answer.new_tokens for turn in turns[1:])
    grown = _without_llm(late[-1]) / max(_without_llm(early[-1]), 1)
    return [
        *found,
        Claim("the server's own processor time a turn, last quarter / second quarter, ≤ 1.25",
              ratio <= 1.25, round(ratio, 2)),
        Claim(f"tokens of a prompt computed anew, ≤ {MOST_NEW_TOKENS}", most <= MOST_NEW_TOKENS, most),
        Claim("memory of server and workers but the language model's, same quarters, ≤ 1.05",
              grown <= 1.05, round(grown, 3)),
    ]  # fmt: skip


def _without_llm(turn: Turn) -> float:
    """The language model's process keeps prompt states up to its `cache_mib`."""
    return sum(mib for name, mib in turn.memory_mib.items() if name != "llm")


def _parts(turns: Sequence[Turn], count: int) -> list[Sequence[Turn]]:
    edges = [round(n * len(turns) / count) for n in range(count + 1)]
    parts = [turns[start:stop] for start, stop in itertools.pairwise(edges)]
    return [part for part in parts if part]


def _mean(values: Sequence[float]) -> float:
    return round(statistics.fmean(values), 1)


def _median(values: Sequence[float]) -> float:
    return round(statistics.median(values), 1)


def _progress(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description:8}"), *Progress.get_default_columns()[1:2],
        MofNCompleteColumn(), TimeElapsedColumn(), console=console,
    )  # fmt: skip
