"""The text of a key file with an entry more, an entry less, or no key in clear: what people wrote beside it stays.

Each change is read again before it is handed out: what does not hold exactly the entries that were meant is refused.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import yaml

from orchestrator.errors import ConfigError
from orchestrator.transports.auth import digest_of
from orchestrator.transports.key_file import parse_keys

HEADING = """\
# Who may come in (docs/operations.md). Written by `chorale keys`; what you write beside it stays.

keys:
"""


def with_entry(text: str, entry: Mapping[str, object], path: Path) -> str:
    """Returns the text with `entry` behind all others; "" is a file that is to be made. Raises `ConfigError`."""
    shown = yaml.safe_dump(dict(entry), sort_keys=False, allow_unicode=True).splitlines()
    if not text.strip():
        before: list[dict[str, object]] = []
        column, lines = 2, HEADING.splitlines()
        at = len(lines)
    else:
        before, items, column = _entries(text, path)
        lines = text.splitlines()
        at = _last_line(items[-1]) + 1
    indent = " " * column
    lines[at:at] = [indent + ("- " if number == 0 else "  ") + line for number, line in enumerate(shown)]
    return _checked("\n".join(lines) + "\n", [*before, dict(entry)], path)


def without_entry(text: str, key_id: str, path: Path) -> str:
    """Returns the text without the key of this id. Raises `ConfigError` where there is none, or no other."""
    ring = parse_keys(text, path)
    found = [number for number, key in enumerate(ring.keys) if key.id == key_id]
    if not found:
        raise ConfigError(f"{path}: there is no key {key_id}; `chorale keys list` shows those that are there")
    if len(ring) == 1:
        raise ConfigError(f"{path}: {key_id} is the last key, and a server needs one; make another first")
    before, items, column = _entries(text, path)
    lines = text.splitlines()
    first = items[found[0]].start_mark.line
    while first and lines[first][column : column + 1] != "-":
        first -= 1
    del lines[first : _last_line(items[found[0]]) + 1]
    del before[found[0]]
    return _checked("\n".join(lines) + "\n", before, path)


def without_clear_keys(text: str, path: Path) -> str:
    """Returns the text with the hash of each key in its place. Raises `ConfigError`."""
    parse_keys(text, path)
    before, items, _ = _entries(text, path)
    wanted: list[object] = []
    for entry, item in reversed(list(zip(before, items, strict=True))):
        clear = entry.get("key")
        if clear is None or not isinstance(item, yaml.MappingNode):
            wanted.insert(0, entry)
            continue
        digest = digest_of(str(clear)).hex()
        wanted.insert(
            0, {("sha256" if k == "key" else k): (digest if k == "key" else v) for k, v in entry.items()}
        )
        for name, value in item.value:
            if name.value == "key":
                text = text[: value.start_mark.index] + f'"{digest}"' + text[value.end_mark.index :]
                text = text[: name.start_mark.index] + "sha256" + text[name.end_mark.index :]
    return _checked(text, wanted, path)


def _entries(text: str, path: Path) -> tuple[list[dict[str, object]], Sequence[yaml.Node], int]:
    """Returns the entries, where each stands, and the column of their dashes. Raises `ConfigError`."""
    parse_keys(text, path)
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    assert isinstance(root, yaml.MappingNode), "it was parsed"
    listed = next(value for name, value in root.value if name.value == "keys")
    if not isinstance(listed, yaml.SequenceNode) or listed.flow_style:
        raise ConfigError(f"{path}: cannot be edited: write one entry under another, each behind a dash")
    return list(yaml.safe_load(text)["keys"]), listed.value, listed.start_mark.column


def _last_line(node: yaml.Node) -> int:
    """Returns the line on which the last word of a node stands; its own end lies behind the comments that follow."""
    if isinstance(node, yaml.MappingNode) and not node.flow_style and node.value:
        return _last_line(node.value[-1][1])
    if isinstance(node, yaml.SequenceNode) and not node.flow_style and node.value:
        return _last_line(node.value[-1])
    return node.end_mark.line


def _checked(text: str, wanted: Sequence[object], path: Path) -> str:
    parse_keys(text, path)
    if yaml.safe_load(text)["keys"] != list(wanted):
        raise ConfigError(f"{path}: is written in a way that cannot be edited; change it by hand")
    return text
