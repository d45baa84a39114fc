"""From a configuration to a craft that is ready to work. Imports what one kind needs, and only when asked."""

import time
from importlib import import_module
from typing import Any

from modalities.adapters.registry import Role, build
from orchestrator.workers.desk import Craft
from orchestrator.workers.frames import Configure

DOMAIN = "domain"
"""An option that is not the engine's: the domain dictionary of an understanding worker."""
LANGUAGE_MODEL = "language_model"
"""Another: the engine and options of the language model that finds intents and slots, where examples do not."""


def load(configure: Configure) -> Craft:
    """Returns the craft with its engine loaded. Raises what the engine raises, `ModalityError` where it is not here."""
    match configure.kind:
        case "asr":
            from orchestrator.workers.transcribe import Transcriber

            return Transcriber(_engine("asr", configure))
        case "understand":
            from modalities.tokens.ontology import domain_from
            from modalities.tokens.understand import ExampleUnderstander
            from orchestrator.workers.understand import TextUnderstander

            domain = domain_from(configure.options.get(DOMAIN, {}))
            embedder = _engine("embed", configure)
            model = configure.options.get(LANGUAGE_MODEL)
            if isinstance(model, dict):
                from modalities.tokens.understand_by_model import ModelUnderstander

                language_model = _built("llm", model["engine"], model["options"])
                within_s = model.get("within_ms", 1_200) / 1_000
                return TextUnderstander(
                    ModelUnderstander(embedder, language_model, domain, time.monotonic, within_s)
                )
            return TextUnderstander(ExampleUnderstander(embedder, domain))
        case "llm":
            from orchestrator.workers.reply import Replier

            return Replier(_engine("llm", configure))
        case "speech":
            from orchestrator.workers.speak import Speaker

            return Speaker(_engine("speech", configure))


def _engine(role: Role, configure: Configure) -> Any:  # a port of `modalities.ports`, by role
    """Builds an engine by its name, or by ``package.module:factory``: anybody's own, called with the options."""
    own = {name: value for name, value in configure.options.items() if name not in {DOMAIN, LANGUAGE_MODEL}}
    return _built(role, configure.engine, own)


def _built(role: Role, engine: str, options: dict[str, Any]) -> Any:  # a port of `modalities.ports`, by role
    module, colon, factory = engine.partition(":")
    if colon:
        return getattr(import_module(module), factory)(options)
    return build(role, engine, options)
