"""`chorale bench consistency`: how well contradictions are found, per kind of pair, and what a verdict costs.

Text pairs here; dialogues and speech pairs come from `consistency_dialogues` and `consistency_audio` where those are
there: each has `rows(data, embed, progress)` and returns a table. Without ``--cv`` the shipped numbers are judged. They
were fitted on the developer data: only on other data is that a test.
"""

import importlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import Progress, TaskID, track

from benchmarks import consistency_cost, consistency_prints, consistency_relations
from benchmarks.consistency_pairs import Observer, Pair, read_pairs
from benchmarks.data_files import BadData
from benchmarks.detection import Labels, Scores, at, auc, interval, threshold_for
from benchmarks.fit_distance import OPERATING_POINT, TooFewPairs, cross_validated, features_of
from benchmarks.make_lexicon import opposites
from benchmarks.outcome import Claim, Outcome, Row, screen, table, this_machine
from benchmarks.wordnet import WordNet
from consistency.distance import shipped
from consistency.features import NAMES
from modalities.adapters.minilm_onnx import MiniLmOnnx

PARTS = ("dialogues", "audio")
WORDNET = Path("/usr/share/wordnet")
"""Where Debian's wordnet-base lies; without it the check of unlisted opposites is left out."""
ONE_WORD = ("hard_number", "hard_day", "hard_ampm", "hard_polarity", "hard_negation")


def command(
    data: Annotated[
        Path | None, typer.Option(envvar="CHORALE_CONSISTENCY_DATA", help="Folder of the consistency data.")
    ] = None,
    cv: Annotated[
        bool, typer.Option("--cv", help="Fit anew and cross-validate, instead of judging the shipped fit.")
    ] = False,
    limit: Annotated[
        int | None, typer.Option(help="About so many pairs of texts, and so many clips.")
    ] = None,
    parts: Annotated[
        str, typer.Option(help="Which parts: texts, dialogues, audio, by commas.")
    ] = "texts,dialogues,audio",
    keep: Annotated[
        Path | None,
        typer.Option(
            help="A folder that remembers what the recognisers heard: a stopped run goes on from there."
        ),
    ] = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="Where the figures go.")] = None,
) -> None:
    """How well contradictions between what was said, typed and understood are found.

    A part whose files are missing is left out; a broken line is named. Exit status: 0 all goals hold, 1 one is missed,
    2 the data cannot be used.

    Examples: `chorale bench consistency --cv`, `chorale bench consistency --data held-back --parts texts`.
    """
    console, machine = screen(), this_machine()
    if data is None:
        console.print("Where are the pairs? Give --data or set CHORALE_CONSISTENCY_DATA.")
        raise typer.Exit(2)
    if unknown := sorted(set(parts.split(",")) - {"texts", *PARTS}):
        console.print(f"No part is called {unknown[0]!r}: they are texts, dialogues, audio.", highlight=False)
        raise typer.Exit(2)
    outcome = Outcome("consistency", {"cv": cv, "limit": limit, "parts": parts})
    console.print(f"[dim]{machine}[/]")
    measured, faults = 0, 0
    for part in ("texts", *PARTS):
        if part not in parts.split(","):
            continue
        try:
            if part == "texts":
                texts(read_pairs(data, limit), outcome, console, cv)
            else:
                _other_part(part, data, outcome, console, limit, keep)
            measured += 1
        except (BadData, TooFewPairs) as error:
            console.print(f"{part}: {error}", highlight=False, markup=False, soft_wrap=True)
            faults += 1
        except OSError as error:
            what = f"{error.filename} is missing" if error.filename else str(error)
            console.print(f"{part}: left out, {what}", highlight=False, markup=False, soft_wrap=True)
    outcome.show(console)
    if measured:
        console.print(f"written to {os.path.relpath(outcome.write(json_file, machine))}")
    raise typer.Exit(2 if faults or not measured else 0 if outcome.holds else 1)


def _other_part(
    part: str, data: Path, outcome: Outcome, console: Console, limit: int | None, keep: Path | None
) -> None:
    """Runs a part that has a module of its own: its `rows` are its table, its `claims` (if any) are made of them."""
    module = importlib.import_module(f"benchmarks.consistency_{part}")
    wanted = {"limit": limit, "keep": keep} if part == "audio" else {}
    with Progress(console=console, transient=True) as bar:
        tasks: dict[str, TaskID] = {}

        def progress(name: str, done: int, total: int) -> None:
            if name not in tasks:
                tasks[name] = bar.add_task(name, total=total)
            bar.update(tasks[name], completed=done)

        rows: Sequence[Row] = module.rows(data, MiniLmOnnx().embed, progress, **wanted)
    outcome.tables[part] = rows
    console.print(table(part, rows))
    if hasattr(module, "claims"):
        outcome.claims += module.claims(rows)


