"""The layers of a configuration as plain trees: a YAML file, the environment, one laid over the other."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

from orchestrator.transports.strict_yaml import StrictLoader

Tree = dict[str, object]

PREFIX = "CHORALE_"
LEVEL = "__"


@dataclass(frozen=True, slots=True)
class Overlay:
    """What the environment says; `sources` names the variable behind each dotted key."""

    tree: Tree
    sources: Mapping[str, str]


def read_yaml(path: Path) -> tuple[Tree, list[str]]:
    """Returns the file's tree (empty where it cannot be read) and the faults that reading met."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        return {}, [f"{path}: cannot be read: {error.strerror}"]
    except UnicodeDecodeError:
        return {}, [f"{path}: expected UTF-8 text"]
    return parse_yaml(text, str(path))


def parse_yaml(text: str, name: str) -> tuple[Tree, list[str]]:
    """As `read_yaml`, for a text; `name` stands in the faults. A section left empty counts as left out."""
    try:
        tree = yaml.load(text, Loader=StrictLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        return {}, [f"{name}: {where}{error.problem or 'not YAML'}"]
    except yaml.YAMLError as error:
        return {}, [f"{name}: not YAML: {error}"]
    if tree is None:
        return {}, []
    if not isinstance(tree, dict):
        return {}, [f"{name}: expected a mapping of sections, got {type(tree).__name__}"]
    return {str(key): value for key, value in tree.items() if value is not None}, []


def read_environment(variables: Mapping[str, str]) -> Overlay:
    """Returns what ``CHORALE_SECTION__KEY`` variables say. Names without a second level are not settings (test data
    folders and the like) and are left alone."""
    tree: Tree = {}
    sources: dict[str, str] = {}
    for name in sorted(variables):
        if name.upper().startswith(PREFIX) and LEVEL in name[len(PREFIX) :]:
            steps = name[len(PREFIX) :].lower().split(LEVEL)
            _put(tree, steps, _value(variables[name]))
            sources[".".join(steps)] = name
    return Overlay(tree, sources)


def read_options(options: Mapping[str, object]) -> Overlay:
    """Returns what the command line says: dotted keys with values."""
    tree: Tree = {}
    for key, value in options.items():
        _put(tree, key.split("."), value)
    return Overlay(tree, {key: f"--{key.rsplit('.', 1)[-1]}" for key in options})


def stack_overlays(under: Overlay, over: Overlay) -> Overlay:
    """Returns both, `over` winning."""
    return Overlay(stack(under.tree, over.tree), {**under.sources, **over.sources})


def _put(tree: Tree, steps: list[str], value: object) -> None:
    node = tree
    for step in steps[:-1]:
        below = node.get(step)
        if not isinstance(below, dict):
            below = node[step] = {}
        node = below
    node[steps[-1]] = value


def _value(text: str) -> object:
    try:
        return yaml.safe_load(text) if text.strip() else ""
    except yaml.YAMLError:
        return text


def stack(under: Tree, over: Tree) -> Tree:
    """Returns `under` with `over` laid over it: mappings merge key by key, everything else is replaced."""
    result = dict(under)
    for key, value in over.items():
        below = result.get(key)
        if isinstance(below, dict) and isinstance(value, dict):
            result[key] = stack(below, value)
        else:
            result[key] = value
    return result
