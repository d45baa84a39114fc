"""Where a field stands in a YAML text, so that whoever wrote it finds the line. Pure."""

import re
from collections.abc import Iterator

import yaml

Step = str | int
"""A name of a mapping, or a place in a list, from 0."""

_STEP = re.compile(r"\.(\w+)|\[(\d+)\]")


def steps_of(path: str) -> tuple[Step, ...]:
    """Returns the steps of a path as msgspec tells it (``$.inputs[0].at``), up to the first that it does not name."""
    found: list[Step] = []
    rest = path.removeprefix("$")
    while match := _STEP.match(rest):
        name, number = match.groups()
        found.append(int(number) if name is None else name)
        rest = rest[match.end() :]
    return tuple(found)


def named(steps: tuple[Step, ...]) -> str:
    """Returns steps as people read them: ``inputs[1].at``, where list places count from 1."""
    text = "".join(f"[{one + 1}]" if isinstance(one, int) else f".{one}" for one in steps)
    return text.removeprefix(".")


def line_of(text: str, steps: tuple[Step, ...]) -> int:
    """Returns the line, from 1, of the field that the steps lead to, or of the last of them that is there."""
    node = yaml.compose(text, Loader=yaml.SafeLoader)
    if node is None:
        return 1
    line: int = node.start_mark.line
    for step in steps:
        below = _below(node, step)
        if below is None:
            break
        line, node = below
    return line + 1


def _below(node: yaml.Node, step: Step) -> tuple[int, yaml.Node] | None:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.value == str(step):
                return key.start_mark.line, value
    elif isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        value = node.value[step]
        return value.start_mark.line, value
    return None


def doubles(text: str) -> Iterator[tuple[int, str]]:
    """Yields line and name of every field that its mapping has had before: YAML keeps the last one in silence."""
    node = yaml.compose(text, Loader=yaml.SafeLoader)
    waiting, seen = [] if node is None else [node], set()
    while waiting:
        node = waiting.pop()
        if id(node) in seen:  # an alias
            continue
        seen.add(id(node))
        if isinstance(node, yaml.MappingNode):
            names: set[str] = set()
            for key, value in node.value:
                name = str(key.value)
                if name in names:
                    yield key.start_mark.line + 1, name
                names.add(name)
                waiting.append(value)
        elif isinstance(node, yaml.SequenceNode):
            waiting += node.value
