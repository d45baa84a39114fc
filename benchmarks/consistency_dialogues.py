"""The dialogue part of `chorale bench consistency`: does a graph notice that tokens do not fit their dialogue.

Every user turn is judged in order, with nothing after it; a turn that is rolled back leaves no tokens behind. Beside
ours stand the largest component and the plain reliabilities, over the same turns with the same vectors.
"""

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.dialogue_baselines import Reliability, largest_component
from benchmarks.dialogue_data import (
    TODAY,
    Dialogue,
    Embed,
    Likenesses,
    Scored,
    dialogues,
    embedded,
    facts,
    load,
    texts_of,
)
from benchmarks.outcome import Claim, Figure, Row
from consistency import everyday
from consistency.context import Context
from consistency.graph import SlotIntentGraph
from consistency.ontology import Ontology
from consistency.related import relation

THRESHOLD = 0.6
"""The connectivity below which a turn's tokens are rolled back."""
UNITS = 10_000
"""Turns of one long conversation whose cost is measured."""
COLUMNS = (
    *("what", "n", "bad", "AUC", "AUC 95 %", "P", "R", "F1", "F1 95 %"),
    *("FPR same", "FPR switch", "legal", "ms p50", "ms p95"),
)
"""Of every row, empty where it has none."""
RESAMPLES = 400
SEED = 7

Scores = NDArray[np.float64]
_read_facts = lru_cache(maxsize=65_536)(facts)


@dataclass(frozen=True)
class Judged:
    """The scored turns of all dialogues in order, and each method's connectivity of them."""

    turns: tuple[Scored, ...]
    ours: Scores
    reliability: Scores
    component: Scores


def rows(folder: Path, embed: Embed | None, progress: Callable[[str, int, int], None]) -> list[Row]:
    """Returns the table of the dialogue part: a row for each method, corruption, modality. Without `embed`, likeness is
    held against nothing. Raises `OSError` where the data is missing."""
    raw, ontology = load(folder)
    likenesses = None
    if embed is not None:
        texts = texts_of(raw, ontology)
        vectors = embedded(texts, embed, lambda done: progress("vectors", done, len(texts)))
        likenesses = Likenesses(ontology, vectors)
    graph = SlotIntentGraph(ontology, _read_facts, relation, TODAY)
    every = list(dialogues(raw, graph.read, likenesses))
    judged = judge(every, graph, ontology, lambda done: progress("dialogues", done, len(every)))
    domains = {str(one["id"]): _domains(one["services"]) for one in raw}
    apart = judge_apart(
        every, domains, ontology, lambda done: progress("without its domain", done, len(every))
    )
    return [*table(judged, apart), *cost(every, graph, ontology, UNITS)]


def domain_of(service: str) -> str:
    """Returns the domain of a service: ``Hotels`` of ``Hotels_4``."""
    return service.partition("_")[0]


def _domains(services: object) -> frozenset[str]:
    assert isinstance(services, list)
    return frozenset(domain_of(str(service)) for service in services)


def judge_apart(
    every: Sequence[Dialogue],
    domains: Mapping[str, frozenset[str]],
    ontology: Ontology,
    progress: Callable[[int], None],
) -> Scores:
    """Judges every scored turn as if nobody had thought of the everyday words of its dialogue's domains: those for the
    values that their slots list are taken away. Returns the connectivities in the order of `judge`."""
    listed: dict[str, set[str]] = {}
    for service in ontology.services.values():
        values = listed.setdefault(domain_of(service.name), set())
        values.update(value.lower() for slot in service.slots.values() for value in slot.values)
    found: dict[str, list[float]] = {}
    for held_out in sorted(set(domains.values()), key=sorted):
        gone = set().union(*(listed.get(domain, set()) for domain in held_out))
        with without_everyday(gone):
            graph = SlotIntentGraph(ontology, _read_facts, relation, TODAY)
            for dialogue in every:
                if domains[dialogue.name] == held_out:
                    found[dialogue.name] = _scored(dialogue, connectivities(dialogue, graph, ontology))
                    progress(len(found))
    return np.array([value for dialogue in every for value in found[dialogue.name]])


def _scored(dialogue: Dialogue, connected: Sequence[float]) -> list[float]:
    judged = [step for step in dialogue.steps if step.turn.speaker == "user" and step.turn.tokens]
    return [one for step, one in zip(judged, connected, strict=True) if step.scored is not None]


