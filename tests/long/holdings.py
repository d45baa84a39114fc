"""What an object holds: the sizes of all containers below it, by the attributes that lead there."""

from collections import Counter, deque
from collections.abc import Iterator, Mapping
from typing import Any

OURS = ("orchestrator.", "modalities.")


def sizes(root: object, without: frozenset[str] = frozenset()) -> Counter[str]:
    """Returns elements in dicts, lists, sets and deques and bytes in buffers, summed by ``Class.attribute``.

    Looks into objects of this project, once each; attributes named in `without` are passed over.
    """
    found: Counter[str] = Counter()
    seen: set[int] = set()
    waiting: list[tuple[str, object]] = [("", root)]
    while waiting:
        name, thing = waiting.pop()
        if isinstance(thing, str | bytes | bytearray | memoryview | int | float | None) or id(thing) in seen:
            found[name] += len(thing) if isinstance(thing, bytes | bytearray) else 0
            continue
        seen.add(id(thing))
        if isinstance(thing, Mapping):
            found[name] += len(thing)
            waiting += [(name, value) for value in thing.values()]
        elif isinstance(thing, list | tuple | set | frozenset | deque):
            found[name] += len(thing)
            waiting += [(name, value) for value in thing]
        elif type(thing).__module__.startswith(OURS):
            waiting += [
                (path, value)
                for attribute, value in _attributes(thing)
                if (path := f"{type(thing).__name__}.{attribute}") not in without
            ]
    return found


def _attributes(thing: Any) -> Iterator[tuple[str, object]]:
    yield from getattr(thing, "__dict__", {}).items()
    for kind in type(thing).__mro__:
        slots = getattr(kind, "__slots__", ())
        for slot in (slots,) if isinstance(slots, str) else slots:
            if hasattr(thing, slot):
                yield slot, getattr(thing, slot)
