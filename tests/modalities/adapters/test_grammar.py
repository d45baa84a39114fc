"""Finite languages: what is printed, followed and ended is the same set of texts."""

import math
import random

from hypothesis import given
from hypothesis import strategies as st

from modalities.adapters.grammar import (
    EMPTY,
    NOTHING,
    Chars,
    Node,
    Text,
    after,
    alt,
    gbnf,
    least_length,
    may_end,
    optional,
    repeat,
    seq,
    shortest,
)
from tests.modalities.adapters.json_schemas import drawn

LEAVES = st.one_of(
    st.text("ab", max_size=3).map(Text),
    st.builds(lambda low, more: Chars(((97, 98),), low, low + more), st.integers(0, 2), st.integers(0, 2)),
)
NODES: st.SearchStrategy[Node] = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda parts: seq(*parts)),
        st.lists(inner, min_size=1, max_size=3).map(lambda choices: alt(*choices)),
        st.builds(
            lambda part, low, more: repeat(part, low, low + more), inner, st.integers(0, 2), st.integers(0, 2)
        ),
    ),
    max_leaves=6,
)


@given(NODES, st.integers())
def test_after_follows_every_text_of_the_language(node: Node, chance: int) -> None:
    """Any text of the language may end where it ends, and each of its beginnings has an end."""
    text = drawn(node, random.Random(chance))
    assert may_end(after(node, text))
    for cut in range(len(text)):
        rest = shortest(after(node, text[:cut]))
        assert rest is not None
        assert may_end(after(node, text[:cut] + rest))


@given(NODES, st.integers())
def test_shortest_is_of_the_language_and_no_longer_than_any(node: Node, chance: int) -> None:
    """The shortest text belongs to the language; a drawn one is not shorter."""
    least = shortest(node)
    assert least is not None
    assert may_end(after(node, least))
    assert len(least) <= len(drawn(node, random.Random(chance)))


def test_after_a_text_that_no_member_begins_with_is_nothing() -> None:
    """What cannot be continued is told apart from what is complete."""
    node = seq(Text("ab"), optional(Text("c")))
    assert after(node, "b") is NOTHING
    assert after(node, "abd") is NOTHING
    assert may_end(after(node, "ab"))
    assert shortest(NOTHING) is None
    assert shortest(EMPTY) == ""


def test_gbnf_is_the_grammar_of_the_language() -> None:
    """Literals are escaped, classes and bounds are written as llama.cpp reads them, shared branches stand once."""
    shared = alt(Text("x"), Text('"é'))
    node = seq(Text("a]"), shared, Chars(((0, 31), (34, 34)), 0, 5, negated=True), optional(shared))
    assert gbnf(node).splitlines() == [
        'root ::= "a\\x5D" r0 [^\\x00-\\x1F\\x22]{0,5} r1',
        'r0 ::= "x" | "\\x22\\xE9"',
        "r1 ::= (r0){0,1}",
    ]
    assert gbnf(EMPTY) == 'root ::= ""\n'


@given(NODES)
def test_least_length_is_that_of_the_shortest(node: Node) -> None:
    """It is told without writing the text, which may be of any size."""
    text = shortest(node)
    assert least_length(node) == (math.inf if text is None else len(text))


def test_least_length_of_what_nobody_could_write_is_told_at_once() -> None:
    """Repetitions multiply."""
    node: Node = Text("a")
    for _ in range(5):
        node = repeat(node, 1_000, 1_000)
    assert least_length(node) == 10**15


def test_shared_branches_are_gone_through_once() -> None:
    """A row of optional parts has twice as many ways with each of them: none of the readers goes all of them."""
    rest: Node = Text("")
    for number in range(60):
        rest = alt(seq(Text(f"{number},"), rest), seq(Text(f"{number};"), rest))
    assert least_length(rest) == len(shortest(rest) or "") == 170
