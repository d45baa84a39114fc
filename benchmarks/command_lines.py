"""Commands that are spoken in `chorale bench commands`: what is said, what it means, and how else it comes in.

Drawn from templates by a seed. Each has its slots as they are meant (the truth that what a session commits is held to)
and one value that is easily taken for another. Templates belong to one half: what is looked at while the engine is made
better (`tuned`) shares no wording, no voice and no noise with what is judged in the end (`held`).
"""

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

Half = Literal["tuned", "held"]
HALVES: tuple[Half, ...] = ("tuned", "held")

Way = Literal["spoken", "typed_same", "form_same", "typed_slip", "form_slip", "corrected"]
"""spoken: said, no more. typed_same, form_same: the same is typed or filled in as well. typed_slip, form_slip: with one
value wrong there; what was said is meant. corrected: said, then corrected aloud."""

WAYS: Mapping[Way, int] = {
    "spoken": 50, "typed_same": 14, "form_same": 12, "typed_slip": 8, "form_slip": 8, "corrected": 8,
}  # fmt: skip
"""How often, in hundredths."""


@dataclass(frozen=True, slots=True)
class Value:
    """A value as it is spoken and as it is typed."""

    spoken: str
    typed: str


@dataclass(frozen=True, slots=True)
class Line:
    """A command. `said` and `typed` are its words, `meant` its slots as spoken. `slip`: the slot with which something
    goes wrong, and the value that it is taken for."""

    id: str
    half: Half
    domain: str
    way: Way
    said: str
    typed: str
    meant: Mapping[str, Value]
    slip: tuple[str, Value]

    def mistaken(self) -> "Line":
        """Returns the command with the wrong value in it."""
        slot, wrong = self.slip
        right = self.meant[slot]
        return Line(
            self.id,
            self.half,
            self.domain,
            self.way,
            _once(self.said, right.spoken, wrong.spoken),
            _once(self.typed, right.typed, wrong.typed),
            {**self.meant, slot: wrong},
            (slot, right),
        )


def lines(count: int, seed: int, half: Half, domains: Sequence[str] | None = None) -> Iterator[Line]:
    """Yields so many different commands of one half, the domains in turn."""
    drawn = random.Random(f"{seed}/{half}")
    known = set[str]()
    names = [name for name in TEMPLATES if domains is None or name in domains]
    made = tries = 0
    while made < count and tries < 100 * count:
        tries += 1
        domain = names[made % len(names)]
        line = _line(drawn, half, domain, f"{half}-{made:04d}")
        if line.said not in known:
            known.add(line.said)
            made += 1
            yield line


def _line(drawn: random.Random, half: Half, domain: str, id: str) -> Line:
    template = drawn.choice(TEMPLATES[domain][half])
    way = drawn.choices(list(WAYS), list(WAYS.values()))[0]
    said = typed = template
    meant: dict[str, Value] = {}
    slips: list[tuple[str, Value]] = []
    for slot, pool in _PLACE.findall(template):
        pair = list(drawn.choice(POOLS[pool]))
        drawn.shuffle(pair)
        value, wrong = (_value(one) for one in pair)
        meant[slot] = value
        slips.append((slot, wrong))
        hole = f"{{{slot}:{pool}}}"
        said, typed = said.replace(hole, value.spoken), typed.replace(hole, value.typed)
    return Line(id, half, domain, way, said, typed, meant, drawn.choice(slips))


def _once(text: str, old: str, new: str) -> str:
    return new.join(re.split(rf"(?<!\w){re.escape(old)}(?!\w)", text, maxsplit=1))


def _value(text: str) -> Value:
    spoken, _, typed = text.partition("|")
    return Value(spoken, typed or spoken)


_PLACE = re.compile(r"\{(\w+):(\w+)\}")

_TEENS = (
    ("thirteen|13", "thirty|30"), ("fourteen|14", "forty|40"), ("fifteen|15", "fifty|50"),
    ("sixteen|16", "sixty|60"), ("seventeen|17", "seventy|70"), ("eighteen|18", "eighty|80"),
    ("nineteen|19", "ninety|90"),
)  # fmt: skip
_OTHERS = (
    ("twenty|20", "seventy|70"), ("twenty five|25", "thirty five|35"), ("ten|10", "two|2"), ("five|5", "nine|9"),
)  # fmt: skip

Pool = Sequence[tuple[str, str]]


def _with(pool: Pool, unit: str, written: str | None = None) -> Pool:
    """Returns the pool with a unit behind each number."""
    end = unit if written is None else written

    def add(text: str) -> str:
        spoken, _, typed = text.partition("|")
        return f"{spoken} {unit}|{typed or spoken}{'' if end == '%' else ' '}{end}"

    return tuple((add(one), add(other)) for one, other in pool)