@contextmanager
def without_everyday(values: Collection[str]) -> Iterator[None]:
    """Takes away what `consistency.everyday` knows of values, for a while."""
    known = dict(everyday.SAID)
    try:
        for value in values:
            everyday.SAID.pop(value, None)
        everyday.said_for.cache_clear()
        everyday.is_kept_in.cache_clear()
        yield
    finally:
        everyday.SAID.update(known)
        everyday.said_for.cache_clear()
        everyday.is_kept_in.cache_clear()


def claims(found: Sequence[Row]) -> list[Claim]:
    """Returns what the rows have to show."""
    ours = {str(row["what"]): row for row in found}
    graph, swapped = ours["slot-intent graph"], ours.get("ours, slot_misassigned")
    area, alarms = _number(graph, "AUC"), _number(graph, "FPR switch")
    made = [
        Claim("dialogues: AUC at least .99", area >= 0.99, area),
        Claim("dialogues: F1 at 0.6 at least .93", _number(graph, "F1") >= 0.93, graph["F1"]),
        Claim("dialogues: false alarms on legal switches at most 2 %", alarms <= 0.02, alarms),
    ]
    if swapped:
        area = _number(swapped, "AUC")
        made.append(Claim("dialogues: AUC of misassigned slots at least .96", area >= 0.96, area))
    costs = [_number(row, "ms p95") for what, row in ours.items() if what.startswith("cost")]
    if len(costs) > 1:
        made.append(
            Claim(
                "dialogues: cost of the last turns at most 1.5 times the first",
                costs[-1] <= 1.5 * costs[0],
                costs[-1],
            )
        )
    return made


def _number(row: Row, column: str) -> float:
    value = row[column]
    assert isinstance(value, int | float)
    return float(value)


def cost(every: Sequence[Dialogue], graph: SlotIntentGraph, ontology: Ontology, units: int) -> list[Row]:
    """Returns how long a verdict and its context take at the beginning and at the end of one long conversation made of
    all dialogues. Time of this thread's processor, so other load counts less."""
    context = Context()
    took: list[float] = []
    while len(took) < units:
        for step in (step for dialogue in every for step in dialogue.steps):
            begun = time.thread_time()
            if step.turn.speaker == "user" and step.turn.tokens:
                graph.judge(context, step.turn)
                context = context.after(step.turn, ontology)
                took.append(time.thread_time() - begun)
            else:
                context = context.after(step.turn, ontology)
    fifth = units // 5
    return [
        _cost_row(f"cost, first {fifth:,} units", took[:fifth]),
        _cost_row(f"cost, last {fifth:,} of {units:,}", took[units - fifth : units]),
    ]


def _cost_row(what: str, took: Sequence[float]) -> Row:
    p50, p95 = np.percentile(np.array(took) * 1_000, [50, 95])
    found: dict[str, Figure] = dict.fromkeys(COLUMNS)
    return found | {
        "what": what,
        "n": len(took),
        "ms p50": round(float(p50), 3),
        "ms p95": round(float(p95), 3),
    }


def judge(
    every: Sequence[Dialogue], graph: SlotIntentGraph, ontology: Ontology, progress: Callable[[int], None]
) -> Judged:
    """Judges every scored turn by each method."""
    plain = Reliability(ontology)
    turns: list[Scored] = []
    found: tuple[list[float], list[float], list[float]] = ([], [], [])
    for done, dialogue in enumerate(every, 1):
        ours = connectivities(dialogue, graph, ontology)
        methods = (ours, plain.of(dialogue), largest_component(dialogue))
        judged = [step for step in dialogue.steps if step.turn.speaker == "user" and step.turn.tokens]
        for index, step in enumerate(judged):
            if step.scored is not None:
                turns.append(step.scored)
                for column, method in zip(found, methods, strict=True):
                    column.append(method[index])
        progress(done)
    return Judged(tuple(turns), *(np.array(column) for column in found))


def connectivities(dialogue: Dialogue, graph: SlotIntentGraph, ontology: Ontology) -> list[float]:
    """Returns the connectivity of each user turn with tokens, rolling back as a session does."""
    context = Context()
    found = []
    for step in dialogue.steps:
        kept = step.turn
        if kept.speaker == "user" and kept.tokens:
            connectivity = graph.judge(context, kept).value
            found.append(connectivity)
            if connectivity < THRESHOLD:
                kept = replace(kept, tokens=())
        context = context.after(kept, ontology)
    return found


