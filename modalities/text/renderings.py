"""A typed text in the spellings in which a recogniser would have written it, so that only the words are judged.

A recogniser that is asked how likely a text is judges its spelling too: "don't" against "do not", "$15" against
"fifteen dollars". So what both texts share keeps the recogniser's own form, politeness that nobody said leaves, and
what differs is written in the few ways there are: as typed, with capitals, its numbers in words and in digits.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from itertools import product

from text_to_num import alpha2digit

from modalities.text.normalize import normalize

MOST_RENDERINGS = 6
_TOKEN = re.compile(r"(\s*)((?<![^\W\d_])[ap]\.?\s?m\b\.?|\d[\d:.,]*(?=\s?[ap]\.?m\b)|\S+)", re.IGNORECASE)
_HALF_DAY = re.compile(r"[ap]\.?\s?m\.?", re.IGNORECASE)
_EDGES = " \t\n.,!?;:\"'()[]…"
_MANNERS = frozenset(
    {
        "please",
        "ok",
        "okay",
        "hey",
        "hi",
        "hello",
        "thanks",
        "thank",
        "you",
        "thx",
        "so",
        "well",
        "uh",
        "um",
        "alexa",
    }
)
_LONG_MANNERS = ("please", "thanks")
_OPENED = {
    "what's": "what is", "where's": "where is", "who's": "who is", "how's": "how is", "it's": "it is", "i'm": "i am",
    "that's": "that is", "there's": "there is", "don't": "do not", "doesn't": "does not", "didn't": "did not",
    "isn't": "is not", "can't": "can not", "cannot": "can not", "won't": "will not", "i'd": "i would",
    "i'll": "i will", "we'll": "we will", "let's": "let us", "you're": "you are", "we're": "we are", "i've": "i have",
}  # fmt: skip
_LITTLE = frozenset(
    {
        "a",
        "an",
        "the",
        "of",
        "to",
        "in",
        "on",
        "at",
        "for",
        "from",
        "with",
        "and",
        "or",
        "by",
        "as",
        "is",
        "it",
        "me",
        "my",
    }
    | {"do", "does", "not", "don't", "this", "that", "i", "you", "we"}
)
_MONEY = re.compile(r"\b(\d[\d,]*(?:\.\d+)?) dollars?\b", re.IGNORECASE)
_PERCENT = re.compile(r"\b(\d[\d,]*(?:\.\d+)?) per ?cent\b", re.IGNORECASE)
_FIGURE = re.compile(r"[$£€]?\d[\d,.:]*(?:st|nd|rd|th)?%?")
_SHORTEST_SLIP = 4


@dataclass(frozen=True, slots=True)
class _Token:
    space: str
    surface: str
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Piece:
    """A run of tokens: shared ones in the recogniser's form, or typed ones that stand in the place of others."""

    tokens: tuple[_Token, ...]
    shared: bool


def renderings(
    text: str, recognised: str, known: Callable[[str], bool] = lambda word: False
) -> tuple[str, ...]:
    """Returns at most `MOST_RENDERINGS` spellings of `text`, without repeats, the one nearest to what was typed first.

    `known` tells words from slips of the fingers: a word that is none, one letter away from the recognised one, is
    taken for it. Empty where nothing of the text can be said.
    """
    heard = _tokens(recognised)
    pieces = _pieces(_as_polite(_tokens(text), heard), heard, known)
    end = recognised.rstrip()[-1:] if recognised.rstrip()[-1:] in ".?!" else ""
    dotted = bool(re.search(r"\b[ap]\.m\.", recognised, re.IGNORECASE))
    found: dict[str, None] = {}
    # Spellings of figures come first: they differ more than capitals do.
    for capitals, figures in product((False, True), ("typed", "digits", "words")):
        said = "".join(_written(piece, figures, capitals, dotted) for piece in pieces).strip()
        said = said.rstrip(_EDGES) if not said.endswith((".m.", ".M.")) else said
        if said:
            said += "" if end and said.endswith(end) else end
            found.setdefault(said[0].upper() + said[1:] if recognised[:1].isupper() else said, None)
    return tuple(found)[:MOST_RENDERINGS]


def _tokens(text: str) -> list[_Token]:
    found = []
    for match in _TOKEN.finditer(text.replace("’", "'")):
        surface = match[2]
        core = surface.strip(_EDGES).lower()
        if _HALF_DAY.fullmatch(surface.strip(",?!;:")):
            words: tuple[str, ...] = (f"{core[0]}m",)
        else:
            words = tuple(normalize(_OPENED.get(core, core), keep_fillers=True))
        if words:
            found.append(_Token(" " if match[1] else "", surface, words))
    return found


def _as_polite(typed: list[_Token], heard: Sequence[_Token]) -> list[_Token]:
    """Makes both ends as polite as what was recognised: how politely something was typed says nothing of the sound."""
    start, stop = _request(typed)
    first, last = _request(heard)
    if start == stop or first == last:
        return typed
    return [*heard[:first], *typed[start:stop], *heard[last:]]


