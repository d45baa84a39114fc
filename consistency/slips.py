"""Slips of the fingers: one typed form of a word for another (Damerau 1964)."""

SHORTEST = 4
"""Shorter words are other words as soon as a letter differs."""
_SHORTEST_REPLACED = 6
"""In shorter words another letter makes another word ("John", "Joan"); a slip leaves out, doubles or swaps letters."""


def is_slip(one: str, other: str) -> bool:
    """Whether one letter too many, two swapped, or in long words another letter, make one form of the other. Whether
    either is a word of the language is for the caller to say."""
    short, long = sorted((one, other), key=len)
    if one == other or len(short) < SHORTEST or len(long) - len(short) > 1:
        return False
    start = 0
    while start < len(short) and short[start] == long[start]:
        start += 1
    stop = 0
    while stop < len(short) - start and short[-1 - stop] == long[-1 - stop]:
        stop += 1
    left, right = short[start : len(short) - stop], long[start : len(long) - stop]
    if not left:
        return len(right) == 1
    if len(left) == len(right) == 2 and left == right[::-1]:
        return True
    return len(left) == len(right) == 1 and len(short) >= _SHORTEST_REPLACED
