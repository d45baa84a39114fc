"""What came of the commands: slots right, wrong and lost with the engine and without it, questions, and the delay."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from benchmarks.command_cases import Case
from benchmarks.command_talk import ARMS, Arm, Went, meant
from benchmarks.outcome import Claim, Row

ON: tuple[Arm, ...] = ("later", "ask")
DRAWS = 1_000


@dataclass(frozen=True, slots=True)
class Judged:
    """A command that was played in every arm."""

    case: Case
    went: Mapping[Arm, Went]

    def wrong(self, arm: Arm) -> int:
        """Slots that are committed with a value that was not meant, or not meant at all."""
        truth = meant(self.case.line)
        return sum(truth.get(slot) != value for slot, value in self.went[arm].slots.items())

    def right(self, arm: Arm) -> int:
        truth = meant(self.case.line)
        return sum(truth.get(slot) == value for slot, value in self.went[arm].slots.items())

    def lost(self, arm: Arm) -> int:
        """Slots that are right without the engine, and not with it when the conversation is over."""
        truth, plain, slots = meant(self.case.line), self.went["off"].slots, self.went[arm].slots
        return sum(plain.get(slot) == value != slots.get(slot) for slot, value in truth.items())

    def causes(self, arm: Arm) -> list[str]:
        """Returns why wrong slots are committed with the engine, and why right ones are lost, one for each."""
        line, truth = self.case.line, meant(self.case.line)
        slip, plain = meant(line.mistaken()), self.went["off"].slots
        found = []
        for slot, value in self.went[arm].slots.items():
            if truth.get(slot) == value:
                continue
            if line.way.endswith("slip") and slip.get(slot) == value:
                found.append("wrong: the slip of the hand stands")
            elif slot not in truth:
                found.append("wrong: a slot that was not meant")
            elif plain.get(slot) != value:
                found.append("wrong: by the engine")
            elif line.way == "spoken":
                found.append("wrong: misheard, and nothing else was said")
            elif line.way == "corrected":
                found.append("wrong: the correction was not taken")
            else:
                found.append("wrong: misheard, although it was written too")
        lost = [
            slot
            for slot, value in truth.items()
            if plain.get(slot) == value != self.went[arm].slots.get(slot)
        ]
        return found + [
            "lost: another value" if slot in self.went[arm].slots else "lost: no value" for slot in lost
        ]

    def delay_ms(self, arm: Arm) -> float | None:
        """How much later the first transcript is told than without the engine."""
        first, plain = self.went[arm].answered_s, self.went["off"].answered_s
        return None if first is None or plain is None else 1_000 * (first - plain)

    def as_plain(self) -> dict[str, object]:
        """Returns everything about it, for a file."""
        line, air = self.case.line, self.case.air
        return {
            "id": line.id, "half": line.half, "domain": self.case.domain, "way": line.way, "said": line.said,
            "slip": {line.slip[0]: line.slip[1].spoken}, "meant": meant(line), "speaker": air.speaker,
            "channel": air.channel, "snr_db": air.snr_db, "noise": air.noise,
            "arms": {
                arm: {
                    "slots": dict(one.slots), "heard": one.heard, "questions": one.questions,
                    "verdicts": [text[:400] for text in one.verdicts], "wrong": self.wrong(arm),
                    "lost": self.lost(arm), "causes": self.causes(arm), "delay_ms": self.delay_ms(arm),
                }
                for arm, one in self.went.items()
            },
        }  # fmt: skip


def rows(judged: Sequence[Judged]) -> list[Row]:
    """Returns the table: each half, and the held half by everything that differs."""
    found = []
    for half in ("tuned", "held"):
        spoken = [one for one in judged if one.case.line.half == half and one.case.domain != "coffee"]
        if spoken:
            found.append(row(f"{half}: all", spoken))
    held = [one for one in judged if one.case.line.half == "held" and one.case.domain != "coffee"]
    for name, key in _BY.items():
        values = sorted({key(one.case) for one in held})
        found += [
            row(f"{name}: {value}", [one for one in held if key(one.case) == value]) for value in values
        ]
    people = [one for one in judged if one.case.domain == "coffee"]
    if people:
        found.append(row("recordings of people: all", people))
        ways = sorted({one.case.line.way for one in people})
        found += [
            row(f"recordings: {way}", [one for one in people if one.case.line.way == way]) for way in ways
        ]
    return found


_BY: Mapping[str, Callable[[Case], str]] = {
    "way": lambda case: case.line.way,
    "domain": lambda case: case.domain,
    "SNR": lambda case: "clean" if case.air.snr_db is None else f"{case.air.snr_db:2} dB",
    "noise": lambda case: case.air.noise,
    "channel": lambda case: case.air.channel,
}


def row(name: str, judged: Sequence[Judged]) -> Row:
    """Returns the figures of some commands. Shares have 95 % intervals by resampling commands."""
    wrong = {arm: sum(one.wrong(arm) for one in judged) for arm in ARMS}
    right = sum(one.right("off") for one in judged)
    told: dict[str, str | int | float | None] = {
        "commands": name, "n": len(judged), "slots": sum(len(one.case.line.meant) for one in judged),
        "right, off": right, "right, ask": sum(one.right("ask") for one in judged), "wrong, off": wrong["off"],
    }  # fmt: skip
    for arm in ON:
        told[f"wrong, {arm}"] = wrong[arm]
        told[f"fewer, {arm}"] = fewer(judged, arm)
        told[f"fewer 95 %, {arm}"] = _interval(judged, partial(_mended, arm=arm))
        told[f"lost, {arm}"] = lost(judged, arm)
    told["lost 95 %, ask"] = _interval(judged, partial(_lost, arm="ask"))
    told["questions / 100"] = questions(judged)
    for arm in ON:
        for share in (50, 95):
            told[f"delay p{share} ms, {arm}"] = delay(judged, arm, share)
    return told


def fewer(judged: Sequence[Judged], arm: Arm) -> float | None:
    """Returns by what share fewer wrong slots are committed than without the engine; None where there were none."""
    return _share(judged, partial(_mended, arm=arm))


def lost(judged: Sequence[Judged], arm: Arm) -> float | None:
    """Returns which share of the slots that are right without the engine is lost by it."""
    return _share(judged, partial(_lost, arm=arm))


Share = Callable[[Judged], tuple[int, int]]


def _mended(one: Judged, arm: Arm) -> tuple[int, int]:
    return one.wrong("off") - one.wrong(arm), one.wrong("off")


def _lost(one: Judged, arm: Arm) -> tuple[int, int]:
    return one.lost(arm), one.right("off")


def _share(judged: Sequence[Judged], share: Share) -> float | None:
    parts = [share(one) for one in judged]
    whole = sum(of for _, of in parts)
    return sum(part for part, _ in parts) / whole if whole else None


def questions(judged: Iterable[Judged]) -> float:
    """Returns how many questions are put in a hundred turns, where the server has leave to ask."""
    went = [one.went["ask"] for one in judged]
    return 100 * sum(len(one.questions) for one in went) / max(1, sum(one.turns for one in went))


def delay(judged: Iterable[Judged], arm: Arm, share: int) -> float | None:
    """Returns a percentile of what the transcripts came later."""
    found = [late for one in judged if (late := one.delay_ms(arm)) is not None]
    return float(np.percentile(found, share)) if found else None


def causes(judged: Sequence[Judged]) -> list[Row]:
    """Returns how often each cause is behind what is wrong or lost, where the server has leave to ask."""
    halves = {half: Counter[str]() for half in ("tuned", "held")}
    for one in judged:
        if one.case.domain != "coffee":
            halves[one.case.line.half].update(one.causes("ask"))
    names = sorted(set().union(*halves.values()))
    return [{"cause": name, **{half: counts[name] for half, counts in halves.items()}} for name in names]


def claims(judged: Sequence[Judged]) -> list[Claim]:
    """Returns what the held half has to show."""
    held = [one for one in judged if one.case.line.half == "held" and one.case.domain != "coffee"]
    if not held:
        return []
    less, away, asked = fewer(held, "ask"), lost(held, "ask"), questions(held)
    return [
        Claim("held: wrong slots at least 60 % fewer", less is not None and less >= 0.6, less),
        Claim("held: right slots lost at most 2 %", away is not None and away <= 0.02, away),
        Claim("held: questions in 100 turns at most 10", asked <= 10, asked),
    ]


def _interval(judged: Sequence[Judged], share: Share) -> str:
    """Returns the 95 % interval of a share of sums; what shares a group is drawn together."""
    groups: dict[str, list[Judged]] = {}
    for one in judged:
        groups.setdefault(one.case.group, []).append(one)
    sums = np.array([np.sum([share(one) for one in members], axis=0) for members in groups.values()])
    drawn = np.random.default_rng(1).multinomial(len(sums), np.full(len(sums), 1 / len(sums)), DRAWS) @ sums
    found = drawn[drawn[:, 1] > 0]
    if len(sums) < 2 or not len(found):
        return "–"
    low, high = np.percentile(found[:, 0] / found[:, 1], [2.5, 97.5])
    return f"{low:.2f} to {high:.2f}"