POOLS: Mapping[str, Pool] = {
    "duration": (*_with(_TEENS, "minutes"), *_with(_OTHERS, "minutes"), *_with(_TEENS[:3], "seconds")),
    "percent": _with((*_TEENS, *_OTHERS[:2]), "percent", "%"),
    "degrees": (
        ("nineteen|19", "twenty nine|29"), ("seventeen|17", "seventy|70"), ("sixteen|16", "sixty|60"),
        ("twenty one|21", "twenty nine|29"), ("eighteen|18", "eighty|80"), ("sixty eight|68", "sixty five|65"),
    ),
    "time": (
        ("half past seven|7:30", "half past eleven|11:30"), ("six fifteen|6:15", "six fifty|6:50"),
        ("nine thirty|9:30", "nine thirteen|9:13"), ("a quarter to nine|8:45", "a quarter to five|4:45"),
        ("eight am|8 am", "eight pm|8 pm"), ("five pm|5 pm", "nine pm|9 pm"),
        ("seven forty|7:40", "seven fourteen|7:14"),
        ("half past six|6:30", "half past five|5:30"), ("ten am|10 am", "ten pm|10 pm"),
    ),
    "evening": (
        ("half past seven|7:30", "half past eleven|11:30"), ("six fifteen|6:15", "six fifty|6:50"),
        ("eight thirty|8:30", "eight thirteen|8:13"), ("a quarter to nine|8:45", "a quarter to five|4:45"),
        ("five pm|5 pm", "nine pm|9 pm"), ("seven pm|7 pm", "eleven pm|11 pm"),
        ("half past six|6:30", "half past five|5:30"),
    ),
    "day": (
        ("Tuesday", "Thursday"), ("Sunday", "Monday"), ("Saturday", "Sunday"), ("Friday", "Wednesday"),
            ),
    "city": (
        ("Austin", "Boston"), ("Paris", "Perth"), ("Dallas", "Dublin"), ("Denver", "Dover"), ("Madrid", "Munich"),
        ("San Jose", "San Diego"), ("Houston", "Hamburg"),
    ),
    "room": (
        ("bedroom", "bathroom"), ("kitchen", "living room"), ("office", "hallway"), ("hallway", "bathroom"),
    ),
    "light": (("red", "green"), ("blue", "red"), ("white", "yellow"), ("purple", "orange")),
    "door": (("front door", "back door"), ("back door", "garage")),
    "task": (
        ("call Anna", "call Hannah"), ("buy bread", "buy red"), ("feed the cat", "feed the bat"),
        ("pay the rent", "play the rent"), ("water the plants", "water the pants"),
    ),
    "place": (
        ("Luigi's", "Lucy's"), ("Mario's", "Maria's"), ("Nando's", "Fernando's"), ("Rosa's", "Russo's"),
    ),
    "people": (
        ("two|2", "ten|10"), ("three|3", "eight|8"), ("four|4", "five|5"), ("five|5", "nine|9"), ("six|6", "two|2"),
    ),
    "food": (("Italian", "Indian"), ("Thai", "Chinese"), ("Mexican", "American"), ("French", "Vegetarian")),
    "price": (("cheap", "moderate"), ("fancy", "cheap")),
}  # fmt: skip
"""Values, each with one that it is taken for: by ear or by a slip of the hand."""

TEMPLATES: Mapping[str, Mapping[Half, Sequence[str]]] = {
    "default": {
        "tuned": (
            "set a timer for {duration:duration}",
            "set an alarm for {time:time}",
            "wake me up at {time:time} on {day:day}",
            "what is the weather in {city:city} on {day:day}",
            "dim the {room:room} lights to {percentage:percent}",
            "set the volume to {percentage:percent}",
            "remind me to {task:task} at {time:time}",
            "turn on the {room:room} light",
        ),
        "held": (
            "start a timer for {duration:duration}",
            "can you set a timer for {duration:duration} please",
            "set my alarm for {time:time} on {day:day}",
            "I need to get up at {time:time}",
            "is it going to snow in {city:city} on {day:day}",
            "set the {room:room} lights to {percentage:percent} brightness",
            "turn the volume to {percentage:percent}",
            "remind me to {task:task} on {day:day}",
            "switch off the {room:room} light",
        ),
    },
    "restaurant": {
        "tuned": (
            "book a table at {restaurant:place} for {people:people} people at {time:evening}",
            "I need a reservation for {people:people} people on {day:day} at {time:evening}",
            "find me a {price:price} {cuisine:food} restaurant in {city:city}",
            "move my reservation to {day:day}",
            "change the booking to {time:evening}",
        ),
        "held": (
            "reserve a table for {people:people} people at {time:evening} on {day:day}",
            "book a table at {restaurant:place} for {people:people} people on {day:day}",
            "where can I get good {cuisine:food} food in {city:city}",
            "change my reservation to {time:evening} on {day:day}",
            "look for a {price:price} {cuisine:food} place in {city:city}",
        ),
    },
    "smart_home": {
        "tuned": (
            "dim the {room:room} lights to {brightness:percent}",
            "set the temperature in the {room:room} to {temperature:degrees} degrees",
            "make the {room:room} lights {color:light}",
            "lock the {door:door}",
            "arm the alarm at {time:evening}",
            "turn off the lights in the {room:room}",
        ),
        "held": (
            "set the {room:room} lights to {brightness:percent}",
            "heat the {room:room} to {temperature:degrees} degrees",
            "make it {temperature:degrees} degrees in the {room:room}",
            "turn on the {color:light} lights in the {room:room}",
            "unlock the {door:door} please",
            "switch the alarm system on at {time:evening}",
        ),
    },
}
