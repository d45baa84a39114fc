"""Which slot of its service a value belongs to, by what stands around it and by what was asked. Pure.

"from Boston to Austin", "two rooms", "the album The Getaway": words beside a value name its slot; the assistant's last
question names it where the user only answers. A slot is doubted where another one has clearly more of this.
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache

from consistency.mentions import Value
from consistency.ontology import ANY, FALSE, TRUE, ServiceSpec, SlotSpec
from consistency.reading import Reading, vocabulary, words_of

ASKED, BESIDE, SHOWN, LISTED, UNLISTED = 1.0, 0.9, 0.9, 1.0, -0.5
"""What speaks for a slot: the assistant asked for it; a word of it stands beside the value; the value was shown or
given under it; the value is one of its list, or is none of its list."""
SHOWN_ALIKE = 0.3
"""The same for numbers, days and listed values, of which two slots often have the same."""
BEFORE, BEHIND = 3, 2
"""Words before and behind a value in which its slot's words count."""

_GENERIC = vocabulary(
    "number of name date time city location type the a an is for to in on by at from whether boolean "
    "flag or where user has with be which and service this that use"
)
_PEOPLE = "people person persons tickets ticket seats seat party group us passengers travelers riders guests friends"
_FAMILIES: tuple[tuple[frozenset[str], frozenset[str]], ...] = tuple(
    (frozenset(of.split()), frozenset(words.split()))
    for of, words in (
        ("origin from leaving departing originates departure source", "from leaving departing leave depart out"),
        ("destination to going arriving arrival", "to going visit towards into heading reach"),
        ("pickup pick start starting", "pick pickup picking get from on start starting collect"),
        ("dropoff drop return returning end check_out", "until till return returning drop dropoff through back to"),
        ("check_in check", "check checking from starting arriving on"),
        ("travelers passengers riders seats people guests party adults tickets group", _PEOPLE),
        ("days nights stay_length stay length", "days day nights night"),
        ("rooms", "rooms room"),
        ("beds bedrooms bed", "bedroom bedrooms beds bed"),
        ("baths bathrooms bath", "bath baths bathroom bathrooms"),
        ("bags baggage luggage", "bags bag luggage suitcases check"),
        ("star stars", "star stars"),
        ("director", "directed director direction by"),
        ("actors actor starring cast", "starring starred stars actor actress acted acting featuring"),
        ("artist singer", "by artist singer from band"),
        ("album", "album"),
        ("song track", "song track play"),
        ("year", "year from"),
        ("recipient receiver contact", "to send"),
    )
)  # fmt: skip
"""Words of a slot's name, and the words that people say beside its value."""
PREPOSITIONS = vocabulary("from to in on at by near around until till towards into within before after")
"""Words that speak for a slot also where other words stand between them and the value."""


_KIND_WORDS: dict[str, frozenset[str]] = {
    "place": vocabulary("in near around nearby within"),
    "name": frozenset(["called", "named"]),
    "time": frozenset(["at", "around", "by"]),
    "date": frozenset(["on"]),
}
"""Words that stand before values of a kind, whichever slot it is."""


@lru_cache(maxsize=4_096)
def role_words(name: str, roles: tuple[str, ...], kind: str = "", description: str = "") -> frozenset[str]:
    """Returns the words that may stand beside a slot's value: those it was given, those of its name, and the families
    of the words of its name and description."""
    named = frozenset(name.lower().split("_")) | {name}
    described = named | frozenset(words_of(description))
    found = {word for word in named if word not in _GENERIC} | {
        word for phrase in roles for word in words_of(phrase)
    }
    for of, words in _FAMILIES:
        if of & described:
            found |= words
    return frozenset(found | _KIND_WORDS.get(kind, frozenset()))


def beside(value: Value, text: Reading, counting: bool) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Returns the words before and behind a value where it stands in a text; nothing where it does not. A number is
    named by what stands behind it."""
    at = text.find(value.words)
    many = len(value.words)
    if at < 0 and value.reading.numbers:
        wanted = max(value.reading.numbers)
        at = next((place for place, word in enumerate(text.words) if word == str(wanted)), -1)
        many = 1
    if at < 0 and value.words:
        at = next(
            (place for place, word in enumerate(text.words) if word == value.words[0] and len(word) > 2), -1
        )
        many = 1
    if at < 0:
        return (), ()
    before = text.words[max(0, at - BEFORE) : at]
    behind = text.words[at + many : at + many + BEHIND]
    return ((), behind) if counting else (before, behind)


def claim(
    slot: SlotSpec,
    value: Value,
    around: tuple[tuple[str, ...], tuple[str, ...]],
    asked: bool,
    shown: bool,
    competing: Mapping[str, int],
) -> float:
    """Returns how much speaks for a slot as the home of a value. `competing`: how many slots have each word."""
    lowered = value.text.lower()
    points = ASKED * asked + (SHOWN if slot.kind in {"name", "place", "text"} else SHOWN_ALIKE) * shown
    words = role_words(slot.name, slot.roles, slot.kind, slot.description)
    before, behind = around
    # The nearest word that tells slots apart decides: "from Boston to Austin" has both words near Austin.
    for back, word in enumerate(reversed(before), 1):
        if competing.get(word) and (back == 1 or word in PREPOSITIONS):
            points += BESIDE if word in words else 0.0
            break
    for word in behind:
        if competing.get(word):
            points += BESIDE * (0.9 if slot.kind == "number" else 0.3) if word in words else 0.0
            break
    if slot.kind in {"category", "number"} and slot.values and lowered != ANY:
        listed = any(lowered == known.lower() for known in slot.values)
        points += (
            (LISTED if slot.kind == "category" else 0.0)
            if listed
            else UNLISTED
            if slot.kind == "category"
            else 0.0
        )
    return points


def competing_words(slots: Iterable[SlotSpec]) -> dict[str, int]:
    """Returns how many of these slots each word stands beside."""
    found: dict[str, int] = {}
    for slot in slots:
        for word in role_words(slot.name, slot.roles, slot.kind, slot.description):
            found[word] = found.get(word, 0) + 1
    return found


def is_yes_or_no(value: str) -> bool:
    """Whether a value is one of a yes-and-no slot."""
    return value.lower() in {TRUE, FALSE}


def rivals_of(slot: SlotSpec, service: ServiceSpec) -> tuple[SlotSpec, ...]:
    """Returns the other slots of a service that could hold such a value."""
    alike = {"category": {"category", "text", "name"}, "text": {"category", "text", "name", "place"},
             "name": {"name", "text", "category", "place"}, "place": {"place", "name", "category"}}  # fmt: skip
    kinds = alike.get(slot.kind, {slot.kind})
    return tuple(one for one in service.slots.values() if one.name != slot.name and one.kind in kinds)
