"""A domain reaches the consistency engine with all it says."""

from pathlib import Path

import pytest
import yaml

from consistency.connected import ConnectedTokens
from consistency.judge import Surroundings
from consistency.observation import Fact, Observation, Token
from consistency.related import relation
from modalities.text.facts import facts_of
from modalities.tokens.ontology import Domain, domain_from
from modalities.tokens.understand import find_slots
from orchestrator.sessions.domain_ontology import described, ontology_of

FOLDER = Path(__file__).parents[2] / "configs" / "domains"


def shipped(name: str) -> Domain:
    return domain_from(yaml.safe_load((FOLDER / f"{name}.yaml").read_text()))


def reader(text: str) -> tuple[Fact, ...]:
    return tuple(Fact(one.kind, one.value, one.start, one.stop) for one in facts_of(text))


def test_ontology_has_the_services_intents_and_slots_of_a_domain() -> None:
    """Values with their other words, kinds, roles, required and optional apart."""
    ontology = ontology_of(shipped("smart_home"))
    assert set(ontology.services) == {"lights", "climate", "security"}
    lights = ontology.services["lights"]
    assert lights.intents["dim_lights"].required == ("brightness",)
    assert lights.intents["dim_lights"].optional == ("room",)
    assert lights.slots["room"].kind == "category"
    assert "lounge" in lights.slots["room"].values["living room"]
    assert "percent" in lights.slots["brightness"].roles
    assert set(lights.slots) == {"room", "color", "brightness"}


def test_ontology_of_no_domain_is_empty() -> None:
    """Nothing is known, nothing is described."""
    assert ontology_of(Domain()).services == {}
    assert described(ontology_of(Domain())) == {}


def test_described_names_what_likeness_is_looked_up_by() -> None:
    """Only what has a description."""
    texts = described(ontology_of(shipped("restaurant")))
    assert texts["service:restaurants"] == "Find restaurants and reserve tables"
    assert texts["slot:restaurants.people"] == "Number of people at the table"
    assert all(texts.values())


@pytest.mark.parametrize("name", ["default", "restaurant", "smart_home"])
def test_domain_s_own_examples_are_never_rolled_back(name: str) -> None:
    """What the domain itself says is meant so hangs together, with the slots that its patterns find."""
    domain = shipped(name)
    graph = ConnectedTokens(ontology_of(domain), reader, relation)
    for intent in domain.intents:
        for example in intent.examples:
            slots = find_slots(example, domain.slots_of(intent))
            tokens = (
                Token(intent.name),
                *(Token(intent.name, s.name, s.value, start=s.start, stop=s.stop) for s in slots),
            )
            said = Observation("o", "text", 0, 1, example, facts=reader(example), tokens=tokens)
            assert graph.check(tokens, Surroundings((said,))).value >= 0.75, example
