"""Cuts an ONNX model at one of its tensors into two models that are run one after the other.

Only what a cut needs of ONNX's protobuf form is read (``onnx.proto``: `ModelProto`, `GraphProto`, `NodeProto`); all
else is copied as it stands. What both halves need (constants) goes into both.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

_GRAPH = 7  # field of ModelProto
_NODE, _INITIALIZER, _INPUT, _OUTPUT, _VALUE_INFO = 1, 5, 11, 12, 13  # fields of GraphProto
_NODE_INPUT, _NODE_OUTPUT = 1, 2  # fields of NodeProto
_TENSOR_NAME = 8  # field of TensorProto
_VALUE_NAME, _VALUE_TYPE = 1, 2  # fields of ValueInfoProto
_VARINT, _LENGTH = 0, 2
_FIXED = {1: 8, 5: 4}
_FLOAT32 = 1


class CannotCut(ValueError):
    """The bytes are no ONNX model, or the tensor does not part its graph in two."""


@dataclass(frozen=True, slots=True)
class _Node:
    raw: bytes
    inputs: frozenset[str]
    outputs: tuple[str, ...]


def cut(model: bytes, inside: Callable[[str], bool]) -> tuple[bytes, bytes, str]:
    """Returns the model before and the model behind the one float tensor of rank 3 that goes into the nodes whose
    outputs are `inside`, and that tensor's name. The second half has it as its only input and the model's own output.

    Raises `CannotCut` where none or several tensors go in, or where the second half needs more than it.
    """
    try:
        fields = [(number, raw, value) for number, raw, value in _fields(memoryview(model))]
        graph = next(value for number, _, value in fields if number == _GRAPH)
        parts = [(number, raw, value) for number, raw, value in _fields(graph)]
        nodes = [_node(raw, value) for number, raw, value in parts if number == _NODE]
        tensors = {
            _name(value, _TENSOR_NAME): bytes(raw) for number, raw, value in parts if number == _INITIALIZER
        }
        outputs = {_name(value, _VALUE_NAME): bytes(raw) for number, raw, value in parts if number == _OUTPUT}
        inputs = {_name(value, _VALUE_NAME): bytes(raw) for number, raw, value in parts if number == _INPUT}
    except (IndexError, StopIteration, UnicodeDecodeError) as fault:
        raise CannotCut("this is no ONNX model") from fault
    border = _border(nodes, tensors, inside)
    first, _ = _needed(nodes, [border], frozenset())
    second, free = _needed(nodes, outputs, frozenset({border}))
    if free & inputs.keys():
        raise CannotCut(f"behind {border} the graph still needs {', '.join(sorted(free & inputs.keys()))}")
    rest = b"".join(bytes(raw) for number, raw, _ in fields if number != _GRAPH)
    others = [
        bytes(raw) for number, raw, _ in parts if number not in (_NODE, _INITIALIZER, _INPUT, _OUTPUT, _VALUE_INFO)
    ]  # fmt: skip
    declared = _value(border)

    def model_of(kept: list[_Node], given: Iterable[bytes], made: Iterable[bytes]) -> bytes:
        used = {name for node in kept for name in node.inputs}
        pieces = [
            *(node.raw for node in kept), *others,
            *(raw for name, raw in tensors.items() if name in used), *given, *made,
        ]  # fmt: skip
        return rest + _message(_GRAPH, b"".join(pieces))

    before = model_of(first, inputs.values(), [_message(_OUTPUT, declared)])
    behind = model_of(second, [_message(_INPUT, declared)], outputs.values())
    return before, behind, border


def _border(nodes: list[_Node], tensors: Iterable[str], inside: Callable[[str], bool]) -> str:
    inner = [node for node in nodes if any(map(inside, node.outputs))]
    made = {name for node in inner for name in node.outputs}
    crossing = {name for node in inner for name in node.inputs} - made - set(tensors) - {""}
    if len(crossing) != 1:
        raise CannotCut(f"{len(crossing)} tensors go into that part, not one")
    return crossing.pop()


def _needed(
    nodes: list[_Node], wanted: Iterable[str], known: frozenset[str]
) -> tuple[list[_Node], frozenset[str]]:
    """Returns the nodes, in their order, that make `wanted` of `known`, and the names that no node makes."""
    maker = {name: index for index, node in enumerate(nodes) for name in node.outputs}
    open_names, seen, kept = list(wanted), set(known), set[int]()
    while open_names:
        name = open_names.pop()
        if name in seen:
            continue
        seen.add(name)
        if name in maker:
            kept.add(maker[name])
            open_names += nodes[maker[name]].inputs
    return [nodes[index] for index in sorted(kept)], frozenset(seen - set(maker))


def _node(raw: memoryview, value: memoryview) -> _Node:
    names: dict[int, list[str]] = {_NODE_INPUT: [], _NODE_OUTPUT: []}
    for number, _, piece in _fields(value):
        if number in names:
            names[number].append(bytes(piece).decode())
    return _Node(bytes(raw), frozenset(names[_NODE_INPUT]), tuple(names[_NODE_OUTPUT]))


def _name(value: memoryview, field: int) -> str:
    return next((bytes(piece).decode() for number, _, piece in _fields(value) if number == field), "")


def _value(name: str) -> bytes:
    """Returns a `ValueInfoProto`: a float tensor of three dimensions of any size."""
    dimensions = b"".join(_message(1, b"") for _ in range(3))
    tensor = bytes([1 << 3 | _VARINT, _FLOAT32]) + _message(2, dimensions)
    return _message(_VALUE_NAME, name.encode()) + _message(_VALUE_TYPE, _message(1, tensor))


def _message(field: int, content: bytes) -> bytes:
    return _varint(field << 3 | _LENGTH) + _varint(len(content)) + content


def _varint(number: int) -> bytes:
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes([*found, number])


def _fields(message: memoryview) -> Iterator[tuple[int, memoryview, memoryview]]:
    """Yields number, whole bytes and content of each field of a protobuf message. Raises `IndexError`, `CannotCut`."""
    at = 0
    while at < len(message):
        start = at
        key, at = _read_varint(message, at)
        wire = key & 7
        if wire == _VARINT:
            content = at
            _, at = _read_varint(message, at)
        else:
            length = _FIXED.get(wire)
            if wire == _LENGTH:
                length, at = _read_varint(message, at)
            if length is None or at + length > len(message):
                raise CannotCut("this is no ONNX model")
            content, at = at, at + length
        yield key >> 3, message[start:at], message[content:at]


def _read_varint(message: memoryview, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = message[at]
        at += 1
        number |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return number, at
