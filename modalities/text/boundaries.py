"""Where one sentence ends and the next begins, decided from a few characters around a full stop."""

TERMINATORS = frozenset(".!?…")
WIDE_TERMINATORS = frozenset("。！？")
"""Full stops of scripts that put no space behind them."""

CLAUSE_MARKS = frozenset(",;:—–")
CLAUSE_WORDS = frozenset(
    {
        "and",
        "but",
        "or",
        "because",
        "which",
        "who",
        "where",
        "when",
        "while",
        "although",
        "so",
        "if",
        "unless",
        "until",
    }
)
"""English words before which a speaker may breathe. "that" is not among them: it stands inside of clauses too often."""

CLOSERS = "\"')]}”’»*_`"
_OPENERS = "\"'([{“‘«*_`"

_NEVER_FINAL = frozenset(
    {
        "mr",
        "mrs",
        "ms",
        "dr",
        "prof",
        "gen",
        "sen",
        "rep",
        "lt",
        "col",
        "capt",
        "sgt",
        "rev",
        "hon",
        "st",
        "mt",
    }
    | {"vs", "e.g", "i.e", "cf", "viz", "approx", "fig", "eq", "vol", "incl", "esp", "dept", "est"}
)
"""Abbreviations that a further word belongs to."""

_BEFORE_NUMBER = frozenset(
    {"no", "nr", "p", "pp", "sec", "ch", "art"}
    | {"jan", "feb", "mar", "apr", "jun", "jul", "aug", "sep", "sept", "oct", "nov", "dec"}
)
"""Abbreviations if a number follows; else words or names at a sentence's end."""


def ends_sentence(body: str, following: str) -> bool:
    """Whether a sentence ends with `body` (no white space at its end) when the next word begins with `following`.

    English rules; other languages that end sentences with these marks mostly agree with them.
    """
    bare = body.rstrip(CLOSERS)
    if not bare or bare[-1] not in TERMINATORS or following.islower():
        return False
    if bare[-1] != "." or bare.endswith(".."):
        return True
    words = bare.rsplit(maxsplit=2)
    word = words[-1].lstrip(_OPENERS)[:-1]
    if word.isdigit() and len(words) == 1:
        return False
    lower = word.lower()
    if lower in _NEVER_FINAL or (lower in _BEFORE_NUMBER and following.isdigit()):
        return False
    if len(word) == 1 and word.isupper():
        return word == "I" and len(words) > 1 and words[-2][:1].islower()
    return "." not in word or lower in {"a.m", "p.m"} or not _dotted_letters(word)


def _dotted_letters(word: str) -> bool:
    """Whether a word is letters with stops between them (U.S, Ph.D)."""
    return all(len(letters) <= 2 and letters.isalpha() for letters in word.split("."))
