"""What comes of something valid by a few changes: Hypothesis strategies that shrink to one change and less."""

import os
from typing import Any

from hypothesis import strategies as st

TIMES = 20 if os.environ.get("CHORALE_FUZZ_EXAMPLES") else 1
"""So many times as many examples where they are asked for (`make fuzz`)."""

ODD: tuple[Any, ...] = (
    *(None, True, -1, 0, 1.5, 10**25, 1e308, float("nan"), float("inf")),
    *("", "\ud800", "\0", "a\r\nb: c", "²", "..", "é" * 300, [], {}, [[]], {"type": 5}),
)
"""Values that sit badly where something else belongs."""

Edit = tuple[str, int, bytes]
_EDITS = st.lists(
    st.tuples(
        st.sampled_from(["set", "cut", "put", "again"]),
        st.integers(0, 100_000),
        st.binary(min_size=1, max_size=8),
    ),
    max_size=4,
)


def edited(data: bytes, edits: list[Edit]) -> bytes:
    """Returns `data` with bytes overwritten, cut out, put in or said twice, in turn."""
    changed = bytearray(data)
    for kind, place, piece in edits:
        at = place % (len(changed) + 1)
        match kind:
            case "set":
                changed[at : at + len(piece)] = piece
            case "cut":
                del changed[at : at + 3 * len(piece)]
            case "put":
                changed[at:at] = piece
            case _:
                changed[at:at] = changed[at : at + 5 * len(piece)]
    return bytes(changed)


def bytes_like(*valid: bytes) -> st.SearchStrategy[bytes]:
    """Bytes of which one of `valid` has become; now and then any bytes, or something cut short."""
    near = st.builds(edited, st.sampled_from(valid), _EDITS)
    short = st.builds(lambda data, at: data[: at % (len(data) + 1)], near, st.integers(0, 100_000))
    return near | short | st.binary(max_size=40)


def text_like(*valid: str) -> st.SearchStrategy[str]:
    """As `bytes_like`, of text: what is no UTF-8 any more is read as if it were."""
    return bytes_like(*(one.encode() for one in valid)).map(lambda data: data.decode(errors="replace"))


@st.composite
def values_like(draw: st.DrawFn, value: Any) -> Any:
    """A JSON value of which a part has been exchanged, left out, doubled, or buried."""
    goes_deeper: bool = draw(st.booleans())
    match value:
        case dict() if value and goes_deeper:
            name = draw(st.sampled_from(sorted(value)))
            changed = {**value, name: draw(values_like(value[name]))}
            match draw(st.integers(0, 9)):
                case 0:
                    del changed[name]
                case 1:
                    changed[name.upper()] = changed.pop(name)
                case 2:
                    changed["new"] = draw(st.sampled_from(ODD))
            return changed
        case list() if value and goes_deeper:
            at = draw(st.integers(0, len(value) - 1))
            return [*value[:at], draw(values_like(value[at])), *value[at : at + draw(st.integers(0, 3))]]
    return draw(st.sampled_from(ODD) | st.just(value) | st.just([[[value]]]))
