"""Workers of the configuration become processes with the model's files and the engine's options."""

from pathlib import Path

import pytest

from orchestrator.errors import ConfigError, ModelMissing
from orchestrator.settings import load
from orchestrator.settings.engines import as_installed, worker_specs
from orchestrator.settings.schema import LlmWorker, Settings
from orchestrator.workers.engines import DOMAIN, LANGUAGE_MODEL

SCRIPTED = {
    "CHORALE_WORKERS__ASR__ENGINE": "scripted",
    "CHORALE_WORKERS__UNDERSTAND__ENGINE": "scripted",
    "CHORALE_WORKERS__LLM__ENGINE": "scripted",
    "CHORALE_WORKERS__SPEECH__ENGINE": "scripted",
}


def settings(**more: str) -> Settings:
    return load(None, {**SCRIPTED, **{f"CHORALE_WORKERS__{key}": value for key, value in more.items()}})


def test_worker_specs_follow_the_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    """Engine, count, parallelism and threads per role; a role that is switched off has no process."""
    monkeypatch.setattr("orchestrator.settings.engines.usable_cores", lambda: 2)
    specs = {
        spec.kind: spec
        for spec in worker_specs(settings(LLM__COUNT="2", LLM__PARALLEL="3", LLM__THREADS="5"))
    }
    assert set(specs) == {"asr", "understand", "llm", "speech"}
    assert (specs["llm"].count, specs["llm"].parallel, specs["llm"].threads) == (2, 3, 5)
    assert specs["asr"].threads == 1
    silent = load(None, {**SCRIPTED, "CHORALE_WORKERS__SPEECH__ENGINE": "scripted"}, {"workers.speech": None})
    assert "speech" not in {spec.kind for spec in worker_specs(silent)}


def test_worker_specs_give_an_engine_what_it_knows(tmp_path: Path) -> None:
    """A model file, threads, device and parallelism reach an engine that has such options, its own win over them."""
    model = tmp_path / "model.gguf"
    model.touch()
    given = settings(
        LLM__ENGINE="llama_cpp",
        LLM__MODEL=str(model),
        LLM__THREADS="3",
        LLM__PARALLEL="2",
        LLM__OPTIONS__CONTEXT="1024",
        LLM__OPTIONS__PARALLEL="7",
    )
    options = next(spec.options for spec in worker_specs(given) if spec.kind == "llm")
    assert options == {"path": str(model), "threads": 3, "device": "auto", "parallel": 7, "context": 1024}


def test_worker_specs_find_the_second_recogniser_like_the_first(tmp_path: Path) -> None:
    """A path, a known name or a hub name becomes a folder; one that is not here is named with its command."""
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    given = settings(ASR__ENGINE="faster_whisper", ASR__MODEL=str(first), ASR__OPTIONS__SECOND=str(second))
    options = next(spec.options for spec in worker_specs(given) if spec.kind == "asr")
    assert (options["path"], options["second"]) == (str(first), str(second))
    given = settings(
        ASR__ENGINE="faster_whisper", ASR__MODEL=str(first), ASR__OPTIONS__SECOND="no/such-model"
    )
    with pytest.raises(ModelMissing):
        worker_specs(given)


def test_worker_specs_leave_foreign_engines_their_options() -> None:
    """``package.module:factory`` gets its options as they are written."""
    given = settings(LLM__ENGINE="my.engines:Parrot", LLM__OPTIONS="{says: hello}")
    spec = next(spec for spec in worker_specs(given) if spec.kind == "llm")
    assert (spec.engine, spec.options) == ("my.engines:Parrot", {"says": "hello"})


def test_worker_specs_read_the_domain_of_understanding() -> None:
    """The file that the configuration names goes to the worker as a dictionary; the shipped one is the default."""

    def domain(configured: Settings) -> object:
        (spec,) = [spec for spec in worker_specs(configured) if spec.kind == "understand"]
        return spec.options.get(DOMAIN)

    named = domain(settings(UNDERSTAND__DOMAIN="configs/domains/default.yaml"))
    assert isinstance(named, dict)
    assert domain(settings()) == named
    assert domain(settings(UNDERSTAND__DOMAIN="null")) is None


def test_worker_specs_find_the_language_model_that_understands() -> None:
    """Written like a worker of its own; its faults carry their key."""
    own = "{language_model: {engine: scripted, within_ms: 700, options: {default: hm}}}"
    (spec,) = [spec for spec in worker_specs(settings(UNDERSTAND__OPTIONS=own)) if spec.kind == "understand"]
    assert spec.options[LANGUAGE_MODEL] == {
        "engine": "scripted",
        "options": {"default": "hm"},
        "within_ms": 700,
    }
    with pytest.raises(ConfigError, match=r"workers\.understand\.options\.language_model\.within_ms"):
        worker_specs(settings(UNDERSTAND__OPTIONS="{language_model: {engine: scripted, within_ms: soon}}"))
    with pytest.raises(ConfigError, match=r"workers\.understand\.options\.language_model\.colour"):
        worker_specs(settings(UNDERSTAND__OPTIONS="{language_model: {colour: blue}}"))


def test_worker_specs_name_a_missing_model() -> None:
    """One thing missing is that error, with the command that installs it."""
    with pytest.raises(ModelMissing, match="chorale models install"):
        worker_specs(settings(LLM__ENGINE="llama_cpp", LLM__MODEL="owner/parrot"))


def test_worker_specs_name_everything_that_is_missing() -> None:
    """Several faults come together, each with its worker."""
    with pytest.raises(ConfigError) as caught:
        worker_specs(
            settings(
                LLM__ENGINE="llama_cpp", LLM__MODEL="parrot", ASR__ENGINE="ears", SPEECH__OPTIONS__WINGS="2"
            )
        )
    text = str(caught.value)
    assert "parrot" in text
    assert "workers.asr: there is no engine 'ears'" in text
    assert "workers.speech: scripted: there is no option 'wings'" in text


def test_thread_setting_reaches_the_process() -> None:
    """What a person sets is what the process may use."""
    assert LlmWorker(threads=9).threads_on(2) == 9


@pytest.mark.parametrize(
    ("engine", "speaks"), [("piper", False), ("scripted", True), ("my.engines:Parrot", True)]
)
def test_settings_without_piper_have_no_voice(
    monkeypatch: pytest.MonkeyPatch, engine: str, speaks: bool
) -> None:
    """Piper is an extra: where it is wanted and not installed replies are text. Another engine is left as it is."""
    monkeypatch.setattr("orchestrator.settings.engines.package_folder", lambda name: None)
    given = settings(SPEECH__ENGINE=engine)
    assert (as_installed(given).workers.speech is not None) is speaks
    assert as_installed(given).workers.asr == given.workers.asr


def test_settings_with_piper_keep_their_voice(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What is installed is used."""
    monkeypatch.setattr("orchestrator.settings.engines.package_folder", lambda name: tmp_path)
    given = settings(SPEECH__ENGINE="piper")
    assert as_installed(given) == given


def test_worker_specs_refuse_images_for_models_that_see_none() -> None:
    """The fault names the key, and the engines that may."""
    assert worker_specs(settings(LLM__IMAGES="true"))
    with pytest.raises(
        ConfigError, match=r"workers\.llm\.images: llama_cpp sees no images.*openai_compatible"
    ):
        worker_specs(settings(LLM__IMAGES="true", LLM__ENGINE="llama_cpp"))