def texts(pairs: Sequence[Pair], outcome: Outcome, console: Console, cv: bool) -> None:
    """Measures the pairs of texts: distance, relation, fingerprint and cost."""
    console.print(
        "D by models that have seen no pair of the same utterance (5 folds)."
        if cv
        else "D by the shipped model. It was fitted on the developer data: on that these figures are no test."
    )
    observer = Observer()
    wanted = [text for pair in pairs for text in (pair.heard, pair.typed)]
    total = -(-len(set(wanted)) // 32)
    for _ in track(observer.embed(wanted), "sentence vectors", total, console=console, transient=True):
        pass
    features = features_of(pairs, observer)
    model = shipped()
    scores = cross_validated(pairs, features) if cv else np.array([model.of(row) for row in features])
    meaning = features[:, NAMES.index("meaning")]
    _summary(pairs, scores, meaning, outcome, console)
    _by_type(pairs, scores, meaning, outcome, console)
    _unseen(pairs, observer, outcome)
    consistency_relations.measure(pairs, outcome, console)
    consistency_prints.measure([observer.observe(pair) for pair in pairs], outcome, console)
    consistency_cost.measure([observer.observe(pair) for pair in pairs], outcome, console)


def _summary(
    pairs: Sequence[Pair], scores: Scores, meaning: Scores, outcome: Outcome, console: Console
) -> None:
    label = np.array([pair.inconsistent for pair in pairs])
    natural = np.array([pair.type.startswith("natural") for pair in pairs])
    groups = np.array([pair.group for pair in pairs])
    rows: list[Row] = []
    every = np.ones(len(pairs), dtype=bool)
    readings = _readings(pairs)
    for name, members, labels in (
        ("all pairs, published labels", every, label),
        ("natural, published labels", natural, label),
        *readings,
        ("cosine alone: all pairs", every, label),
    ):
        chosen = meaning if name.startswith("cosine") else scores
        if len(set(labels[members].tolist())) == 2:
            rows.append(_row(name, chosen[members], labels[members], groups[members]))
    outcome.tables["texts"] = rows
    console.print(table("texts: D against the labels; both classes weigh one half", rows))
    if not readings:
        readings = _unread(pairs, console)
    figures = [at(scores[sure], truth[sure], OPERATING_POINT) for _, sure, truth in readings]
    area = min((auc(scores[sure], truth[sure]) for _, sure, truth in readings), default=None)
    f1 = min((one.f1 for one in figures), default=None)
    false = max((one.false_positives for one in figures), default=None)
    one_word = np.array([pair.type in ONE_WORD for pair in pairs])
    paraphrase = np.array([pair.type == "paraphrase" for pair in pairs])
    outcome.claims += [
        _bound("texts: AUC on hard and audited pairs at least .99, under either reading", area, 0.99, True),
        _bound("texts: balanced F1 at .85 at least .94, under either reading", f1, 0.94, True),
        _bound("texts: false positives at .85 at most 2 %, under either reading", false, 0.02, False),
        _share("texts: one-word contradictions found at .85, at least .95", scores[one_word], 0.95, True),
        _share("texts: paraphrases alarmed at .85, at most 12 %", scores[paraphrase], 0.12, False),
    ]


def _readings(pairs: Sequence[Pair]) -> list[tuple[str, Labels, Labels]]:
    """Returns, for each reader of the audit and for both, which pairs are sure and what they are; nothing where no
    consistent pair was read."""
    again = [pair.other_reading for pair in pairs]
    agreed = np.array([pair.is_hard or pair.judged == pair.judged_again for pair in pairs])
    found = []
    for name, read, chosen in (
        ("hard and audited", pairs, np.ones(len(pairs), dtype=bool)),
        ("hard and audited, second reader", again, np.ones(len(pairs), dtype=bool)),
        ("hard and audited, where both agree", pairs, agreed),
    ):
        sure = np.array([pair.is_sure for pair in read]) & chosen
        truth = np.array([pair.truth for pair in read])
        if (sure & ~truth).any() and (sure & truth).any():
            found.append((name, sure, truth))
    return found


def _unread(pairs: Sequence[Pair], console: Console) -> list[tuple[str, Labels, Labels]]:
    """Returns what stands in for audited pairs in data that nobody has read: planted contradictions against all
    consistent recogniser texts, or else all pairs; nothing where one class is missing."""
    label = np.array([pair.inconsistent for pair in pairs])
    for name, sure in (
        (
            "hard pairs and consistent natural ones",
            [one.is_hard or one.type == "natural_asr" for one in pairs],
        ),
        ("all pairs by their labels", [True] * len(pairs)),
    ):
        if len(set(label[sure].tolist())) == 2:
            console.print(f"No audited pairs here: the goals are held against {name}.")
            return [(name, np.array(sure), label)]
    console.print("No audited pairs here, and pairs of one class only: these goals cannot be judged.")
    return []


def _share(text: str, scores: Scores, bound: float, at_least: bool) -> Claim:
    return _bound(text, float((scores > OPERATING_POINT).mean()) if len(scores) else None, bound, at_least)


def _bound(text: str, figure: float | None, bound: float, at_least: bool) -> Claim:
    if figure is None:
        return Claim(f"{text} (none here)", True, None)
    return Claim(text, figure >= bound if at_least else figure <= bound, figure)


def _row(name: str, scores: Scores, labels: Labels, groups: NDArray[np.int64]) -> Row:
    figures = at(scores, labels, OPERATING_POINT)
    strict = at(scores, labels, threshold_for(scores, labels, 0.02))
    low, high = interval(scores, labels, groups, auc)
    f1_low, f1_high = interval(scores, labels, groups, lambda s, one: at(s, one, OPERATING_POINT).f1)
    return {
        "pairs": name, "n": len(labels), "consistent": int((~labels).sum()), "AUC": auc(scores, labels),
        "95 %": f"{low:.3f}-{high:.3f}", "P": figures.precision, "R": figures.recall, "F1": figures.f1,
        "F1 95 %": f"{f1_low:.3f}-{f1_high:.3f}", "FPR": figures.false_positives, "R at 2 % FPR": strict.recall,
    }  # fmt: skip


def _by_type(
    pairs: Sequence[Pair], scores: Scores, meaning: Scores, outcome: Outcome, console: Console
) -> None:
    label = np.array([pair.inconsistent for pair in pairs])
    groups = np.array([pair.group for pair in pairs])
    natural = np.array([pair.type == "natural_asr" for pair in pairs])
    rows: list[Row] = []
    for name in sorted({pair.type for pair in pairs}):
        members = np.array([pair.type == name for pair in pairs])
        inconsistent = bool(label[members].any())
        against = members | (natural if inconsistent else label)
        low, high = interval(
            scores[members], label[members], groups[members], lambda s, _: float((s > OPERATING_POINT).mean())
        )
        rows.append(
            {
                "type": name,
                "n": int(members.sum()),
                "is": "inconsistent" if inconsistent else "consistent",
                "AUC": auc(scores[against], label[against])
                if len(set(label[against].tolist())) == 2
                else None,
                "D > .85": float((scores[members] > OPERATING_POINT).mean()),
                "95 %": f"{low:.2f}-{high:.2f}",
                "D > .5": float((scores[members] > 0.5).mean()),
                "cosine > .85": float((meaning[members] > OPERATING_POINT).mean()),
            }
        )
    outcome.tables["types"] = rows
    console.print(
        table("texts by type: what share is frozen (.85), what suspected (.5); AUC against natural_asr", rows)
    )


def _unseen(pairs: Sequence[Pair], observer: Observer, outcome: Outcome) -> None:
    """Judges planted opposites by a table that was made without any list written by hand: as if none were listed."""
    polar = [pair for pair in pairs if pair.type == "hard_polarity"]
    if not polar or not WORDNET.is_dir():
        return
    lines = opposites(WordNet.read(WORDNET), listed=False)
    found = features_of(polar, observer, dict(line.split("\t", 1) for line in lines))
    scores = np.array([shipped().of(row) for row in found])
    share = float((scores > OPERATING_POINT).mean())
    text = "texts: opposites found by the dictionary alone (and on/off, up/down), at least .92"
    outcome.claims.append(Claim(text, share >= 0.92, share))
