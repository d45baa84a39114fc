"""The domains that ship: read whole, their own examples give their own slots, and faults name their keys."""

from pathlib import Path

import pytest
import yaml

from modalities.tokens.ontology import SLOT_KINDS, Domain, DomainFault, domain_from
from modalities.tokens.understand import find_slots

FOLDER = Path(__file__).parents[3] / "configs" / "domains"
SHIPPED = sorted(path.stem for path in FOLDER.glob("*.yaml"))


def shipped(name: str) -> Domain:
    return domain_from(yaml.safe_load((FOLDER / f"{name}.yaml").read_text()))


def test_domains_that_ship_are_three() -> None:
    """One for everybody, two to write one's own after."""
    assert SHIPPED == ["default", "restaurant", "smart_home"]


@pytest.mark.parametrize("name", SHIPPED)
def test_domain_that_ships_is_whole(name: str) -> None:
    """Every intent has examples of its own, every slot a kind, and every slot is used."""
    domain = shipped(name)
    slots = domain.slots or {}
    examples = [example for intent in domain.intents for example in intent.examples]
    assert len(examples) == len(set(examples))
    assert {slot.kind for slot in slots.values()} <= set(SLOT_KINDS)
    assert {slot for intent in domain.intents for slot in intent.slots} == set(slots)
    assert all(set(intent.required) <= set(intent.slots) for intent in domain.intents)
    assert {intent.service for intent in domain.intents} <= set(domain.services or {})


@pytest.mark.parametrize(
    ("name", "intent", "text", "slots"),
    [
        ("restaurant", "book_table", "a table for two at 7:30", {"people": "two", "time": "7:30"}),
        ("restaurant", "book_table", "a table at Luigi's for tomorrow", {"restaurant": "Luigi's", "day": "tomorrow"}),
        ("restaurant", "find_restaurant", "cheap sushi", {"price": "cheap", "cuisine": "Japanese"}),
        ("restaurant", "find_restaurant", "somewhere on a terrace", {"outdoor_seating": "True"}),
        ("smart_home", "dim_lights", "dim the lounge to 30%", {"room": "living room", "brightness": "30%"}),
        ("smart_home", "set_temperature", "68 degrees in the bedroom", {"temperature": "68", "room": "bedroom"}),
        ("smart_home", "lock_door", "lock the entrance", {"door": "front door"}),
    ],
)  # fmt: skip
def test_domain_finds_the_slots_of_a_sentence(
    name: str, intent: str, text: str, slots: dict[str, str]
) -> None:
    """Patterns and listed words, each under the value that it stands for."""
    domain = shipped(name)
    wanted = next(one for one in domain.intents if one.name == intent)
    assert {slot.name: slot.value for slot in find_slots(text, domain.slots_of(wanted))} == slots


def test_domain_kind_follows_the_type_or_the_listed_values() -> None:
    """What is not given is what the rest suggests."""
    domain = domain_from(
        {
            "slots": {
                "when": {"type": "day"},
                "bright": {"type": "percentage"},
                "room": {"values": {"kitchen": []}},
                "who": {"patterns": ["x"]},
                "town": {"patterns": ["x"], "kind": "place"},
            }
        }
    )
    kinds = {name: slot.kind for name, slot in (domain.slots or {}).items()}
    assert kinds == {"when": "date", "bright": "number", "room": "category", "who": "text", "town": "place"}


def test_domain_required_slots_are_slots_of_the_intent() -> None:
    """They need not be written twice."""
    domain = domain_from(
        {
            "name": "d",
            "intents": {"go": {"examples": ["go"], "required": ["place"], "slots": ["when"]}},
            "slots": {"place": {"values": {"home": []}}, "when": {"type": "time"}},
        }
    )
    assert (domain.intents[0].slots, domain.intents[0].service) == (("place", "when"), "d")


def test_domain_faults_of_services_kinds_and_required_slots_name_their_keys() -> None:
    """One error lists all of them."""
    wrong = {
        "description": 7,
        "services": {"lights": {"colour": "x"}, "doors": "x"},
        "intents": {
            "a": {"examples": ["x"], "required": ["nowhere"], "service": "windows", "description": []}
        },
        "slots": {"s": {"type": "time", "kind": "moment", "roles": "from", "description": 1}},
    }
    with pytest.raises(DomainFault) as caught:
        domain_from(wrong)
    for key in (
        "description", "services.lights.colour", "services.doors", "intents.a.required: there is no slot 'nowhere'",
        "intents.a.service: there is no service 'windows'", "intents.a.description", "slots.s.kind: 'moment'",
        "slots.s.roles", "slots.s.description",
    ):  # fmt: skip
        assert f"  {key}" in str(caught.value)
