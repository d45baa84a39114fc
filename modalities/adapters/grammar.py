"""Finite languages as trees: printed as a grammar for llama.cpp, followed character by character, and completed.

A node describes a set of texts. `gbnf` prints it for a sampler that may then produce nothing else; `after` is what may
still follow once some text was produced (Brzozowski's derivative, https://doi.org/10.1145/321239.321249); `shortest`
ends a text that was cut. All three read the same tree, so that what was begun under the grammar always ends in it.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias, assert_never


@dataclass(frozen=True, slots=True)
class Text:
    """Exactly this text."""

    text: str


@dataclass(frozen=True, slots=True)
class Chars:
    """`low` to `high` characters out of inclusive `ranges` of code points, or outside them where `negated`."""

    ranges: tuple[tuple[int, int], ...]
    low: int = 1
    high: int = 1
    negated: bool = False

    def holds(self, character: str) -> bool:
        return any(first <= ord(character) <= last for first, last in self.ranges) != self.negated


@dataclass(frozen=True, slots=True, eq=False)
class Seq:
    """One part after the other."""

    parts: tuple["Node", ...]


@dataclass(frozen=True, slots=True, eq=False)
class Alt:
    """One of the choices; without choices, no text at all."""

    choices: tuple["Node", ...]


@dataclass(frozen=True, slots=True, eq=False)
class Repeat:
    """`low` to `high` times the part."""

    part: "Node"
    low: int
    high: int


Node: TypeAlias = Text | Chars | Seq | Alt | Repeat

EMPTY = Text("")
NOTHING = Alt(())
DIGITS = ((ord("0"), ord("9")),)


def seq(*parts: Node) -> Node:
    """Returns the parts in a row, in the simplest form."""
    if any(part is NOTHING for part in parts):
        return NOTHING
    flat: list[Node] = []
    for part in parts:
        for piece in part.parts if isinstance(part, Seq) else (part,):
            if isinstance(piece, Text) and flat and isinstance(flat[-1], Text):
                flat[-1] = Text(flat[-1].text + piece.text)
            elif not (isinstance(piece, Text) and not piece.text):
                flat.append(piece)
    return EMPTY if not flat else flat[0] if len(flat) == 1 else Seq(tuple(flat))


def alt(*choices: Node) -> Node:
    """Returns a choice, in the simplest form."""
    flat: list[Node] = []
    for choice in choices:
        flat.extend(choice.choices if isinstance(choice, Alt) else (choice,))
    return NOTHING if not flat else flat[0] if len(flat) == 1 else Alt(tuple(flat))


def repeat(part: Node, low: int, high: int) -> Node:
    """Returns `low` to `high` times the part, in the simplest form."""
    if high == 0:
        return EMPTY
    if part is NOTHING:
        return NOTHING if low else EMPTY
    return part if low == high == 1 else Repeat(part, low, high)


def optional(part: Node) -> Node:
    return repeat(part, 0, 1)


def may_end(node: Node) -> bool:
    """Returns whether the empty text belongs to the language."""
    match node:
        case Text():
            return not node.text
        case Chars():
            return node.low == 0
        case Seq():
            return all(may_end(part) for part in node.parts)
        case Alt():
            return any(may_end(choice) for choice in node.choices)
        case Repeat():
            return node.low == 0 or may_end(node.part)
        case _:
            assert_never(node)


def after(node: Node, text: str) -> Node:
    """Returns what may follow `text`; `NOTHING` where no text of the language begins like this."""
    for character in text:
        node = _after_one(node, character)
    return node


def _after_one(node: Node, character: str) -> Node:
    match node:
        case Text():
            return Text(node.text[1:]) if node.text.startswith(character) else NOTHING
        case Chars():
            if not node.high or not node.holds(character):
                return NOTHING
            return _characters(node, max(node.low - 1, 0), node.high - 1)
        case Seq():
            return _after_in_sequence(node, character)
        case Alt():
            left = (_after_one(choice, character) for choice in node.choices)
            return alt(*(choice for choice in left if choice is not NOTHING))
        case Repeat():
            rest = repeat(node.part, max(node.low - 1, 0), node.high - 1)
            return seq(_after_one(node.part, character), rest)
        case _:
            assert_never(node)


def _after_in_sequence(node: Seq, character: str) -> Node:
    choices: list[Node] = []
    for n, part in enumerate(node.parts):
        left = _after_one(part, character)
        if left is not NOTHING:
            choices.append(seq(left, *node.parts[n + 1 :]))
        if not may_end(part):
            break
    return alt(*choices)


def _characters(node: Chars, low: int, high: int) -> Node:
    return Chars(node.ranges, low, high, node.negated) if high else EMPTY


def shortest(node: Node) -> str | None:
    """Returns a shortest text of the language, the earliest choice among equals; None where there is none."""
    return _shortest(node, {})


def _shortest(node: Node, known: dict[int, str | None]) -> str | None:
    """`known` holds what was found for each object: branches are shared, and else gone through again and again."""
    if id(node) not in known:
        match node:
            case Text():
                known[id(node)] = node.text
            case Chars():
                known[id(node)] = _typical(node) * node.low
            case Seq():
                known[id(node)] = _joined(_shortest(part, known) for part in node.parts)
            case Alt():
                texts = [text for choice in node.choices if (text := _shortest(choice, known)) is not None]
                known[id(node)] = min(texts, key=len) if texts else None
            case Repeat():
                known[id(node)] = "" if node.low == 0 else _joined([_shortest(node.part, known)] * node.low)
            case _:
                assert_never(node)
    return known[id(node)]


def least_length(node: Node) -> float:
    """Returns the length of a shortest text, without writing it; infinite where there is none."""
    return _least_length(node, {})


def _least_length(node: Node, known: dict[int, float]) -> float:
    if id(node) not in known:
        match node:
            case Text():
                known[id(node)] = len(node.text)
            case Chars():
                known[id(node)] = node.low
            case Seq():
                known[id(node)] = sum(_least_length(part, known) for part in node.parts)
            case Alt():
                known[id(node)] = min(
                    (_least_length(choice, known) for choice in node.choices), default=math.inf
                )
            case Repeat():
                known[id(node)] = node.low * _least_length(node.part, known) if node.low else 0
            case _:
                assert_never(node)
    return known[id(node)]


def _joined(texts: Iterable[str | None]) -> str | None:
    pieces: list[str] = []
    for text in texts:
        if text is None:
            return None
        pieces.append(text)
    return "".join(pieces)


def _typical(node: Chars) -> str:
    if node.negated:
        return next(character for character in map(chr, range(ord("a"), 0x110000)) if node.holds(character))
    return next((wanted for wanted in "a0A" if node.holds(wanted)), chr(node.ranges[0][0]))


def gbnf(root: Node) -> str:
    """Returns the language as a grammar of llama.cpp (GBNF), with the start rule ``root``."""
    return _Printer().print(root)


class _Printer:
    """Gives every choice and repetition a rule of its own, once for every object: trees may share branches."""

    def __init__(self) -> None:
        self._names: dict[int, str] = {}
        self._rules: list[str] = []

    def print(self, root: Node) -> str:
        body = self._inline(root)
        return "\n".join([f"root ::= {body or _quoted('')}", *self._rules]) + "\n"

    def _inline(self, node: Node) -> str:
        match node:
            case Text():
                return _quoted(node.text)
            case Chars():
                return _class(node) + _bounds(node.low, node.high)
            case Seq():
                return " ".join(self._inline(part) for part in node.parts)
            case Alt() | Repeat():
                return self._rule(node)
            case _:
                assert_never(node)

    def _rule(self, node: Alt | Repeat) -> str:
        if id(node) not in self._names:
            self._names[id(node)] = name = f"r{len(self._names)}"
            match node:
                case Alt():
                    body = " | ".join(self._inline(choice) for choice in node.choices)
                case Repeat():
                    body = f"({self._inline(node.part)}){_bounds(node.low, node.high)}"
            self._rules.append(f"{name} ::= {body}")
        return self._names[id(node)]


def _bounds(low: int, high: int) -> str:
    return "" if low == high == 1 else f"{{{low},{high}}}"


def _quoted(text: str) -> str:
    return '"' + "".join(_escaped(character) for character in text) + '"'


def _class(node: Chars) -> str:
    ranges = "".join(
        _escaped(chr(first)) + ("" if first == last else "-" + _escaped(chr(last)))
        for first, last in node.ranges
    )
    return f"[{'^' if node.negated else ''}{ranges}]"


@lru_cache(maxsize=4096)
def _escaped(character: str) -> str:
    if (character.isascii() and character.isalnum()) or character in " ,:{}_./":
        return character
    code = ord(character)
    return f"\\x{code:02X}" if code < 0x100 else f"\\u{code:04X}" if code < 0x10000 else f"\\U{code:08X}"
