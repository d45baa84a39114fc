"""What the clips of `chorale bench speech` prove: word error rates beside the bare recogniser's, and sensible ends."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median

from benchmarks.hearing import Heard
from benchmarks.outcome import Claim, Outcome, Row
from benchmarks.recordings import Recording
from benchmarks.scoring import Score, Totals, score, total

MOST_POINTS = 3.0
LEAST_ENDS_KEPT = 0.95
HEARD = {"reply", "words", "no words"}
"""What a client may be told of speech that is no plain English: errors and missing answers are not among it."""

NOT_HEARD = {"nothing", "no words"}
"""What a client may be told where nobody speaks."""


@dataclass(frozen=True, slots=True)
class Played:
    """One file, what its call made of it and whether the session lived on.

    `refused` says why a decoder refused the file; then its raw bytes were sent as if they were sound.
    """

    name: str
    category: str
    has_speech: bool
    heard: Heard
    alive: bool
    refused: str | None = None

    @property
    def sensible(self) -> bool:
        """The session lived, and the client was told what fits the file."""
        fitting = HEARD | NOT_HEARD if self.refused else HEARD if self.has_speech else NOT_HEARD
        return self.alive and self.heard.outcome in fitting


def judge_spoken(clips: list[tuple[Recording, str, Played]], outcome: Outcome) -> list[Row]:
    """Adds figures and claims about spoken clips (with their direct decodes) and returns the table's rows."""
    groups: defaultdict[str, list[Score]] = defaultdict(list)
    lost_ends: list[Row] = []
    for recording, direct, played in clips:
        one = score(recording.transcript, direct, played.heard.transcript)
        groups[recording.category].append(one)
        if not one.ends_kept:
            lost_ends.append({"clip": recording.name, "direct": direct, "path": played.heard.transcript})
    rows = [_row(category, total(scores)) for category, scores in groups.items()]
    every = total(one for scores in groups.values() for one in scores)
    rows.append(_row("all", every))
    replies = sum(played.heard.outcome == "reply" for _, _, played in clips)
    outcome.figures |= {
        "clips": every.clips,
        "wer_path_percent": every.path_percent,
        "wer_direct_percent": every.direct_percent,
        "replies": replies,
        "transcript_after_clip_s_p50": _median(played.heard.transcript_after_s for _, _, played in clips),
        "reply_after_clip_s_p50": _median(played.heard.reply_after_s for _, _, played in clips),
    }
    outcome.claims += [
        Claim(
            f"word error rate of the path is at most {MOST_POINTS:g} points above the direct decode",
            every.points <= MOST_POINTS,
            f"{every.path_percent} % against {every.direct_percent} %: {every.points:+} points",
        ),
        Claim(
            f"first and last words of the direct decode are kept in {LEAST_ENDS_KEPT:.0%} of the clips",
            every.ends_kept >= LEAST_ENDS_KEPT * every.clips,
            f"{every.ends_kept} of {every.clips}",
        ),
        Claim("every clip was answered", replies == every.clips, f"{replies} of {every.clips}"),
        Claim(
            "every session answers afterwards",
            all(played.alive for _, _, played in clips),
            f"{sum(played.alive for _, _, played in clips)} of {every.clips}",
        ),
    ]
    outcome.tables |= {
        "word error rates": rows,
        "end words lost": lost_ends,
        "spoken clips": [_detail(played, direct) for _, direct, played in clips],
    }
    return rows


def judge_odd(clips: list[Played], outcome: Outcome) -> list[Row]:
    """Adds the claim about odd files and returns a row for every kind of end in every category."""
    ends = Counter((played.category, _end(played)) for played in clips)
    rows: list[Row] = [
        {"category": category, "what the client was told": end, "files": count}
        for (category, end), count in sorted(ends.items())
    ]
    sensible = sum(played.sensible for played in clips)
    strange = [played.name for played in clips if not played.sensible]
    outcome.claims.append(
        Claim(
            "every odd file ends in an event that makes sense",
            not strange,
            f"{sensible} of {len(clips)}" + (f"; not {', '.join(strange[:5])}" if strange else ""),
        )
    )
    outcome.tables |= {"odd ends": rows, "odd files": [_detail(played, None) for played in clips]}
    return rows


def _row(name: str, totals: Totals) -> Row:
    return {
        "category": name,
        "clips": totals.clips,
        "words": totals.words,
        "path": totals.path_percent,
        "direct": totals.direct_percent,
        "points": totals.points,
        "end words kept": totals.ends_kept,
    }


def _detail(played: Played, direct: str | None) -> Row:
    heard = played.heard
    return {
        "clip": played.name,
        "end": _end(played),
        "direct": direct,
        "path": heard.transcript,
        "reply": heard.reply,
        "utterances": heard.utterances,
        "transcript_after_s": heard.transcript_after_s,
        "reply_after_s": heard.reply_after_s,
        "alive": played.alive,
    }


def _end(played: Played) -> str:
    return heard_as(played.heard.outcome, refused=played.refused is not None, alive=played.alive)


def heard_as(outcome: str, *, refused: bool, alive: bool) -> str:
    """Words an end for the table: undecodable files were pushed as raw bytes; a dead session says so."""
    return f"{'raw bytes: ' if refused else ''}{outcome}{'' if alive else ', then the session was dead'}"


def _median(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return round(median(known), 3) if known else None
