"""What is measured of two texts before they are judged: a fixed list of numbers, each zero where the texts agree.

Numbers are rounded to 1e-4, and sums are exact before (`math.fsum`), so that a model that compares them with thresholds
decides alike on every processor, in whatever order they were added.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum

from consistency import phonetics
from consistency.alignment import Step, align, opposites
from consistency.facts import conflicts
from consistency.observation import Fact, Observation
from consistency.related import is_word, siblings
from consistency.verdict import Evidence
from consistency.whitening import cosine
from consistency.wording import CARRIER, DAYS, HALVES, NUMBERS, Unit, Wording, wording

NAMES = (
    "meaning",  # 1 - whitened cosine
    "meaning_absent",  # 1 where texts differ and one has no vector
    "number", "half_day", "day", "fact_other",  # other values of one kind of fact
    "fact_lost_first", "fact_lost_second",  # facts that nothing answers to
    "conflicts",  # typed facts that contradict each other wherever they stand (`consistency.facts`)
    "negation",  # denied in one text only
    "polarity",  # words on opposite sides of an axis, wherever they stand
    "opposite",  # opposites at one place
    "opposite_across",  # opposites among the words that answer to nothing
    "lost_first", "lost_second",  # weight of words that answer to nothing
    "lost_share_first", "lost_share_second",
    "swapped",  # weight of content words with another word in their place
    "swapped_far",  # ... times how differently they sound
    "swapped_known",  # ... where both are words of the dictionary
    "siblings",  # ... where both are of one kind (lasagne, pizza)
    "heaviest",  # the heaviest place that differs
    "heaviest_sound",  # how differently it sounds
    "places",  # places that differ
    "synonyms", "kinds", "moved", "slips",  # weight of words answered by such
    "roles",  # words under another preposition, and exchanged ones
    "light",  # weight of grammar that differs
    "action",  # the first words of the request differ
    "sound",  # how differently all that differs sounds, the places joined
    "sound_share",  # the sounds that differ, against those of the whole text
    "answered",  # share of the smaller text's content that the other has
    "content",  # content of the shorter text
)  # fmt: skip
"""The features in the order of the model's columns."""

_CONFLICT = {
    **dict.fromkeys(NUMBERS, "number"),
    **dict.fromkeys(HALVES, "half_day"),
    **dict.fromkeys(DAYS, "day"),
}
_FACT_WEIGHT = {"half_day": 0.6}


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two observations side by side: `features` in the order of `NAMES`, `about` what they speak of."""

    features: tuple[float, ...]
    steps: tuple[Step, ...]
    about: dict[str, str]

    def __getitem__(self, name: str) -> float:
        return self.features[NAMES.index(name)]

    def evidence(self, name: str) -> Evidence:
        """Returns one feature as evidence."""
        return Evidence(name, self[name], self.about.get(name, ""))


@dataclass(frozen=True, slots=True)
class Place:
    """Neighbouring steps that are not equal."""

    steps: tuple[Step, ...]

    @property
    def ours(self) -> tuple[Unit, ...]:
        return tuple(unit for step in self.steps for unit in step.ours)

    @property
    def theirs(self) -> tuple[Unit, ...]:
        return tuple(unit for step in self.steps for unit in step.theirs)

    @property
    def weight(self) -> float:
        """The larger of both sides' weight, without what is only another form."""
        real = [step for step in self.steps if step.kind in {"other", "lost", "fact", "kind"}]
        return max(
            fsum(unit.weight for step in real for unit in step.ours),
            fsum(unit.weight for step in real for unit in step.theirs),
            max((step.weight for step in real), default=0.0),
        )

    @property
    def sound(self) -> float:
        return phonetics.distance(_said(self.ours), _said(self.theirs))

    def __str__(self) -> str:
        return f"{_said(self.ours) or '(nothing)'} against {_said(self.theirs) or '(nothing)'}"


def compare(one: Observation, other: Observation) -> Comparison:
    """Measures two observations against each other. Pure; costs under a millisecond for texts of a dozen words."""
    return measure(one, other, *ordered(one, other))


