"""Regular expressions of a JSON Schema (``pattern``, ``format``) as languages inside a JSON string."""

import json
from collections.abc import Iterable
from re import _constants as kinds  # type: ignore[attr-defined]  # the parser of `re` has no public name
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

from modalities.adapters.grammar import Chars, Node, Text, alt, least_length, repeat, seq

_OCTET = "(1[0-9]{2}|[1-9]?[0-9])"

FORMATS = {
    "date": r"20[0-9]{2}-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])",
    "time": r"([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]Z",
    "date-time": r"20[0-9]{2}-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]Z",
    "duration": r"PT[1-9][0-9]?[HMS]",
    "email": r"[a-z][a-z0-9.]{0,20}[a-z0-9]@[a-z][a-z0-9]{1,20}\.(com|org|net|edu)",
    "hostname": r"[a-z][a-z0-9]{1,20}\.(com|org|net|edu)",
    "ipv4": rf"{_OCTET}(\.{_OCTET}){{3}}",
    "uri": r"https://[a-z][a-z0-9]{1,20}\.(com|org|net)(/[a-z0-9-]{1,20}){0,3}",
    "uuid": r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}",
}
"""What is produced for a format: a part of what the format allows, and only such."""

_LONGEST_PATTERN = 1_000
_LONGEST_LEAST = 2_000
"""A text of more characters is nothing that a model should write; and a pattern can ask for any number of them."""

_MORE = 12
"""How many repetitions beyond the least an open one (``*``, ``+``) gets."""
_WIDE = 4_096
_DIGIT = ((ord("0"), ord("9")),)
_LETTERS = ((ord("A"), ord("Z")), (ord("a"), ord("z")))
_CATEGORIES = {
    kinds.CATEGORY_DIGIT: _DIGIT,
    kinds.CATEGORY_WORD: (*_DIGIT, *_LETTERS, (ord("_"), ord("_"))),
    kinds.CATEGORY_SPACE: ((ord(" "), ord(" ")),),
}
_PRINTABLE = ((0x20, 0x21), (0x23, 0x5B), (0x5D, 0x7E))
"""ASCII that stands in a JSON string as it is: neither quote nor backslash."""


def pattern_language(pattern: str) -> Node | None:
    """Returns texts that match `pattern`, encoded for a JSON string without its quotes.

    A pattern without anchors matches where it is found, so the match alone is the text. None for what is no regular
    language or no pattern at all, or asks for very much: look-around, back references, anchors in the middle, faults.
    """
    if len(pattern) > _LONGEST_PATTERN:
        return None
    try:
        language = _sequence(parser.parse(pattern), first=True, last=True)
    except (parser.error, _Unsupported, OverflowError, RecursionError):
        return None
    return language if least_length(language) <= _LONGEST_LEAST else None


class _Unsupported(Exception):
    pass


def _sequence(
    items: Any, first: bool = False, last: bool = False
) -> Node:  # the parser's trees carry no types
    """`first` and `last` say that the text begins, or ends, with this: only there an anchor holds."""
    end = len(items) - 1
    return seq(
        *(_item(kind, value, first and n == 0, last and n == end) for n, (kind, value) in enumerate(items))
    )


def _item(kind: Any, value: Any, first: bool, last: bool) -> Node:
    if kind is kinds.LITERAL:
        return Text(json.dumps(chr(value), ensure_ascii=False)[1:-1])
    if kind is kinds.ANY:
        return Chars(_PRINTABLE)
    if kind in (kinds.IN, kinds.NOT_LITERAL):
        return _one_of([(kinds.NEGATE, None), (kinds.LITERAL, value)] if kind is kinds.NOT_LITERAL else value)
    if kind is kinds.SUBPATTERN:
        return _sequence(value[3], first, last)
    if kind is kinds.BRANCH:
        return alt(*(_sequence(branch, first, last) for branch in value[1]))
    if kind in (kinds.MAX_REPEAT, kinds.MIN_REPEAT, kinds.POSSESSIVE_REPEAT):
        low, high, items = value
        part = _sequence(items)
        return _repeated(part, low, low + _MORE if high is kinds.MAXREPEAT else high)
    if kind is kinds.AT and ((value is kinds.AT_BEGINNING and first) or (value is kinds.AT_END and last)):
        return Text("")
    raise _Unsupported


def _repeated(part: Node, low: int, high: int) -> Node:
    if isinstance(part, Chars) and part.low == part.high == 1:
        return Chars(part.ranges, low, high, part.negated) if high else Text("")
    return repeat(part, low, high)


def _one_of(members: Any) -> Node:
    negated = bool(members) and members[0][0] is kinds.NEGATE
    codes: set[int] = set()
    for kind, value in members[negated:]:
        if kind is kinds.LITERAL:
            codes.add(value)
        elif kind is kinds.RANGE:
            # Of a wide range its printable ASCII is enough, or else its beginning: what may be written is a part only.
            codes.update(_part_of(range(value[0], value[1] + 1)))
        elif kind is kinds.CATEGORY and value in _CATEGORIES:
            codes.update(code for first, last in _CATEGORIES[value] for code in range(first, last + 1))
        else:
            raise _Unsupported
    plain = {code for first, last in _PRINTABLE for code in range(first, last + 1)}
    allowed = plain - codes if negated else {code for code in codes if code in plain or code > 0x9F}
    if not allowed:
        raise _Unsupported
    return Chars(_ranges(sorted(allowed)))


def _part_of(codes: range) -> Iterable[int]:
    if len(codes) <= _WIDE:
        return codes
    printable = [code for first, last in _PRINTABLE for code in range(first, last + 1) if code in codes]
    return printable or codes[:_WIDE]


def _ranges(codes: list[int]) -> tuple[tuple[int, int], ...]:
    ranges: list[tuple[int, int]] = []
    for code in codes:
        if ranges and ranges[-1][1] == code - 1:
            ranges[-1] = (ranges[-1][0], code)
        else:
            ranges.append((code, code))
    return tuple(ranges)
