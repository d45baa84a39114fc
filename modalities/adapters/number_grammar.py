"""Numbers between two bounds, as JSON writes them, without an exponent and without leading zeros."""

import math
from decimal import Decimal

from modalities.adapters.grammar import DIGITS, EMPTY, NOTHING, Chars, Node, Text, alt, optional, seq

_FAR = 999_999
"""How far a number may lie from its one bound, or from zero without any."""
_DECIMALS = 2
_LISTED = 64
"""How many multiples, or values between two close bounds, are listed one by one."""


def integers(low: int | None, high: int | None, step: int = 1) -> Node:
    """Returns the multiples of `step` from `low` to `high`, both included; `NOTHING` where there are none."""
    low, high = _bounded(low, high)
    if step > 1:
        first, last = -(-low // step), high // step
        if last - first >= _LISTED:  # near zero where that is inside, else from the nearer bound on
            first = max(first, min(0, last - _LISTED + 1))
        return alt(*(Text(str(n * step)) for n in range(first, min(last, first + _LISTED - 1) + 1)))
    choices: list[Node] = []
    if high >= 0 and low <= high:
        choices.append(_naturals(max(low, 0), high))
    if low < 0 and low <= high:
        choices.append(seq(Text("-"), _naturals(max(1, -high), -low)))
    return alt(*choices)


def numbers(low: Decimal | None, high: Decimal | None, open_low: bool, open_high: bool) -> Node:
    """Returns numbers between the bounds, with up to two decimals (more where the bounds are that close).

    `open_low` and `open_high` say that the bound itself does not belong to them.
    """
    if low is not None and high is not None and high - low < 2:
        return _listed(low, high, open_low, open_high)
    least = None if low is None else math.floor(low) + 1 if open_low else math.ceil(low)
    most = None if high is None else math.ceil(high) - 1 if open_high else math.floor(high)
    least, most = _bounded(least, most)
    decimals = optional(seq(Text("."), Chars(DIGITS, 1, _DECIMALS)))
    # 7.25 lies above 7 and needs room up to 8; -7.25 lies below -7 and needs room down to -8.
    top = most if high is None else math.floor(high) - 1
    bottom = least if low is None else math.ceil(low) + 1
    return alt(
        integers(least, most),
        seq(integers(max(least, 0), top), decimals) if top >= max(least, 0) else NOTHING,
        seq(integers(bottom, min(most, -1)), decimals) if bottom <= min(most, -1) else NOTHING,
    )


def multiples(step: Decimal, low: Decimal | None, high: Decimal | None) -> Node:
    """Returns some multiples of `step` between the bounds, listed, from the one nearest to zero on."""
    start = max(low or Decimal(0), Decimal(0)) if high is None or high >= 0 else high
    first = math.ceil(start / step) if start >= 0 else math.floor(start / step)
    way = 1 if start >= 0 else -1
    found = [step * (first + way * n) for n in range(_LISTED)]
    inside = [value for value in found if (low is None or value >= low) and (high is None or value <= high)]
    return alt(*(Text(_written(value)) for value in inside))


def _listed(low: Decimal, high: Decimal, open_low: bool, open_high: bool) -> Node:
    for decimals in range(12):
        unit = Decimal(1).scaleb(-decimals)
        first, last = math.ceil(low / unit), math.floor(high / unit)
        values = [unit * n for n in range(first, min(last, first + _LISTED) + 1)]
        inside = [v for v in values if (v > low or not open_low) and (v < high or not open_high)]
        if len(inside) > 2 or (inside and low == high):
            return alt(*(Text(_written(value)) for value in inside))
    return NOTHING


def _bounded(low: int | None, high: int | None) -> tuple[int, int]:
    if low is None:
        low = -_FAR if high is None else min(high - _FAR, -_FAR)
    if high is None:
        high = max(low + _FAR, _FAR)
    return low, high


def _naturals(low: int, high: int) -> Node:
    """From `low` to `high`, both included, 0 <= low <= high: one choice for every length and leading digit."""
    choices: list[Node] = []
    for length in range(len(str(low)), len(str(high)) + 1):
        least = max(low, 10 ** (length - 1) if length > 1 else 0)
        most = min(high, 10**length - 1)
        choices.append(_same_length(str(least), str(most)))
    return alt(*choices)


def _same_length(low: str, high: str) -> Node:
    if not low:
        return EMPTY
    rest = len(low) - 1
    if low[0] == high[0]:
        return seq(Text(low[0]), _same_length(low[1:], high[1:]))
    choices: list[Node] = []
    first, last = int(low[0]), int(high[0])
    if low[1:] != "0" * rest:
        choices.append(seq(Text(low[0]), _same_length(low[1:], "9" * rest)))
        first += 1
    ends_early = high[1:] != "9" * rest
    if first <= last - ends_early:
        leading = Chars(((ord("0") + first, ord("0") + last - ends_early),))
        choices.append(seq(leading, Chars(DIGITS, rest, rest)) if rest else leading)
    if ends_early:
        choices.append(seq(Text(high[0]), _same_length("0" * rest, high[1:])))
    return alt(*choices)


def _written(value: Decimal) -> str:
    text = format(value, "f")
    return text.rstrip("0").rstrip(".") or "0" if "." in text else text