def ordered(one: Observation, other: Observation) -> tuple[Wording, Wording]:
    """Returns both texts' wording."""
    return wording(one), wording(other)


def measure(one: Observation, other: Observation, ours: Wording, theirs: Wording) -> Comparison:
    """Measures two texts whose wording is known."""
    steps = align(ours, theirs)
    values = dict.fromkeys(NAMES, 0.0)
    about: dict[str, str] = {}
    alike = cosine(one.vector, other.vector)
    values["meaning"] = 0.0 if alike is None else 1.0 - alike
    # The same words mean the same, with a vector or without.
    values["meaning_absent"] = float(
        alike is None and any(step.kind != "equal" and step.weight > 0.1 for step in steps)
    )
    _contradict(one, other, values, about)
    weights: dict[str, list[float]] = {}
    for step in steps:
        _count(step, weights, about)
    for name, terms in weights.items():
        values[name] += fsum(terms)
    _across(steps, values, about)
    values["roles"] = _roles(steps, about)
    places = _places(steps)
    heavy = [place for place in places if place.weight >= CARRIER]
    values["places"] = float(len(heavy))
    if heavy:
        heaviest = max(heavy, key=lambda place: place.weight)
        values["heaviest"], values["heaviest_sound"] = heaviest.weight, heaviest.sound
        about["heaviest"] = about["heaviest_sound"] = str(heaviest)
        left = " ".join(_said(place.ours) for place in heavy)
        right = " ".join(_said(place.theirs) for place in heavy)
        values["sound"] = phonetics.distance(left, right)
        about["sound"] = f"{left or '(nothing)'} against {right or '(nothing)'}"
        whole = max(len(phonetics.sounds(_said(ours.units))), len(phonetics.sounds(_said(theirs.units))), 1)
        part = max(len(phonetics.sounds(left)), len(phonetics.sounds(right)))
        values["sound_share"] = values["sound"] * min(1.0, part / whole)
    first, second = ours.content, theirs.content
    values["lost_share_first"] = values["lost_first"] / max(first, 1.0)
    values["lost_share_second"] = values["lost_second"] / max(second, 1.0)
    matched = fsum(
        step.weight for step in steps if step.kind in {"equal", "form", "slip", "moved", "synonym"}
    )
    values["answered"] = 1.0 - min(1.0, matched / max(min(first, second), 0.3))
    values["content"] = min(first, second, 12.0)
    values["action"] = _action(steps, about)
    return Comparison(tuple(round(values[name], 4) for name in NAMES), steps, about)


def _contradict(
    one: Observation, other: Observation, values: dict[str, float], about: dict[str, str]
) -> None:
    """Counts the contradictions among the facts of the whole texts."""
    for ours, theirs in conflicts(one.facts, other.facts):
        known = ours or theirs
        name = {"negation": "negation", "polarity": "polarity"}.get(known.kind if known else "", "conflicts")
        values[name] += 1.0
        about.setdefault(name, f"{_shown(ours)} against {_shown(theirs)}")


def _shown(fact: Fact | None) -> str:
    return f"{fact.kind} {fact.value}" if fact is not None else "nothing"


def _said(units: Sequence[Unit]) -> str:
    return " ".join(unit.text for unit in units)


