"""From what a configuration says to files on this machine.

In this order: a path; an installed model package; the hub's cache; the hub, where downloads are allowed. A model that
is none of these is one error that names the command which installs it. Nothing here loads an engine.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from modalities.adapters.packages import package_file
from orchestrator.errors import ConfigError, ModelMissing
from orchestrator.models.catalogue import CATALOGUE, INSTALL, Model, by_name, default_of
from orchestrator.models.whisper_base import joined_folder

Source = Literal["path", "package", "hub cache", "hub", "endpoint", "none"]

REMOTE = ("openai_compatible",)
"""Engines whose model is a name at an endpoint."""

_PATTERNS: dict[str, list[str]] = {
    "faster_whisper": [
        "config.json",
        "preprocessor_config.json",
        "model.bin",
        "tokenizer.json",
        "vocabulary.*",
    ],
    "llama_cpp": ["*.gguf"],
}

Fetch = Callable[[str, list[str] | None, bool], str | None]
"""(hub name, file patterns, only from the cache) -> folder, None where it is not there."""


@dataclass(frozen=True, slots=True)
class Resolved:
    """A model that is here: `options` for its engine, where it came from, its licence where that is known."""

    engine: str
    name: str
    source: Source
    options: dict[str, str]
    licence: str = "see its own page"


def resolve(
    role: str,
    engine: str,
    wanted: str | None = None,
    *,
    allow_download: bool = False,
    fetch: Fetch | None = None,
) -> Resolved:
    """Returns the model that `wanted` names for an engine; None and ``default`` are the engine's own.

    Raises `ModelMissing` with the command that installs it, and `ConfigError` for a path that is not there and a name
    that no command would bring. Never waits for a hub unless `allow_download` says so.
    """
    engine = engine.replace("-", "_")
    if engine in REMOTE:
        return Resolved(engine, wanted or "", "endpoint", {"model": wanted} if wanted else {})
    default = default_of(engine)
    if wanted in (None, "", "default"):
        if default is None:
            return Resolved(engine, "built in", "none", {})
        return _installed(role, default)
    assert wanted is not None
    if _is_path(wanted):
        return _at(role, engine, Path(wanted).expanduser())
    known = by_name(engine, wanted.removeprefix("package:"))
    if known is not None:
        return _installed(role, known)
    if wanted.count("/") == 1:
        return _from_hub(role, engine, wanted, allow_download, fetch or _hub)
    names = [model.name for model in _of(engine)]
    raise ConfigError(
        f"workers.{role}.model: there is no model {wanted!r}; known here: {', '.join(names) or 'none'}, a path, "
        "or owner/name on the hub. `chorale models` tells about them"
    )


def _of(engine: str) -> list[Model]:
    return [model for model in CATALOGUE if model.engine == engine]


def _is_path(wanted: str) -> bool:
    return wanted.startswith(("/", "./", "../", "~")) or (wanted.count("/") != 1 and Path(wanted).exists())


def _at(role: str, engine: str, path: Path) -> Resolved:
    if not path.exists():
        raise ConfigError(f"workers.{role}.model: there is nothing at {path}")
    if engine == "llama_cpp" and path.is_dir():
        return Resolved(engine, path.name, "path", {"path": str(_one_gguf(role, path, "*.gguf"))})
    return Resolved(engine, path.name, "path", {"path": str(path)})


def _installed(role: str, model: Model) -> Resolved:
    if model.name == "whisper-base":
        folder = joined_folder()
        if folder is None:
            raise ModelMissing(role, f"{model.name} (package {model.package})", model.install)
        return Resolved(model.engine, model.name, "package", {"path": str(folder)}, model.licence)
    options: dict[str, str] = {}
    for option, place in model.files.items():
        package, _, inside = place.partition("/")
        found = package_file(package, inside)
        if found is None:
            raise ModelMissing(role, f"{model.name} (package {package.replace('_', '-')})", model.install)
        options[option] = str(found)
    return Resolved(model.engine, model.name, "package", options, model.licence)


def _from_hub(role: str, engine: str, wanted: str, allow_download: bool, fetch: Fetch) -> Resolved:
    repository, _, pattern = wanted.partition(":")
    patterns = [pattern] if pattern else _PATTERNS.get(engine)
    folder = fetch(repository, patterns, True)
    source: Source = "hub cache"
    if folder is None and allow_download:
        folder = fetch(repository, patterns, False)
        source = "hub"
    if folder is None:
        raise ModelMissing(
            role,
            f"'{wanted}' is not in the hub's cache and "
            + ("the hub could not be reached; it" if allow_download else "downloads are off; it"),
            f"chorale models install --hub {wanted}  (or set models.allow_download: true)",
        )
    path = Path(folder)
    if engine == "llama_cpp":
        path = _one_gguf(role, path, pattern or "*.gguf")
    return Resolved(engine, wanted, source, {"path": str(path)})


def _one_gguf(role: str, folder: Path, pattern: str) -> Path:
    found = sorted(folder.rglob(pattern))
    if not found:
        raise ModelMissing(role, f"a file like {pattern} in {folder}", INSTALL)
    return found[0]


def _hub(repository: str, patterns: list[str] | None, only_cache: bool) -> str | None:
    """Asks the hub library. A hub that cannot be reached is an answer, not a wait."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    try:
        return str(
            snapshot_download(
                repository, allow_patterns=patterns, local_files_only=only_cache, etag_timeout=5
            )
        )
    except (LocalEntryNotFoundError, HfHubHTTPError, OSError, ValueError):
        return None
