"""YAML in which a name that stands twice in one mapping is a fault; plain YAML would silently let the last one win."""

from collections.abc import Hashable

import yaml


class StandsTwice(yaml.constructor.ConstructorError):
    """A name stands twice in one mapping. `line`: where it does so again, from 1 on."""

    def __init__(self, name: str, mark: yaml.Mark) -> None:
        super().__init__(None, None, f"'{name}' stands twice", mark)
        self.name = name
        self.line = mark.line + 1


class StrictLoader(yaml.SafeLoader):
    """Reads what `yaml.safe_load` reads. Raises `StandsTwice`."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, object]:
        seen: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                continue  # a list or a mapping as a name is refused below
            if key.value in seen:
                raise StandsTwice(key.value, key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep=deep)
