"""A domain as the consistency engine wants it: neither side knows the other's types."""

from typing import cast

from consistency.ontology import IntentSpec, Ontology, ServiceSpec, SlotSpec, ValueKind
from modalities.tokens.ontology import Domain, Intent, SlotType


def ontology_of(domain: Domain) -> Ontology:
    """Returns the services, intents and slots of a domain. An empty domain gives an empty ontology."""
    services: dict[str, ServiceSpec] = {}
    descriptions = domain.services or {}
    slots = domain.slots or {}
    for name in dict.fromkeys(intent.service for intent in domain.intents):
        intents = [intent for intent in domain.intents if intent.service == name]
        used = dict.fromkeys(slot for intent in intents for slot in intent.slots)
        services[name] = ServiceSpec(
            name,
            descriptions.get(name, ""),
            {intent.name: _intent(intent) for intent in intents},
            {slot: _slot(slots[slot]) for slot in used},
        )
    return Ontology(services)


def described(ontology: Ontology) -> dict[str, str]:
    """Returns the texts whose likeness to an utterance the graph wants to know, by the names it looks them up with."""
    found: dict[str, str] = {}
    for service in ontology.services.values():
        found[f"service:{service.name}"] = service.description
        found |= {f"intent:{service.name}.{one.name}": one.description for one in service.intents.values()}
        found |= {f"slot:{service.name}.{one.name}": one.description for one in service.slots.values()}
    return {name: text for name, text in found.items() if text}


def _intent(intent: Intent) -> IntentSpec:
    optional = tuple(slot for slot in intent.slots if slot not in intent.required)
    return IntentSpec(intent.name, intent.description, intent.required, optional)


def _slot(slot: SlotType) -> SlotSpec:
    words: dict[str, tuple[str, ...]] = {}
    for said, value in (slot.values or {}).items():
        words[value] = (*words.get(value, ()), said)
    # The parser of domains lets no other kind through.
    return SlotSpec(slot.name, slot.description, cast(ValueKind, slot.kind), words, slot.roles)