def table(judged: Judged, apart: Scores | None = None) -> list[Row]:
    """Returns the rows: methods over all turns, ours without what was known of the dialogue's own domain (`apart`),
    then ours by modality and by corruption."""
    wrong = np.array([turn.is_incoherent for turn in judged.turns])
    switch = np.array([turn.is_switch for turn in judged.turns])
    names = np.array([turn.dialogue for turn in judged.turns])
    everything = np.ones(len(wrong), bool)
    found = [
        _row("slot-intent graph", judged.ours, wrong, switch, names, everything),
        _row("reliabilities (V3w)", judged.reliability, wrong, switch, names, everything),
        _row("largest component (V1)", judged.component, wrong, switch, names, everything),
    ]
    if apart is not None:
        found.insert(1, _row("ours, own domain held out", apart, wrong, switch, names, everything))
    for modality in sorted({turn.modality for turn in judged.turns}):
        part = np.array([turn.modality == modality for turn in judged.turns])
        found.append(_row(f"ours, {modality}", judged.ours, wrong, switch, names, part))
    kinds = np.array([turn.kind for turn in judged.turns])
    for kind in sorted({turn.kind for turn in judged.turns} - {""}):
        part = ~wrong | (kinds == kind)
        found.append(_row(f"ours, {kind}", judged.ours, wrong, switch, names, part))
    return found


def _row(
    name: str, scores: Scores, wrong: NDArray[np.bool_], switch: NDArray[np.bool_], names: NDArray[np.str_],
    part: NDArray[np.bool_],
) -> Row:  # fmt: skip
    scores, wrong, switch, names = scores[part], wrong[part], switch[part], names[part]
    alarm = scores < THRESHOLD
    hits, alarms, every = int((alarm & wrong).sum()), int(alarm.sum()), int(wrong.sum())
    same = ~wrong & ~switch
    legal = ~wrong & switch
    low, high = bootstrap(scores, wrong, names)
    f_low, f_high = bootstrap(scores, wrong, names, f1)
    return {
        "what": name,
        "n": len(scores),
        "bad": every,
        "AUC": round(auc(scores, wrong), 4),
        "AUC 95 %": f"{low:.3f}-{high:.3f}",
        "P": round(hits / alarms, 4) if alarms else 0.0,
        "R": round(hits / every, 4) if every else 0.0,
        "F1": round(f1(scores, wrong), 4),
        "F1 95 %": f"{f_low:.3f}-{f_high:.3f}",
        "FPR same": round(float(alarm[same].mean()), 4) if same.any() else 0.0,
        "FPR switch": round(float(alarm[legal].mean()), 4) if legal.any() else 0.0,
        "legal": int(legal.sum()),
        "ms p50": None,
        "ms p95": None,
    }


def auc(scores: Scores, wrong: NDArray[np.bool_]) -> float:
    """Returns the chance that an incoherent turn has the lower connectivity of two (ties count half)."""
    bad, good = np.sort(scores[wrong]), np.sort(scores[~wrong])
    if not len(bad) or not len(good):
        return float("nan")
    above = len(good) - np.searchsorted(good, bad, "right")
    ties = np.searchsorted(good, bad, "right") - np.searchsorted(good, bad, "left")
    return float((above + ties / 2).mean() / len(good))


def f1(scores: Scores, wrong: NDArray[np.bool_]) -> float:
    """Returns F1 of the alarms at the threshold."""
    alarm = scores < THRESHOLD
    total = int(alarm.sum()) + int(wrong.sum())
    return 2 * int((alarm & wrong).sum()) / total if total else 0.0


def bootstrap(
    scores: Scores,
    wrong: NDArray[np.bool_],
    names: NDArray[np.str_],
    figure: Callable[[Scores, NDArray[np.bool_]], float] = auc,
) -> tuple[float, float]:
    """Returns the 95 % interval of a figure, drawing whole dialogues with replacement."""
    chance = np.random.default_rng(SEED)
    members = [np.flatnonzero(names == name) for name in np.unique(names)]
    drawn = []
    for _ in range(RESAMPLES):
        picked = np.concatenate([members[index] for index in chance.integers(0, len(members), len(members))])
        drawn.append(figure(scores[picked], wrong[picked]))
    known = [value for value in drawn if not np.isnan(value)]
    if not known:
        return float("nan"), float("nan")
    low, high = np.percentile(known, [2.5, 97.5])
    return float(low), float(high)
