"""A small travel service, and turns of a conversation about it, with facts given by hand."""

import re

from consistency.context import Context, Turn
from consistency.graph import SlotIntentGraph
from consistency.observation import Fact, Token
from consistency.ontology import IntentSpec, Ontology, ServiceSpec, SlotSpec
from consistency.related import relation

_TIME = re.compile(r"\b(\d{1,2}):(\d\d)\b")
_MARCH = re.compile(r"\bmarch (\d{1,2})\b", re.IGNORECASE)


def reader(text: str) -> tuple[Fact, ...]:
    """Times like 17:30 and days of March: all that these tests say."""
    times = [Fact("time", f"{int(hit[1])}:{hit[2]}", hit.start(), hit.end()) for hit in _TIME.finditer(text)]
    days = [Fact("date", f"--03-{int(hit[1]):02}", hit.start(), hit.end()) for hit in _MARCH.finditer(text)]
    return (*times, *days)


TRAINS = ServiceSpec(
    "trains",
    "Book journeys by train",
    {
        "find_train": IntentSpec(
            "find_train",
            "Find a train",
            ("origin", "destination", "day"),
            ("time", "travelers", "quiet", "class"),
        ),
        "cancel_train": IntentSpec("cancel_train", "Cancel a booking", ("day",)),
    },
    {
        "origin": SlotSpec("origin", "City where the journey starts", "place"),
        "destination": SlotSpec("destination", "City to which the journey goes", "place"),
        "day": SlotSpec("day", "Day of travel", "date"),
        "time": SlotSpec("time", "Time of departure", "time"),
        "travelers": SlotSpec("travelers", "Number of travelers", "number"),
        "bags": SlotSpec("bags", "Number of bags", "number"),
        "quiet": SlotSpec("quiet", "Whether the carriage is quiet", "boolean"),
        "class": SlotSpec(
            "class", "Class of the seat", "category", {"first": ("best",), "second": ("cheap seats",)}
        ),
    },
)
HOTELS = ServiceSpec(
    "hotels",
    "Find rooms in hotels",
    {"find_hotel": IntentSpec("find_hotel", "Look for a hotel", ("city",), ("rooms",))},
    {
        "city": SlotSpec("city", "Where the hotel is", "place"),
        "rooms": SlotSpec("rooms", "Number of rooms", "number"),
    },
)
ONTOLOGY = Ontology({"trains": TRAINS, "hotels": HOTELS})
GRAPH = SlotIntentGraph(ONTOLOGY, reader, relation)


def train(slot: str, value: str) -> Token:
    return Token("find_train", slot, value, service="trains")


def hotel(slot: str, value: str) -> Token:
    return Token("find_hotel", slot, value, service="hotels")


def user(text: str, *tokens: Token, like: dict[str, float] | None = None) -> Turn:
    return Turn("user", GRAPH.read(text), tokens, like or {})


def assistant(text: str, *tokens: Token) -> Turn:
    return Turn("assistant", GRAPH.read(text), tokens)


def asks(slot: str, service: str = "trains") -> Token:
    return Token("", slot, act="request", service=service)


def after(*turns: Turn) -> Context:
    """The context behind these turns."""
    context = Context()
    for turn in turns:
        context = context.after(turn, ONTOLOGY)
    return context


def connectivity(text: str, *tokens: Token, context: Context | None = None) -> float:
    """Of one turn."""
    return GRAPH.judge(context or Context(), user(text, *tokens)).value
