"""A domain: which intents there are, how people say them, and which slots they have. Read from configuration."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from modalities.errors import ModalityError
from modalities.tokens.slot_types import SLOT_TYPES

DEFAULT_THRESHOLD = 0.5
DEFAULT_MARGIN = 0.02


class DomainFault(ModalityError):
    """A domain dictionary is wrong; the text lists every fault with its key."""


@dataclass(frozen=True, slots=True)
class SlotType:
    """How a slot's value is found: `patterns` (their group ``value``, else the whole match) and listed words.

    `values` maps what is said, in lower case, to the value it stands for.
    """

    name: str
    patterns: tuple[re.Pattern[str], ...] = ()
    values: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Intent:
    """What somebody may want; `slots` are the names of its slots.

    A text with one of the words `never_with` is not meant so: sentence vectors hardly tell on from off.
    """

    name: str
    examples: tuple[str, ...]
    slots: tuple[str, ...] = ()
    never_with: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Domain:
    """`threshold`: least cosine to the nearest example. `margin`: least lead of the best intent over the next."""

    name: str = ""
    intents: tuple[Intent, ...] = ()
    slots: Mapping[str, SlotType] | None = None
    threshold: float = DEFAULT_THRESHOLD
    margin: float = DEFAULT_MARGIN

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
    _only(top, {"name", "threshold", "margin", "intents", "slots"}, "", faults)
    slots = {
        name: _slot(name, _mapping(value, f"slots.{name}", faults), faults)
        for name, value in _mapping(top.get("slots", {}), "slots", faults).items()
    }
    intents = tuple(
        _intent(name, _mapping(value, f"intents.{name}", faults), slots, faults)
        for name, value in _mapping(top.get("intents", {}), "intents", faults).items()
    )
    threshold = _share(top.get("threshold", DEFAULT_THRESHOLD), "threshold", faults)
    margin = _share(top.get("margin", DEFAULT_MARGIN), "margin", faults)
    if faults:
        raise DomainFault("the domain dictionary is wrong:\n" + "\n".join(f"  {fault}" for fault in faults))
    return Domain(str(top.get("name", "")), intents, slots, threshold, margin)


def _intent(
    name: str, settings: Mapping[str, object], slots: Mapping[str, SlotType], faults: list[str]
) -> Intent:
    examples = _texts(settings.get("examples", []), f"intents.{name}.examples", faults)
    if not examples:
        faults.append(f"intents.{name}.examples: at least one is needed")
    wanted = _texts(settings.get("slots", []), f"intents.{name}.slots", faults)
    faults += [f"intents.{name}.slots: there is no slot {slot!r}" for slot in wanted if slot not in slots]
    never_with = _texts(settings.get("never_with", []), f"intents.{name}.never_with", faults)
    _only(settings, {"examples", "slots", "never_with"}, f"intents.{name}.", faults)
    return Intent(name, examples, wanted, frozenset(word.lower() for word in never_with))


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
    _only(settings, {"type", "patterns", "values"}, f"slots.{name}.", faults)
    compiled = [_compiled(pattern, f"slots.{name}.patterns", faults) for pattern in patterns]
    return SlotType(name, tuple(one for one in compiled if one is not None), values)


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


def _share(value: object, key: str, faults: list[str]) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1:
        return float(value)
    faults.append(f"{key}: expected a number from 0 to 1, not {value!r}")
    return 0.0
