"""Edges that look at the conversation: is the intent near it, what bears a value out, does another slot claim it.

Pure.
"""

from collections.abc import Sequence

from consistency import roles
from consistency.context import Context, Turn
from consistency.mentions import AGAINST, Related, Today, Value, support
from consistency.observation import Token
from consistency.ontology import ANY, Ontology, ServiceSpec, SlotSpec
from consistency.rules import NEUTRAL_COSINE, Edge, shape_of

SAME_INTENT, USED, ACTIVE, UNMEASURED = 1.0, 0.95, 0.9, 0.8
RECENT, OLDER, FADE = 0.9, 0.8, 0.97
TELLING = 0.4
"""An utterance whose best likeness is below this is too vague to speak against an intent."""
RECENT_FIGURE = 0.5
"""A figure that stood some turns before: figures are many, and the next one that is meant is mostly said."""
FILLED_IN = 0.95
"""A value of a form, where what was said is not against it."""
LIKE_A_WORD, LIKE_A_NAME = 0.55, 0.2
"""Most that likeness alone is worth: names are spelled alike, or they are other names."""
RIVAL_STEP = 0.6
"""A claim may be ahead by so much before the slot is doubted at all."""


def intent_in_context(context: Context, turn: Turn, service: str, intent: str, ontology: Ontology) -> Edge:
    """e2: how near an intent is to the conversation: the last one, used or offered lately, of the active service, or
    one that the utterance is like - more than it is like the other services."""
    key = (service, intent)
    like = _likeness(turn, service, intent, ontology)
    if key == (context.service, context.intent) or key in context.proposed:
        return Edge(SAME_INTENT)
    if key in context.intents:
        return Edge(max(USED, like))
    if service and service == context.service:
        return Edge(max(ACTIVE, like))
    if service in context.services:
        return Edge(max(0.85, like))
    return Edge(like, f"{service}.{intent} is new here, likeness {like:.2f}")


def _likeness(turn: Turn, service: str, intent: str, ontology: Ontology) -> float:
    if f"service:{service}" not in turn.likeness and f"intent:{service}.{intent}" not in turn.likeness:
        return UNMEASURED
    ours = _cosine(turn, service, intent)
    best = max(
        (_cosine(turn, other.name, one) for other in ontology.services.values() for one in other.intents),
        default=ours,
    )
    absolute = min(max(0.35 + 1.3 * ours, 0.0), 1.0)
    # An utterance that is like nothing says nothing against an intent.
    behind = (best - ours) * min(1.0, max(best, 0.0) / TELLING)
    relative = 1.0 - 2.5 * behind
    return round(min(max(0.5 * absolute + 0.5 * relative, 0.03), 1.0), 4)


def _cosine(turn: Turn, service: str, intent: str) -> float:
    return max(
        turn.likeness.get(f"intent:{service}.{intent}", NEUTRAL_COSINE),
        turn.likeness.get(f"service:{service}", NEUTRAL_COSINE),
    )


def evidence(
    context: Context,
    turn: Turn,
    value: Value,
    slot: SlotSpec | None,
    token: Token,
    related: Related,
    today: Today,
    loosely: bool,
) -> list[tuple[str, Edge]]:
    """e4: who bears a value out: this utterance, turns before it, values that were given or shown before."""
    now = support(value, slot, turn.reading, related, today, loosely)
    if f"read:{token.slot}={token.value}" in turn.likeness:
        return [("said now", Edge(1.0, "read from the text"))]
    if f"form:{token.slot}={token.value}" in turn.likeness and now > AGAINST:
        return [("filled in", Edge(max(now, FILLED_IN), "filled in"))]
    cosine = turn.likeness.get(f"value:{token.value}")
    if cosine is not None and now > AGAINST and shape_of(value) == "words":
        most = LIKE_A_NAME if slot is not None and slot.kind in {"place", "name"} else LIKE_A_WORD
        now = max(now, min(most, 0.9 * cosine))
    found = [("said now", Edge(now, "not said" if now < 0.3 else "said"))]
    if now >= RECENT:
        # Nothing from before can be worth more.
        return found
    if value.text.lower() in {"true", "false", ANY} and any(one == token.slot for _, one in context.asked):
        found.append(("asked", Edge(RECENT, "an answer to a question")))
    shown = [one for one in context.values if one.value == value.text.lower()]
    if shown and value.text.lower() not in {"true", "false", ANY}:
        same_slot = any(one.slot == token.slot for one in shown)
        weight = RECENT if context.turn - max(one.turn for one in shown) < 6 else OLDER
        # A number that stood under another slot is no evidence for this one.
        if same_slot or shape_of(value) == "words":
            found.append(("shown before", Edge(weight, "shown before")))
    best = max(edge.weight for _, edge in found)
    for back, reading in enumerate(reversed(context.recent), 1):
        if best >= RECENT * FADE**back:
            break
        if shape_of(value) != "words" and now <= AGAINST:
            break
        weight = support(value, slot, reading, related, today, loosely and back == 1)
        lately = RECENT if shape_of(value) == "words" or back == 1 else RECENT_FIGURE
        found.append((f"said {back} turns before", Edge(lately * weight * FADE**back, "said before")))
    return found


def rivalry(
    context: Context,
    turn: Turn,
    value: Value,
    slot: SlotSpec | None,
    service: ServiceSpec | None,
    home: str,
    tokens: Sequence[Token],
) -> Edge:
    """Whether another slot of the service has clearly more claim to the value than its own."""
    if slot is None or service is None or value.text.lower() == ANY or roles.is_yes_or_no(value.text):
        return Edge(1.0)
    rivals = roles.rivals_of(slot, service)
    if not rivals:
        return Edge(1.0)
    around = roles.beside(value, turn.reading, slot.kind == "number")
    competing = roles.competing_words((slot, *rivals))
    # A question is answered by one value, and is no reason for a second.
    filled = {token.slot for token in tokens if token.slot and token.value.lower() != value.text.lower()}

    def claim(one: SlotSpec) -> float:
        asked = (home, one.name) in context.asked and one.name not in filled
        shown = any(
            seen.slot == one.name and seen.service == home and seen.value == value.text.lower()
            for seen in context.values
        )
        return roles.claim(one, value, around, asked, shown, competing)

    ours = claim(slot)
    best = max(rivals, key=lambda one: (claim(one), one.name))
    ahead = claim(best) - ours
    weight = 1.0 if ahead <= RIVAL_STEP else max(0.1, 1.0 - 0.75 * (ahead - RIVAL_STEP) / 0.3)
    return Edge(round(weight, 4), f"{best.name} has more claim to {value.text}" if weight < 1 else "")
