"""`chorale bench asr`: our recogniser beside the stock one: same model, compute type, beam and threads, in one run.

*Words and latency*: every clip is recognised by both in turn, so that what else the machine does meets both; utterances
under 5 s make the latency figures. *Utterances per second*: short clips shared by 1, 4, 8 and 16 users. The yardstick
is the quickest way to use the stock library for so many users: a thread for each, one model or as many as threads, its
batched pipeline (which decodes without its fallbacks), or any of these for fewer users with a queue in front. *Noise*:
sounds without speech, and which made text.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles
from typing import Annotated, TypeVar

import typer
from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from benchmarks.asr_clips import Spoken, silent_clips, spoken_clips
from benchmarks.asr_contenders import Apart
from benchmarks.asr_worker import through_a_worker
from benchmarks.outcome import Claim, Figure, Outcome, Row, screen, table, this_machine
from modalities.errors import AdapterUnavailable
from modalities.text.normalize import normalize, word_errors

SHORT_S = 5.0
LATENCY_RATIO = 3.5
THROUGHPUT_RATIO = 6.0
THROUGHPUT_AT = 8
POINTS = 0.5
_THROUGHPUT_CLIPS = 32
_PERCENT = 100
Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Heard:
    """What both made of one clip."""

    clip: Spoken
    stock_s: float
    stock_text: str
    our_s: float
    our_text: str


def command(
    data: Annotated[
        Path | None,
        typer.Option(
            envvar="CHORALE_SPEECH_DATA", help="Folder of recordings; none: our own voice says some."
        ),
    ] = None,
    limit: Annotated[int | None, typer.Option(help="At most so many clips of speech.")] = None,
    threads: Annotated[int, typer.Option(min=1, help="Threads of either recogniser.")] = 1,
    beam: Annotated[int, typer.Option(min=1, help="Beam of either recogniser.")] = 1,
    concurrency: Annotated[str, typer.Option(help="Users at one time, comma-separated.")] = "1,4,8,16",
    json_file: Annotated[Path | None, typer.Option("--json", help="Where the figures go.")] = None,
) -> None:
    """Recognition beside the stock library: latency, utterances per second, word errors.

    Examples: chorale bench asr --limit 40;  chorale bench asr --threads 2 --beam 5
    """
    console, machine = screen(), this_machine()
    levels = [int(level) for level in concurrency.split(",") if level]
    try:
        spoken, silent = spoken_clips(data, limit), silent_clips(data)
    except (OSError, AdapterUnavailable) as error:
        console.print(f"No speech to listen to: {error}", highlight=False)
        raise typer.Exit(2) from None
    console.print(f"[dim]{machine}[/]\n[dim]{len(spoken)} clips of {data or 'our own voice'}[/]")
    outcome = Outcome(
        "asr",
        {
            "limit": limit,
            "threads": threads,
            "beam": beam,
            "concurrency": concurrency,
            "data": data is not None,
        },
    )
    with ExitStack() as stack:
        names = ["stock", "stock, batched", "ours"] + (["stock, workers"] if threads > 1 else [])
        contenders = {name: stack.enter_context(Apart(name, threads, beam)) for name in names}
        for contender in contenders.values():
            contender.one(spoken[0].pcm)
        stock, ours = contenders["stock"], contenders["ours"]
        heard = [_both(stock, ours, clip) for clip in _shown(console, "one by one", spoken)]
        noises = [_both(stock, ours, clip) for clip in _shown(console, "noise", silent)]
        short = [clip for clip in spoken if clip.seconds < SHORT_S]
        short = short[:: max(1, len(short) // _THROUGHPUT_CLIPS)][:_THROUGHPUT_CLIPS]
        rates = {name: dict.fromkeys(levels, 0.0) for name in contenders}
        for name, level in _shown(console, "together", [(n, k) for k in levels for n in contenders]):
            rates[name][level] = len(short) / contenders[name].many([clip.pcm for clip in short], level)
    times = through_a_worker([clip.pcm for clip in short], levels, threads, beam)
    rates["ours, in a worker"] = {level: len(short) / took for level, took in times.items()}

    judge_latency(heard, outcome)
    judge_words(heard, outcome)
    judge_rates(rates, outcome)
    judge_noise(noises, outcome)
    for title, rows in outcome.tables.items():
        if title != "clips":
            console.print(table(title, rows))
    outcome.show(console)
    console.print(f"written to {outcome.write(json_file, machine)}")
    raise typer.Exit(0 if outcome.holds else 1)


def judge_latency(heard: Sequence[Heard], outcome: Outcome) -> None:
    """Compares what utterances under 5 s took, in milliseconds."""
    short = [one for one in heard if one.clip.seconds < SHORT_S]
    if not short:
        return
    stock, ours = [one.stock_s for one in short], [one.our_s for one in short]
    rows = [_times("stock", stock, 1.0), _times("ours", ours, median(stock) / median(ours))]
    outcome.tables[f"Latency under {SHORT_S:.0f} s, ms"] = rows
    ratio = round(median(stock) / median(ours), 2)
    outcome.figures["latency ratio"] = ratio
    outcome.claims.append(
        Claim(
            f"p50 under {SHORT_S:.0f} s at least {LATENCY_RATIO} times quicker", ratio >= LATENCY_RATIO, ratio
        )
    )


def judge_words(heard: Sequence[Heard], outcome: Outcome) -> None:
    """Compares word error rates over all clips, and by category."""
    rows: list[Row] = []
    for category in [*dict.fromkeys(one.clip.category for one in heard), "all"]:
        of = [one for one in heard if category in (one.clip.category, "all")]
        wanted = [normalize(one.clip.transcript or "") for one in of]
        words = sum(map(len, wanted))
        pairs = list(zip(wanted, of, strict=True))
        stock = sum(word_errors(said, normalize(one.stock_text)) for said, one in pairs)
        ours = sum(word_errors(said, normalize(one.our_text)) for said, one in pairs)
        rows.append(
            {
                "category": category,
                "clips": len(of),
                "words": words,
                "stock": round(_PERCENT * stock / max(1, words), 2),
                "ours": round(_PERCENT * ours / max(1, words), 2),
            }
        )
        points = round(_PERCENT * (ours - stock) / max(1, words), 2)
    outcome.tables["Word error rates, %"] = rows
    outcome.tables["clips"] = [
        {"name": one.clip.name, "stock": one.stock_text, "ours": one.our_text} for one in heard
    ]
    outcome.figures["word error points"] = points
    outcome.claims.append(Claim(f"words no worse by more than {POINTS} points", points <= POINTS, points))


def judge_rates(rates: dict[str, dict[int, float]], outcome: Outcome) -> None:
    """Compares utterances per second; the yardstick is the quickest way to use the stock library as it is. More users
    than a way serves best can always wait in a queue: none is slower for many than for few."""
    levels = list(rates["ours"])
    rows: list[Row] = []
    for name, by_level in rates.items():
        rows.append(_row(name, {k: by_level[k] for k in levels}))
    stock = [by_level for name, by_level in rates.items() if name.startswith("stock")]
    best = {k: max(by_level[fewer] for by_level in stock for fewer in levels if fewer <= k) for k in levels}
    rows.extend(
        _row(f"{name}, times stock", {k: rates[name][k] / best[k] for k in levels})
        for name in ("ours", "ours, in a worker")
    )
    outcome.tables["Utterances per second"] = rows
    if THROUGHPUT_AT in levels:
        ratio = round(rates["ours"][THROUGHPUT_AT] / best[THROUGHPUT_AT], 2)
        outcome.figures["throughput ratio"] = ratio
        text = f"at least {THROUGHPUT_RATIO} times the utterances per second at {THROUGHPUT_AT} at once"
        outcome.claims.append(Claim(text, ratio >= THROUGHPUT_RATIO, ratio))


def judge_noise(noises: Sequence[Heard], outcome: Outcome) -> None:
    """Counts sounds without speech that made text."""
    stock, ours = sum(bool(one.stock_text) for one in noises), sum(bool(one.our_text) for one in noises)
    outcome.tables["Text for no speech"] = [{"sounds": len(noises), "stock": stock, "ours": ours}]
    outcome.claims.append(Claim("text for no speech is no more frequent", ours <= stock, ours))


def _both(stock: Apart, ours: Apart, clip: Spoken) -> Heard:
    return Heard(clip, *stock.one(clip.pcm), *ours.one(clip.pcm))


def _row(name: str, figures: dict[int, float]) -> dict[str, Figure]:
    row: dict[str, Figure] = {"utterances/s": name}
    return row | {f"{level} at once": round(figure, 2) for level, figure in figures.items()}


def _times(name: str, took_s: Sequence[float], ratio: float) -> dict[str, Figure]:
    last = quantiles(took_s, n=20, method="inclusive")[-1] if len(took_s) > 1 else took_s[0]
    return {
        "": name,
        "clips": len(took_s),
        "p50": round(1000 * median(took_s)),
        "p95": round(1000 * last),
        "times quicker": round(ratio, 2),
    }


def _shown(console: Console, title: str, items: Sequence[Item]) -> Iterator[Item]:
    with _progress(console) as bar:
        yield from bar.track(items, description=title)


def _progress(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description:14}"), *Progress.get_default_columns()[1:2],
        MofNCompleteColumn(), TimeElapsedColumn(), console=console,
    )  # fmt: skip
