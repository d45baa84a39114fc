"""A domain: which intents there are, how people say them, and which slots they have. Read from configuration."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from modalities.errors import ModalityError
from modalities.tokens.slot_types import SLOT_TYPES

SLOT_KINDS = ("time", "date", "number", "money", "duration", "boolean", "category", "place", "name", "text")
_KIND_OF_TYPE = {"day": "date", "percentage": "number"}
DEFAULT_THRESHOLD = 0.5
DEFAULT_MARGIN = 0.02


class DomainFault(ModalityError):
    """A domain dictionary is wrong; the text lists every fault with its key."""


@dataclass(frozen=True, slots=True)
class SlotType:
    """How a slot's value is found: `patterns` (their group ``value``, else the whole match) and listed words.

    `values` maps what is said, in lower case, to the value it stands for. The rest lets tokens be checked: `kind` is
    one of `SLOT_KINDS`, `description` a sentence, `roles` are words beside the value (``from``, ``people``).
    """

    name: str
    patterns: tuple[re.Pattern[str], ...] = ()
    values: Mapping[str, str] | None = None
    kind: str = "text"
    description: str = ""
    roles: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Intent:
    """What somebody may want; `slots` are the names of its slots, `required` those that it cannot do without. `service`
    groups intents that share their slots.

    A text with one of the words `never_with` is not meant so: sentence vectors hardly tell on from off.
    """

    name: str
    examples: tuple[str, ...]
    slots: tuple[str, ...] = ()
    never_with: frozenset[str] = frozenset()
    service: str = ""
    description: str = ""
    required: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Domain:
    """`threshold`: least cosine to the nearest example. `margin`: least lead of the best intent over the next."""

    name: str = ""
    intents: tuple[Intent, ...] = ()
    slots: Mapping[str, SlotType] | None = None
    threshold: float = DEFAULT_THRESHOLD
    margin: float = DEFAULT_MARGIN
    services: Mapping[str, str] | None = None
    """Descriptions of the services, by name."""

    def slots_of(self, intent: Intent | None) -> tuple[SlotType, ...]:
        """Returns the slots to look for: those of an intent; without one, the general types."""
        if intent is None:
            return GENERAL_SLOTS
        known = self.slots or {}
        return tuple(known[name] for name in intent.slots)


GENERAL_SLOTS = tuple(
    SlotType(name, tuple(re.compile(pattern, re.IGNORECASE) for pattern in patterns))
    for name, patterns in SLOT_TYPES.items()
)


def domain_from(settings: object) -> Domain:
    """Returns a domain from its dictionary (``configs/domains/*.yaml``); an empty one has no intents.

    Raises `DomainFault`, which lists all faults.
    """
    faults: list[str] = []
    top = _mapping(settings, "domain", faults)
    _only(top, {"name", "description", "threshold", "margin", "services", "intents", "slots"}, "", faults)
    services = {str(top.get("name", "")): _text(top, "description", "", faults)}
    for name, value in _mapping(top.get("services", {}), "services", faults).items():
        settings_of = _mapping(value, f"services.{name}", faults)
        services[name] = _text(settings_of, "description", f"services.{name}.", faults)
        _only(settings_of, {"description"}, f"services.{name}.", faults)
    slots = {
        name: _slot(name, _mapping(value, f"slots.{name}", faults), faults)
        for name, value in _mapping(top.get("slots", {}), "slots", faults).items()
    }
    intents = tuple(
        _intent(name, _mapping(value, f"intents.{name}", faults), slots, services, faults)
        for name, value in _mapping(top.get("intents", {}), "intents", faults).items()
    )
    threshold = _share(top.get("threshold", DEFAULT_THRESHOLD), "threshold", faults)
    margin = _share(top.get("margin", DEFAULT_MARGIN), "margin", faults)
    if faults:
        raise DomainFault("the domain dictionary is wrong:\n" + "\n".join(f"  {fault}" for fault in faults))
    return Domain(str(top.get("name", "")), intents, slots, threshold, margin, services if intents else None)


def _intent(
    name: str,
    settings: Mapping[str, object],
    slots: Mapping[str, SlotType],
    services: Mapping[str, str],
    faults: list[str],
) -> Intent:
    key = f"intents.{name}"
    examples = _texts(settings.get("examples", []), f"{key}.examples", faults)
    if not examples:
        faults.append(f"{key}.examples: at least one is needed")
    wanted = _texts(settings.get("slots", []), f"{key}.slots", faults)
    required = _texts(settings.get("required", []), f"{key}.required", faults)
    faults += [f"{key}.slots: there is no slot {slot!r}" for slot in wanted if slot not in slots]
    faults += [f"{key}.required: there is no slot {slot!r}" for slot in required if slot not in slots]
    never_with = _texts(settings.get("never_with", []), f"{key}.never_with", faults)
    service = _text(settings, "service", f"{key}.", faults) or next(iter(services))
    if service not in services:
        faults.append(f"{key}.service: there is no service {service!r}")
    _only(
        settings, {"examples", "slots", "required", "never_with", "service", "description"}, f"{key}.", faults
    )
    return Intent(
        name,
        examples,
        tuple(dict.fromkeys((*required, *wanted))),
        frozenset(word.lower() for word in never_with),
        service,
        _text(settings, "description", f"{key}.", faults),
        required,
    )


def _slot(name: str, settings: Mapping[str, object], faults: list[str]) -> SlotType:
    patterns = list(_texts(settings.get("patterns", []), f"slots.{name}.patterns", faults))
    general = settings.get("type")
    if isinstance(general, str) and general in SLOT_TYPES:
        patterns += SLOT_TYPES[general]
    elif general is not None:
        faults.append(f"slots.{name}.type: {general!r} is none of {', '.join(SLOT_TYPES)}")
    values: dict[str, str] = {}
    for value, words in _mapping(settings.get("values", {}), f"slots.{name}.values", faults).items():
        values[value.lower()] = value
        values.update((word.lower(), value) for word in _texts(words, f"slots.{name}.values.{value}", faults))
    if not patterns and not values:
        faults.append(f"slots.{name}: needs a type, patterns or values")
    _only(settings, {"type", "patterns", "values", "kind", "description", "roles"}, f"slots.{name}.", faults)
    compiled = [_compiled(pattern, f"slots.{name}.patterns", faults) for pattern in patterns]
    return SlotType(
        name,
        tuple(one for one in compiled if one is not None),
        values,
        _kind(settings, general, bool(values) and not settings.get("patterns"), f"slots.{name}.kind", faults),
        _text(settings, "description", f"slots.{name}.", faults),
        _texts(settings.get("roles", []), f"slots.{name}.roles", faults),
    )


def _kind(
    settings: Mapping[str, object], general: object, is_listed: bool, key: str, faults: list[str]
) -> str:
    """The kind that is given, else that of the general type; listed values alone are a category."""
    given = settings.get("kind")
    if given is None:
        if isinstance(general, str):
            return _KIND_OF_TYPE.get(general, general)
        return "category" if is_listed else "text"
    if given not in SLOT_KINDS:
        faults.append(f"{key}: {given!r} is none of {', '.join(SLOT_KINDS)}")
    return str(given)


def _only(settings: Mapping[str, object], known: set[str], where: str, faults: list[str]) -> None:
    faults += [f"{where}{key}: there is no such key" for key in settings if key not in known]


def _compiled(pattern: str, key: str, faults: list[str]) -> re.Pattern[str] | None:
    try:
        return re.compile(pattern, re.IGNORECASE)
    except re.error as fault:
        faults.append(f"{key}: {pattern!r} is no regular expression: {fault}")
        return None


def _mapping(value: object, key: str, faults: list[str]) -> dict[str, object]:
    if isinstance(value, Mapping):
        return {str(name): inner for name, inner in value.items()}
    faults.append(f"{key}: expected a mapping, not {type(value).__name__}")
    return {}


def _texts(value: object, key: str, faults: list[str]) -> tuple[str, ...]:
    if isinstance(value, list | tuple) and all(isinstance(item, str) for item in value):
        return tuple(value)
    faults.append(f"{key}: expected a list of texts")
    return ()


def _text(settings: Mapping[str, object], name: str, where: str, faults: list[str]) -> str:
    value = settings.get(name, "")
    if isinstance(value, str):
        return value
    faults.append(f"{where}{name}: expected a text, not {type(value).__name__}")
    return ""


def _share(value: object, key: str, faults: list[str]) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1:
        return float(value)
    faults.append(f"{key}: expected a number from 0 to 1, not {value!r}")
    return 0.0