def _count(step: Step, weights: dict[str, list[float]], about: dict[str, str]) -> None:
    def note(name: str, weight: float, text: str = "") -> None:
        weights.setdefault(name, []).append(weight)
        if name not in about:
            about[name] = (
                text or f"{_said(step.ours) or '(nothing)'} against {_said(step.theirs) or '(nothing)'}"
            )

    match step.kind:
        case "fact":
            kind = step.opposed.partition(" ")[0]
            note(_CONFLICT.get(kind, "fact_other"), 1.0, step.opposed)
        case "lost":
            side = "first" if step.ours else "second"
            for unit in (*step.ours, *step.theirs):
                if unit.facts:
                    note(
                        f"fact_lost_{side}",
                        max(_FACT_WEIGHT.get(fact.kind, 1.0) for fact in unit.facts),
                        unit.text,
                    )
                if unit.weight < CARRIER:
                    note("light", unit.weight)
                else:
                    note(f"lost_{side}", unit.weight)
        case "other":
            if step.opposed:
                note("opposite", 1.0, f"{_said(step.ours)} against {_said(step.theirs)}")
            one, two = step.ours[0], step.theirs[0]
            lighter = min(one.weight, two.weight)
            if lighter < CARRIER:
                # A word of grammar in the place of a content word: the content word is as good as lost.
                for unit, side in ((one, "first"), (two, "second")):
                    note(f"lost_{side}" if unit.weight >= CARRIER else "light", unit.weight)
            else:
                note("swapped", lighter)
                note("swapped_far", lighter * step.sound)
                if not one.facts and not two.facts:
                    note("swapped_known", lighter * float(is_word(one.text) and is_word(two.text)))
                    note("siblings", lighter * float(siblings(one.text, two.text)))
            for unit, side in ((one, "first"), (two, "second")):
                if unit.facts:
                    note(
                        f"fact_lost_{side}",
                        max(_FACT_WEIGHT.get(fact.kind, 1.0) for fact in unit.facts),
                        unit.text,
                    )
        case "synonym":
            note("synonyms", step.weight)
        case "kind":
            note("kinds", step.weight)
        case "moved":
            if not _is_exchanged(*step.ours, *step.theirs):
                note("moved", step.weight)
        case "slip":
            note("slips", step.weight)
        case "form" | "equal":
            if any(unit.facts for unit in step.ours) and step.sound >= 0.3:
                note("fact_lost_first" if not _has_half(step.theirs) else "fact_lost_second", 0.6)


def _has_half(units: Sequence[Unit]) -> bool:
    return any(fact.kind == "half_day" for unit in units for fact in unit.facts)


def _across(steps: Sequence[Step], values: dict[str, float], about: dict[str, str]) -> None:
    """Looks for opposites among words that answer to nothing."""
    ours = [
        unit for step in steps if step.kind in {"lost", "other"} and not step.opposed for unit in step.ours
    ]
    theirs = [
        unit for step in steps if step.kind in {"lost", "other"} and not step.opposed for unit in step.theirs
    ]
    for one in ours:
        for other in theirs:
            axis = opposites(one, other)
            if axis:
                values["opposite_across"] += 1.0
                about.setdefault("opposite_across", f"{one.text} against {other.text}")


_EXCHANGED = frozenset({"from", "to", "before", "after", "with", "without", "since", "until"})


def _roles(steps: Sequence[Step], about: dict[str, str]) -> float:
    """Counts words that both texts have under prepositions that mean different things."""
    kinds = {"equal", "moved", "form", "slip"}
    pairs = [
        pair for step in steps if step.kind in kinds for pair in zip(step.ours, step.theirs, strict=False)
    ]
    exchanged = [(one, other) for one, other in pairs if _is_exchanged(one, other)]
    if exchanged:
        one, other = exchanged[0]
        about["roles"] = f"{one.role} {one.text} against {other.role} {other.text}"
    return float(len(exchanged))


def _is_exchanged(one: Unit, other: Unit) -> bool:
    """Whether a word stands under "from" in one text and under "to" in the other, or the like."""
    apart = one.role != other.role and one.role in _EXCHANGED and other.role in _EXCHANGED
    return apart and (one.is_content or bool(one.facts))


def _places(steps: Sequence[Step]) -> list[Place]:
    places: list[Place] = []
    run: list[Step] = []
    for step in (*steps, None):
        if step is not None and step.kind not in {"equal", "moved", "synonym"}:
            run.append(step)
        elif run:
            places.append(Place(tuple(run)))
            run = []
    return places


def _action(steps: Sequence[Step], about: dict[str, str]) -> float:
    """Tells whether the first weighty words of both texts answer to each other: 0 they do, 1 they are others."""
    first = next((step for step in steps if step.weight >= CARRIER), None)
    if first is None or first.kind in {"equal", "form", "slip", "synonym", "moved"}:
        return 0.0
    about["action"] = f"{_said(first.ours) or '(nothing)'} against {_said(first.theirs) or '(nothing)'}"
    return {"kind": 0.5, "lost": 0.7}.get(first.kind, 1.0) * min(1.0, first.weight)
