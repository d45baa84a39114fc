"""From `workers:` and `audio.vad` to engines: their models found on this machine, their options known to exist."""

from dataclasses import fields
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from modalities.adapters import registry
from modalities.adapters.options import settings_from
from modalities.adapters.packages import package_folder
from modalities.errors import ModalityError
from modalities.tokens.ontology import domain_from
from orchestrator import models
from orchestrator.errors import ChoraleError, ConfigError
from orchestrator.settings.layers import read_yaml
from orchestrator.settings.schema import LlmWorker, Role, Settings, UnderstandWorker, Worker, usable_cores
from orchestrator.workers.engines import DOMAIN, LANGUAGE_MODEL
from orchestrator.workers.resources import machine_memory
from orchestrator.workers.spec import WorkerSpec

_ADAPTER_ROLES: dict[Role, registry.Role] = {
    "asr": "asr",
    "understand": "embed",
    "llm": "llm",
    "speech": "speech",
}

MODEL_WITHIN_MS = 1_200
"""What a language model has to understand a text; then the nearest example is taken."""

MIB = 1 << 20

DEFAULT_DOMAIN = Path(__file__).parents[2] / "configs" / "domains" / "default.yaml"
"""Ships beside the packages in a checkout; an installed wheel has none and finds general slots only."""


def lacks_piper(settings: Settings) -> bool:
    """Says whether the voice would be Piper's and Piper, an extra because of its licence, is not installed."""
    speech = settings.workers.speech
    return speech is not None and speech.engine == "piper" and package_folder("piper") is None


def as_installed(settings: Settings) -> Settings:
    """Returns the settings as they can be met: without a voice where `lacks_piper`, so that replies are text."""
    if not lacks_piper(settings):
        return settings
    return settings.model_copy(update={"workers": settings.workers.model_copy(update={"speech": None})})


def worker_specs(settings: Settings) -> tuple[WorkerSpec, ...]:
    """Returns what the pool is made of. Raises the one fault that was found, or a `ConfigError` that lists several."""
    specs, faults = [], []
    roles = settings.workers.by_role()
    share_bytes = machine_memory() // max(1, sum(worker.count for worker in roles.values()))
    for role, worker in roles.items():
        try:
            specs.append(worker_spec(role, worker, settings.models.allow_download, share_bytes))
        except ChoraleError as error:
            faults.append(error)
    if len(faults) == 1:
        raise faults[0]
    if faults:
        raise ConfigError("\n".join(str(fault) for fault in faults))
    return tuple(specs)


def worker_spec(
    role: Role, worker: Worker, allow_download: bool = False, memory_bytes: int = 0
) -> WorkerSpec:
    """Returns one role's processes, each with `memory_bytes` unless the configuration says how much. Raises
    `ModelMissing`; `ConfigError` on an unknown engine or option."""
    threads = worker.threads_on(usable_cores())
    return WorkerSpec(
        kind=role,
        engine=worker.engine,
        options=_options(role, worker, threads, allow_download) | _domain(worker),
        threads=threads,
        count=worker.count,
        parallel=worker.parallel,
        memory_bytes=worker.memory_mb * MIB if worker.memory_mb is not None else memory_bytes,
    )


def _options(role: Role, worker: Worker, threads: int, allow_download: bool) -> dict[str, object]:
    """Returns what the engine is given: the model's files, what the worker says of threads, device and parallelism as
    far as the engine knows these, and its own options above all."""
    if ":" in worker.engine:  # anybody's own, as package.module:factory
        return dict(worker.options)
    adapter = _ADAPTER_ROLES[role]
    if isinstance(worker, LlmWorker) and worker.images and worker.engine not in registry.SEEING:
        seeing = ", ".join(sorted(registry.SEEING))
        raise ConfigError(f"workers.{role}.images: {worker.engine} sees no images; those that may: {seeing}")
    try:
        known = {field.name for field in fields(registry.settings_of(adapter, worker.engine))}
        found = models.resolve(role, worker.engine, worker.model, allow_download=allow_download)
        own_options = dict(worker.options)
        if role == "understand" and LANGUAGE_MODEL in own_options:
            own_options[LANGUAGE_MODEL] = _language_model(
                own_options[LANGUAGE_MODEL], threads, allow_download
            )
        if "second" in known and isinstance(second := own_options.get("second"), str):
            # A second model of the same engine is named like the first: by name, path or hub.
            more = models.resolve(role, worker.engine, second, allow_download=allow_download)
            own_options["second"] = more.options["path"]
        shared = {"threads": threads, "device": worker.device, "parallel": worker.parallel}
        options = (
            {name: value for name, value in shared.items() if name in known} | found.options | own_options
        )
        own = {name: value for name, value in options.items() if name not in {DOMAIN, LANGUAGE_MODEL}}
        settings_from(registry.settings_of(adapter, worker.engine), worker.engine, own)
    except ModalityError as error:
        raise ConfigError(f"workers.{role}: {error}") from None
    return options


def _language_model(settings: object, threads: int, allow_download: bool) -> dict[str, object]:
    """Returns the engine and options of the model that an understanding worker asks, its files found. Raises
    `ConfigError`, `ModelMissing`."""
    key = f"workers.understand.options.{LANGUAGE_MODEL}"
    own = dict(settings) if isinstance(settings, dict) else settings
    within_ms = own.pop("within_ms", MODEL_WITHIN_MS) if isinstance(own, dict) else MODEL_WITHIN_MS
    if not isinstance(within_ms, int) or isinstance(within_ms, bool) or within_ms <= 0:
        raise ConfigError(f"{key}.within_ms: expected milliseconds, not {within_ms!r}")
    try:
        worker = LlmWorker.model_validate(own)
    except ValidationError as error:
        faults = [f"{key}.{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors()]
        raise ConfigError("\n".join(faults)) from None
    options = _options("llm", worker, threads, allow_download)
    return {"engine": worker.engine, "options": options, "within_ms": within_ms}


def _domain(worker: Worker) -> dict[str, object]:
    tree = domain_tree(worker)
    return {DOMAIN: tree} if tree else {}


def domain_tree(worker: Worker) -> dict[str, object]:
    """Returns the domain of an understanding worker as its file says it, empty where it has none. Raises `ConfigError`
    with all its faults."""
    path = worker.domain if isinstance(worker, UnderstandWorker) else None
    if str(path) == "default":
        path = DEFAULT_DOMAIN if DEFAULT_DOMAIN.is_file() else None
    if path is None:
        return {}
    path = Path(path)
    tree, found = read_yaml(path)
    try:
        domain_from(tree)
    except ModalityError as error:
        found.append(str(error))
    if found:
        raise ConfigError("\n".join(f"workers.understand.domain: {fault}" for fault in found))
    return tree


def detector(settings: Settings) -> Any:  # a `VoiceActivityDetector`; adapters are built by name
    """Returns the voice activity detector, loaded. Raises `ModelMissing`, `ConfigError`."""
    engine = settings.audio.vad.engine
    found = models.resolve("vad", engine, allow_download=settings.models.allow_download)
    try:
        return registry.build("vad", engine, found.options)
    except ModalityError as error:
        raise ConfigError(f"audio.vad: {error}") from None