def _request(tokens: Sequence[_Token]) -> tuple[int, int]:
    """Returns where politeness at the start ends, and where that at the end begins."""
    start, stop = 0, len(tokens)
    while start < stop and all(map(_polite, tokens[start].words)):
        start += 1
    while stop > start and all(map(_polite, tokens[stop - 1].words)):
        stop -= 1
    return start, stop


def _polite(word: str) -> bool:
    return word in _MANNERS or (
        len(word) > _SHORTEST_SLIP and any(_one_letter_apart(word, one) for one in _LONG_MANNERS)
    )


def _pieces(typed: Sequence[_Token], heard: Sequence[_Token], known: Callable[[str], bool]) -> list[_Piece]:
    """Cuts the typed text into what it shares with the recognised one and what it does not."""
    ours = [(word, at) for at, token in enumerate(typed) for word in token.words]
    theirs = [(word, at) for at, token in enumerate(heard) for word in token.words]
    answered = _answers([word for word, _ in ours], [word for word, _ in theirs], known)
    links = [(ours[i][1], theirs[j][1]) for i, j in answered]
    bad_ours = {at for i, (_, at) in enumerate(ours) if i not in {i for i, _ in answered}}
    bad_theirs = {at for j, (_, at) in enumerate(theirs) if j not in {j for _, j in answered}}
    while True:  # a token is shared only where all of it is
        more_ours = {one for one, other in links if other in bad_theirs} - bad_ours
        more_theirs = {other for one, other in links if one in bad_ours} - bad_theirs
        if not more_ours and not more_theirs:
            break
        bad_ours |= more_ours
        bad_theirs |= more_theirs
    pieces: list[_Piece] = []
    done: set[int] = set()
    for at, token in enumerate(typed):
        if at in bad_ours:
            if pieces and not pieces[-1].shared:
                pieces[-1] = _Piece((*pieces[-1].tokens, token), False)
            else:
                pieces.append(_Piece((token,), False))
            continue
        places = sorted({other for one, other in links if one == at} - done)
        done.update(places)
        if places:
            shared = [heard[place] for place in places]
            if pieces and places[0] == 0 and typed[at].surface[0].islower():
                shared[0] = replace(shared[0], surface=shared[0].surface[0].lower() + shared[0].surface[1:])
            pieces.append(_Piece(tuple(shared), True))
    return pieces


def _answers(ours: list[str], theirs: list[str], known: Callable[[str], bool]) -> list[tuple[int, int]]:
    """Pairs words that are the same, and slips of the fingers with the words they stand for."""
    pairs: list[tuple[int, int]] = []
    for what, i1, i2, j1, j2 in SequenceMatcher(None, ours, theirs, autojunk=False).get_opcodes():
        if what == "equal":
            pairs += zip(range(i1, i2), range(j1, j2), strict=True)
        elif what == "replace":
            free = list(range(j1, j2))
            for i in range(i1, i2):
                meant = next((j for j in free if _slip(ours[i], theirs[j], known)), None)
                if meant is not None:
                    pairs.append((i, meant))
                    free = [j for j in free if j > meant]
    return pairs


def _slip(typed: str, heard: str, known: Callable[[str], bool]) -> bool:
    return (
        min(len(typed), len(heard)) >= _SHORTEST_SLIP
        and known(heard)
        and not known(typed)
        and _one_letter_apart(typed, heard)
    )


def _one_letter_apart(one: str, other: str) -> bool:
    """Whether one letter too many, too few, another, or two swapped make one out of the other."""
    start = 0
    while start < min(len(one), len(other)) and one[start] == other[start]:
        start += 1
    stop = 0
    while stop < min(len(one), len(other)) - start and one[-1 - stop] == other[-1 - stop]:
        stop += 1
    left, right = one[start : len(one) - stop], other[start : len(other) - stop]
    return max(len(left), len(right)) <= 1 or (len(left) == len(right) == 2 and left == right[::-1])


def _written(piece: _Piece, figures: str, capitals: bool, dotted: bool) -> str:
    if piece.shared:
        return "".join(
            (token.space or (" " if n == 0 else "")) + token.surface for n, token in enumerate(piece.tokens)
        )
    words = []
    for token in piece.tokens:
        core = token.surface.strip(_EDGES)
        if _HALF_DAY.fullmatch(token.surface.strip(",?!;:")):
            words.append(f"{core[0].lower()}.m." if dotted else f"{core[0].lower()}m")
        elif capitals and core.islower() and core not in _LITTLE:
            words.append(core.capitalize())
        else:
            words.append(core)
    said = " ".join(words)
    if figures == "words":
        said = _FIGURE.sub(lambda found: " ".join(normalize(found[0])) or found[0], said)
    elif figures == "digits":
        counted = alpha2digit(said, "en")
        said = counted if any(letter.isdigit() for letter in counted) else said
        said = _PERCENT.sub(r"\1%", _MONEY.sub(r"$\1", said))
    return " " + said
