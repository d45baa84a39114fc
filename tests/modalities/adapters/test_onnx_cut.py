"""A model cut in two does what it did whole."""

from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from modalities.adapters.onnx import load_network
from modalities.adapters.onnx_cut import CannotCut, cut


def field(number: int, content: bytes | str | int) -> bytes:
    """Returns one protobuf field."""
    if isinstance(content, int):
        return bytes([number << 3, content])
    content = content.encode() if isinstance(content, str) else content
    assert len(content) < 1 << 14
    size = (
        bytes([len(content)]) if len(content) < 128 else bytes([len(content) & 127 | 128, len(content) >> 7])
    )
    return bytes([number << 3 | 2]) + size + content


def value(name: str) -> bytes:
    """Returns the description of a float tensor of three dimensions."""
    return field(1, name) + field(2, field(1, field(1, 1) + field(2, field(1, b"") * 3)))


def node(operation: str, inputs: Iterable[str], output: str) -> bytes:
    """Returns one operation."""
    return field(1, b"".join(field(1, name) for name in inputs) + field(2, output) + field(4, operation))


def model(*nodes: bytes, weight: float = 3.0) -> bytes:
    """Returns a model with input ``x``, a constant ``w`` and output ``y``."""
    constant = field(1, 1) + field(2, 1) + field(8, "w") + field(9, np.float32(weight).tobytes())
    graph = (
        b"".join(nodes) + field(2, "g") + field(5, constant) + field(11, value("x")) + field(12, value("y"))
    )
    return field(1, 8) + field(7, graph) + field(8, field(1, "") + field(2, 13))


WHOLE = model(node("Mul", "xw", "a"), node("Neg", "a", "/dec/b"), node("Add", ["/dec/b", "w"], "y"))


def is_dec(name: str) -> bool:
    """Tells what lies behind the cut."""
    return name.startswith("/dec/")


def test_cut_halves_run_after_each_other_as_the_whole_runs() -> None:
    """The constant that both halves use is in both, and the tensor between them is all that is handed over."""
    before, behind, border = cut(WHOLE, is_dec)
    x = np.arange(6, dtype=np.float32).reshape(1, 2, 3)
    (whole,) = load_network(WHOLE, 1).run(None, {"x": x})
    (between,) = load_network(before, 1).run(None, {"x": x})
    second = load_network(behind, 1)
    assert [given.name for given in second.get_inputs()] == [border] == ["a"]
    (result,) = second.run(None, {border: between})
    assert np.array_equal(whole, -3 * x + 3)
    assert np.array_equal(result, whole)


def test_cut_where_two_tensors_go_in_is_refused() -> None:
    """A voice of several speakers gives its decoder the speaker too."""
    two = model(
        node("Neg", "x", "a"),
        node("Mul", "xw", "b"),
        node("Add", "ab", "/dec/c"),
        node("Neg", ["/dec/c"], "y"),
    )
    with pytest.raises(CannotCut, match="2 tensors"):
        cut(two, is_dec)


def test_cut_where_the_end_needs_the_input_again_is_refused() -> None:
    """A way around the cut would need what is not handed over."""
    around = model(node("Neg", "x", "a"), node("Neg", "a", "/dec/b"), node("Add", ["/dec/b", "x"], "y"))
    with pytest.raises(CannotCut, match="x"):
        cut(around, is_dec)


@given(some.one_of(some.binary(max_size=64), some.integers(0, len(WHOLE) - 7).map(lambda size: WHOLE[:size])))
def test_cut_of_what_is_no_model_is_refused(content: bytes) -> None:
    """Files that are broken or something else end in the one error."""
    with pytest.raises(CannotCut):
        cut(content, is_dec)
