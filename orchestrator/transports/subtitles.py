"""What was recognised in a file as segments, and these as subtitles: SubRip (SRT) and WebVTT."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from orchestrator.scheduling.work import Transcribed, WordFound

LONGEST_S = 7.0
LONGEST_CHARACTERS = 84
"""Two lines of 42 characters, for as long as a subtitle may stand."""

PAUSE_S = 0.8
"""A pause that ends a segment."""

_ENDS = (".", "!", "?", "…", "。", "！", "？")


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch of a transcript; seconds from the file's beginning. `found` is what the recogniser said of the piece
    of sound that it comes from."""

    start_s: float
    stop_s: float
    text: str
    found: Transcribed


def segments_of(found: Transcribed, start_s: float, stop_s: float) -> list[Segment]:
    """Returns the segments of one piece of sound that lasts from `start_s` to `stop_s`: sentences, cut where they are
    long or where somebody paused. Without words it is one segment."""
    text = found.text.strip()
    if not text:
        return []
    if not found.words:
        return [Segment(start_s, stop_s, text, found)]
    segments = []
    for words, said in _split(text, found.words):
        if said:
            first = min(words[0].start_s + start_s, stop_s)
            last = min(words[-1].stop_s + start_s, stop_s)
            segments.append(Segment(first, max(first, last), said, found))
    return segments


def _split(text: str, words: Sequence[WordFound]) -> Iterable[tuple[list[WordFound], str]]:
    """Yields runs of words with the text that they stand in: all of the text, each part once."""
    run: list[WordFound] = []
    begin = at = 0
    for number, word in enumerate(words):
        place = text.find(word.text.strip(), at)
        starts = at if place < 0 else place
        ends = starts + (len(word.text.strip()) if place >= 0 else 0)
        if run and _is_full(run, word, ends - begin):
            yield run, text[begin:starts].strip()
            run, begin = [], starts
        run.append(word)
        at = ends
        following = words[number + 1].start_s if number + 1 < len(words) else None
        if following is not None and (_ends_sentence(text, at) or following - word.stop_s >= PAUSE_S):
            stop = _with_marks(text, at)
            yield run, text[begin:stop].strip()
            run, begin, at = [], stop, stop
    if run:
        yield run, text[begin:].strip()


def _is_full(run: Sequence[WordFound], word: WordFound, characters: int) -> bool:
    return characters > LONGEST_CHARACTERS or word.stop_s - run[0].start_s > LONGEST_S


def _with_marks(text: str, at: int) -> int:
    """Returns where the marks behind a word end."""
    while at < len(text) and not text[at].isalnum() and not text[at].isspace():
        at += 1
    return at


def _ends_sentence(text: str, at: int) -> bool:
    return text[: _with_marks(text, at)].rstrip("\"'”’)»").endswith(_ENDS)


def srt(segments: Iterable[Segment]) -> str:
    """Returns segments as SubRip."""
    return "".join(
        f"{number}\n{_times(one, ',')}\n{_line(one.text)}\n\n" for number, one in enumerate(segments, 1)
    )


def vtt(segments: Iterable[Segment]) -> str:
    """Returns segments as WebVTT."""
    return "WEBVTT\n\n" + "".join(f"{_times(one, '.')}\n{_escaped(_line(one.text))}\n\n" for one in segments)


def _times(segment: Segment, mark: str) -> str:
    """A subtitle that ends when it begins is none: players leave it out."""
    start_ms, stop_ms = round(segment.start_s * 1000), round(segment.stop_s * 1000)
    return f"{_clock(start_ms, mark)} --> {_clock(max(stop_ms, start_ms + 1), mark)}"


def _clock(ms: int, mark: str) -> str:
    return f"{ms // 3_600_000:02}:{ms // 60_000 % 60:02}:{ms // 1000 % 60:02}{mark}{ms % 1000:03}"


def _line(text: str) -> str:
    """An empty line would end a subtitle."""
    return " ".join(text.split())


def _escaped(text: str) -> str:
    """WebVTT has mark-up, and "-->" is never text."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
