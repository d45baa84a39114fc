"""A domain dictionary is read whole or refused with every fault named."""

from pathlib import Path

import pytest
import yaml

from modalities.tokens.ontology import GENERAL_SLOTS, Domain, DomainFault, domain_from
from modalities.tokens.slot_types import SLOT_TYPES

DEFAULT = Path(__file__).parents[3] / "configs" / "domains" / "default.yaml"


def test_domain_that_ships_is_valid_and_rich_enough() -> None:
    """Every intent has several examples; the domain covers what a voice assistant is asked."""
    domain = domain_from(yaml.safe_load(DEFAULT.read_text()))
    names = {intent.name for intent in domain.intents}
    assert names >= {
        "set_timer", "set_alarm", "get_weather", "lights_on", "lights_off", "play_music", "set_reminder", "smalltalk"
    }  # fmt: skip
    assert all(len(intent.examples) >= 3 for intent in domain.intents)
    examples = [example for intent in domain.intents for example in intent.examples]
    assert len(examples) == len(set(examples)), "one sentence cannot mean two things"


def test_domain_empty_one_has_no_intents_and_general_slots() -> None:
    """Slots work without a domain."""
    domain = domain_from({})
    assert domain == Domain(slots={})
    assert [slot.name for slot in domain.slots_of(None)] == list(SLOT_TYPES)


def test_domain_intent_looks_for_its_own_slots_only() -> None:
    """The slots of an intent are those that it names, in that order."""
    domain = domain_from(
        {
            "intents": {"go": {"examples": ["go home"], "slots": ["place"]}},
            "slots": {"place": {"values": {"home": ["my house"]}}, "when": {"type": "time"}},
        }
    )
    (slot,) = domain.slots_of(domain.intents[0])
    assert slot.name == "place"
    assert slot.values == {"home": "home", "my house": "home"}
    assert domain.slots_of(None) == GENERAL_SLOTS


def test_domain_names_all_its_faults_at_once() -> None:
    """One error, every key."""
    wrong = {
        "threshold": 7,
        "colour": "blue",
        "intents": {"a": {"examples": [], "slots": ["nowhere"]}, "b": {"examples": "text"}, "c": ["x"]},
        "slots": {"s": {}, "t": {"type": "unknown"}, "u": {"patterns": ["("]}, "v": {"type": "time", "x": 1}},
    }
    with pytest.raises(DomainFault) as caught:
        domain_from(wrong)
    text = str(caught.value)
    for key in (
        "threshold", "colour", "intents.a.examples", "'nowhere'", "intents.b.examples", "intents.c",
        "slots.s", "slots.t.type", "slots.u.patterns", "slots.v.x",
    ):  # fmt: skip
        assert key in text


@pytest.mark.parametrize("settings", [None, [], "text", 3])
def test_domain_that_is_no_dictionary_is_refused(settings: object) -> None:
    """An empty file or a list is a fault with a name, not a crash."""
    with pytest.raises(DomainFault):
        domain_from(settings)
