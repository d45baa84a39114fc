"""The slot-intent graph as the engine asks it: new tokens against the turns around them (`judge.Graph`). Pure.

The engine keeps the conversation; a context is built from what it shows, which is bounded, for every check.
"""

import datetime
from collections.abc import Iterable, Mapping

from consistency.context import KEPT_VALUES, RECENT_TURNS, Context, Shown, Turn
from consistency.graph import SlotIntentGraph
from consistency.judge import Connectivity, Surroundings
from consistency.mentions import Related, Today
from consistency.observation import Observation, Token
from consistency.ontology import Ontology, ServiceSpec, SlotSpec, ValueKind
from consistency.reading import Reader, Reading, read, vocabulary
from consistency.roles import PREPOSITIONS, role_words
from consistency.verdict import Evidence

_ASKING: tuple[tuple[frozenset[str], ValueKind], ...] = (
    (vocabulary("when time"), "time"),
    (vocabulary("when day date"), "date"),
    (vocabulary("where city town"), "place"),
    (vocabulary("many"), "number"),
    (vocabulary("name called"), "name"),
)
"""Words of a question, and the kind of slot that it asks for."""


class ConnectedTokens:
    """Answers the engine (`judge.Graph`)."""

    def __init__(self, ontology: Ontology, reader: Reader, related: Related, today: Today = None) -> None:
        self._ontology = ontology
        self._today = today
        self._graph = SlotIntentGraph(ontology, reader, related, today)

    def check(self, tokens: tuple[Token, ...], surroundings: Surroundings) -> Connectivity:
        """Returns how well new tokens hang together with their unit, the turns before and what is committed."""
        context = self.context(surroundings)
        turn = Turn("user", _joined(surroundings.said), tokens, _given(surroundings.said))
        today = datetime.date.fromisoformat(surroundings.today) if surroundings.today else self._today
        found = self._graph.on(today).judge(context, turn)
        weakest = found.weakest
        if weakest is None or weakest.value >= 1:
            return Connectivity(found.value)
        return Connectivity(found.value, (Evidence("token", weakest.value, found.words),))

    def takes(self, one: Observation) -> Mapping[str, Mapping[str, str]]:
        """Returns the slots that the intent of an observation takes, with the words for their listed values and these;
        none where its intent is not of this domain."""
        named = next((token for token in one.tokens if token.intent), None)
        intent = one.intent or (named.intent if named else "")
        service = self._ontology.service_of(named.service if named else "", intent) if intent else None
        spec = service.intents.get(intent) if service else None
        if service is None or spec is None:
            return {}
        return {
            name: _words(service.slots[name])
            for name in (*spec.required, *spec.optional)
            if name in service.slots
        }

    def listed(self) -> Mapping[str, Mapping[str, str]]:
        """Returns all slots that have listed values, with the words for these."""
        return {
            spec.name: _words(spec)
            for service in self._ontology.services.values()
            for spec in service.slots.values()
            if spec.values
        }

    def context(self, around: Surroundings) -> Context:
        """Returns the context that the engine's surroundings amount to."""
        recent: list[Reading] = []
        for past in around.recent[-RECENT_TURNS:]:
            recent.append(_joined(past.said))
            recent += [self._graph.read(answer) for answer in past.answers[-2:]]
        held = around.committed[-KEPT_VALUES:]
        service, intent = "", ""
        values: list[Shown] = []
        keys: dict[tuple[str, str], None] = {}
        for token in held:
            spec = self._ontology.service_of(token.service, token.intent, service)
            service = spec.name if spec else token.service
            intent = token.intent or intent
            keys.pop((service, token.intent), None)
            keys[service, token.intent] = None
            if token.slot and token.value:
                values.append(Shown(service, token.slot, token.value.lower(), len(recent), False))
        active = self._ontology.services.get(service)
        answered = around.recent[-1].answers if around.recent else ()
        asked = tuple((service, slot) for slot in sorted(slots_asked_in(answered, active)))
        return Context(
            service=service,
            intent=intent,
            turn=len(recent),
            recent=tuple(recent[-RECENT_TURNS:]),
            values=tuple(values),
            intents=tuple(key for key in keys if key[1]),
            services=tuple(dict.fromkeys(name for name, _ in keys)),
            asked=asked,
        )


def _words(slot: SlotSpec) -> dict[str, str]:
    """The words for a slot's listed values; a value goes without saying by itself where it has words."""
    return {word: value for value, words in slot.values.items() for word in (words or (value,))}


def slots_asked_in(answers: Iterable[str], service: ServiceSpec | None) -> set[str]:
    """Returns the slots of a service that an assistant's words ask for: the last sentence that is a question counts."""
    questions = [part for answer in answers for part in answer.split("?")[:-1]]
    if service is None or not questions:
        return set()
    words = set(read(questions[-1].replace("!", ".").rpartition(".")[2], ()).words)
    kinds = {kind for cues, kind in _ASKING if cues & words}
    named = {
        slot.name
        for slot in service.slots.values()
        if (role_words(slot.name, slot.roles) - PREPOSITIONS) & {word for word in words if len(word) > 2}
    }
    return named or {slot.name for slot in service.slots.values() if slot.kind in kinds}


def _joined(said: Iterable[Observation]) -> Reading:
    """What all observations of a turn say, as one text."""
    texts = [one for one in said if one.text]
    return read(" . ".join(one.text for one in texts), [fact for one in texts for fact in one.facts])


def _given(said: Iterable[Observation]) -> Mapping[str, float]:
    """Returns what the turn's texts are like, and marks the values that somebody filled in or that were read from the
    text: they are evidence of themselves."""
    found: dict[str, float] = {}
    for one in said:
        for name, cosine in one.likeness:
            found[name] = max(cosine, found.get(name, cosine))
        for token in one.tokens:
            if token.value and one.modality == "form":
                found[f"form:{token.slot}={token.value}"] = 1.0
            elif token.value and token.start >= 0:
                found[f"read:{token.slot}={token.value}"] = 1.0
    return found
