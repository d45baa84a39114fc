"""The summation order of everything that consistency adds up, changed: for tests that show that it does not matter.

`python -m tests.recording.disorder SEED PATH…` replays recordings so, in a process of its own whose order of sets is
another one (PYTHONHASHSEED), and prints a JSON object a recording: how much was compared, and what was different.
"""

import builtins
import importlib
import json
import pkgutil
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any
from unittest.mock import patch

from numpy.typing import NDArray

import consistency
from consistency import fingerprint, whitening
from consistency.observation import VECTOR_DIMENSIONS, Observation

Integers = NDArray[Any]


class Disorder:
    """Sums in an order that a seed draws; `sums` and `vectors` count what was added up so."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self.sums = 0
        self.vectors = 0

    def sum(self, values: Iterable[Any], start: Any = 0) -> Any:
        """Is `sum` for modules that have it in its place."""
        self.sums += 1
        found = list(values)
        self._random.shuffle(found)
        return builtins.sum(found, start)

    def order(self, length: int) -> list[int]:
        """Draws an order of a vector's components."""
        self.vectors += 1
        order = list(range(length))
        self._random.shuffle(order)
        return order

    def cosine(self, one: Integers, other: Integers) -> float | None:
        """Is `whitening.cosine` of vectors whose components stand in another order."""
        if not len(one) or not len(other):
            return _cosine(one, other)
        order = self.order(len(one))
        return _cosine(one[order], other[order])

    def rotated(self, observation: Observation) -> Integers:
        """Is `fingerprint.rotated` with the components of all three blocks, and the rotation's columns, in another
        order."""
        text = self.order(VECTOR_DIMENSIONS)
        tokens = self.order(fingerprint.TOKENS)
        version, *blocks = _rotation()
        turned = (version, blocks[0][:, text], blocks[1], blocks[2][:, tokens])
        vector = observation.vector
        given = replace(observation, vector=vector[text]) if len(vector) else observation
        with (
            patch.object(fingerprint, "_rotation", lambda: turned),
            patch.object(fingerprint, "_hashed", lambda named: _hashed(reversed(list(named)))[tokens]),
        ):
            return _rotated(given)


_cosine = whitening.cosine
_rotated = fingerprint.rotated
_rotation = fingerprint._rotation
_hashed = fingerprint._hashed


def modules() -> Iterator[ModuleType]:
    """Yields the modules of `consistency`."""
    for one in pkgutil.iter_modules(consistency.__path__, "consistency."):
        yield importlib.import_module(one.name)


@contextmanager
def disorder(seed: int) -> Iterator[Disorder]:
    """Yields with all of consistency adding up in another order; what it has kept of results before is forgotten."""
    found = Disorder(seed)
    before: list[tuple[ModuleType, str, object]] = []
    for module in modules():
        for name, thing in list(vars(module).items()):
            if _keeps_results(thing):
                thing.cache_clear()
            if thing is _cosine and module is not whitening:
                before.append((module, name, thing))
                setattr(module, name, found.cosine)
            if thing is _rotated:
                before.append((module, name, thing))
                setattr(module, name, found.rotated)
        setattr(module, "sum", found.sum)  # noqa: B010  # a name that the module itself does not have
    try:
        yield found
    finally:
        for module in modules():
            delattr(module, "sum")
        for module, name, thing in before:
            setattr(module, name, thing)


def _keeps_results(thing: Any) -> bool:
    """Tables that are read once are kept without a bound; results are kept within one."""
    parameters = getattr(thing, "cache_parameters", None)
    return parameters is not None and parameters()["maxsize"] is not None


def main(seed: int, paths: list[str]) -> None:
    from orchestrator.recording.journal import load
    from orchestrator.recording.replay import replay
    from orchestrator.settings import load as load_settings
    from orchestrator.settings.parts import registry_settings

    with disorder(seed) as found:
        for path in paths:
            # A fresh graph for each: it keeps readings.
            replayed = replay(load(Path(path)), registry_settings(load_settings(None)).rules)
            told = {
                "name": Path(path).name,
                "steps": replayed.steps,
                "effects": replayed.effects,
                "differences": [str(one) for one in replayed.differences],
                "sums": found.sums,
                "vectors": found.vectors,
            }
            sys.stdout.write(json.dumps(told) + "\n")


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
