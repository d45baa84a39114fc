"""What the consistency engine is made of, as configured: who measures, what may be said, what counts as a conflict."""

from dataclasses import replace
from functools import lru_cache

from consistency.connected import ConnectedTokens
from consistency.corrections import Corrections
from consistency.distance import TextJudge
from consistency.fingerprint import versioned
from consistency.misheard import Misheard
from consistency.observation import Fact
from consistency.policy import EngineRules
from consistency.related import lexicon, relation
from consistency.sound import SoundJudge
from consistency.whitening import shipped
from modalities.text.facts import facts_and_form, facts_of
from modalities.tokens.ontology import domain_from
from orchestrator.clock import ms
from orchestrator.sessions.domain_ontology import ontology_of
from orchestrator.sessions.rules import ConsistencyRules
from orchestrator.settings.engines import domain_tree
from orchestrator.settings.schema import Settings

_READ_TEXTS = 1_024
"""Texts whose facts are remembered: the same turns are looked back to again and again."""


def consistency_rules(settings: Settings) -> ConsistencyRules:
    """Returns how sessions hold what is said against each other. Raises `ConfigError` for a domain that is wrong."""
    wanted = settings.consistency
    second = "second" in settings.workers.asr.options
    engine = EngineRules(
        policy=wanted.policy,
        suspect=wanted.suspect,
        freeze=wanted.freeze,
        connectivity=wanted.connectivity,
        compare_us=ms(wanted.compare_ms),
        rungs=(1, 2, 3) if second else (1, 2),
        lost=wanted.lost,
    )
    rules = ConsistencyRules(wanted.enabled, engine, ms(wanted.deadline_ms), asks=wanted.policy == "ask")
    if not wanted.enabled:
        return rules
    _read_tables()
    ontology = ontology_of(domain_from(domain_tree(settings.workers.understand)))
    judge, graph = SoundJudge(TextJudge()), ConnectedTokens(ontology, read_facts, relation)
    return replace(
        rules,
        judge=judge,
        graph=graph,
        misheard=Misheard(judge, graph, read_facts),
        corrections=Corrections(ontology, read_facts),
        read=read_facts,
        fingerprint=versioned,
    )


def _read_tables() -> None:
    """Reads the tables of words now: no turn is to wait for them."""
    lexicon()
    shipped()
    facts_and_form("no, not on friday at seven")


@lru_cache(maxsize=_READ_TEXTS)
def read_facts(text: str) -> tuple[Fact, ...]:
    """Returns the facts of a text as the engine knows them."""
    return tuple(Fact(fact.kind, fact.value, fact.start, fact.stop) for fact in facts_of(text))
