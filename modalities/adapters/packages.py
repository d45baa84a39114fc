"""Files that installed packages carry, found without importing those packages (some import torch)."""

from importlib.util import find_spec
from pathlib import Path


def package_folder(package: str) -> Path | None:
    """Returns the folder of an installed top-level package, None where it is not installed."""
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(next(iter(spec.submodule_search_locations)))


def package_file(package: str, inside: str) -> Path | None:
    """Returns the file or folder `inside` (``data/model.onnx``) of an installed package, None if missing."""
    folder = package_folder(package)
    if folder is None:
        return None
    found = folder / inside
    return found if found.exists() else None
