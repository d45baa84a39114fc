"""What can be wanted and said in a domain: services, their intents and slots. Plain data, passed in by whoever reads it
from configuration or from a client.

Slots that are not given a kind get one from their listed values, name and description, so that a foreign schema works
without being written again.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Literal

ValueKind = Literal[
    "time", "date", "number", "money", "duration", "boolean", "category", "place", "name", "text"
]
"""What a slot's values are. category: one of those listed; place: a town, a region; name: of anything that has one;
text: anything. A name may be any words at all, a place may hardly be a number."""

TRUE, FALSE, ANY = "true", "false", "dontcare"
"""Values of slots that are answered with yes and no, and the value of a slot that may be anything."""


@dataclass(frozen=True, slots=True)
class SlotSpec:
    """A slot. `values`: all of them where `kind` is category, else examples; each with other words for it. `roles`:
    words that stand before its value or after it (``from``; ``rooms``), beside those of its name and description."""

    name: str
    description: str = ""
    kind: ValueKind = "text"
    values: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    roles: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class IntentSpec:
    """An intent; it needs all of the slots `required` before it can be carried out."""

    name: str
    description: str = ""
    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()

    def takes(self, slot: str) -> bool:
        """Whether the intent has such a slot."""
        return slot in self.required or slot in self.optional


@dataclass(frozen=True, slots=True)
class ServiceSpec:
    """A group of intents that share their slots: what one provider does."""

    name: str
    description: str = ""
    intents: Mapping[str, IntentSpec] = field(default_factory=dict)
    slots: Mapping[str, SlotSpec] = field(default_factory=dict)


@dataclass(frozen=True)
class Ontology:
    """All services of a domain. Empty: nothing is known, and nothing is held against a token for its names."""

    services: Mapping[str, ServiceSpec] = field(default_factory=dict)

    @cached_property
    def _homes(self) -> dict[str, tuple[str, ...]]:
        """Which services have an intent, by its name."""
        found: dict[str, tuple[str, ...]] = {}
        for service in self.services.values():
            for intent in service.intents:
                found[intent] = (*found.get(intent, ()), service.name)
        return found

    def service_of(self, service: str, intent: str, active: str = "") -> ServiceSpec | None:
        """Returns the service that a token names; where it names none, one that has its intent, first the active."""
        if service:
            return self.services.get(service)
        homes = self._homes.get(intent, ())
        name = active if active in homes or not homes else homes[0]
        return self.services.get(name)


_KIND_WORDS: tuple[tuple[ValueKind, str], ...] = (
    ("text", r"\b(?:genre|category|type of|kind of|cuisine)\b"),
    ("boolean", r"\b(?:whether|boolean|flag|true or false)\b"),
    ("number", r"\b(?:number of|how many|count of|percentage|humidity|temperature|length of stay)\b"),
    (
        "money",
        r"\b(?:amount of money|price per|total price|cost of|fare\b.*\bper|total fare|rent per|balance)\b",
    ),
    ("date", r"\b(?:date|day on which)\b"),
    ("time", r"\b(?:time)\b"),
    ("text", r"\b(?:address|phone)\b"),
    (
        "place",
        r"\bname of (?:\w+ ){0,2}(?:city|town)\b|\b(?:origin|destination|departure|arrival) (?:city|town)\b",
    ),
    ("name", r"\b(?:name|title)\b"),
    (
        "place",
        r"\b(?:city|town|location|place|area|where|destination|origin|region|country|station|airport)\b",
    ),
    ("name", r"\b(?:artist|album|director|actor|song|movie|who)\b"),
)
"""Words of a slot's name and description, in the order in which they are looked for."""


@lru_cache(maxsize=4_096)
def kind_from(name: str, description: str, values: tuple[str, ...]) -> ValueKind:
    """Returns the kind that a slot's values, name and description suggest."""
    lowered = {value.lower() for value in values}
    if lowered and lowered <= {TRUE, FALSE}:
        return "boolean"
    if lowered and all(value.replace(".", "", 1).isdigit() for value in lowered):
        return "number"
    if values:
        return "category"
    said = f"{name.replace('_', ' ')} {description}".lower()
    for kind, pattern in _KIND_WORDS:
        if re.search(pattern, said):
            return kind
    return "text"
