"""A typed value that a text names, with its place in the text."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fact:
    """A typed value of a text; the canonical `value` is equal for every way of saying the same thing.

    Kinds and their values:

    - number ``15``, ``2.5``; ordinal ``21``; percent ``50``; year ``1984``; duration in seconds ``5400``; money
      ``USD 15.00``
    - time ``19:30`` or ``07:00`` where the half of the day is known, ``7:30`` where it is open (times from 10 to 12
      look alike both ways: the half_day fact tells); half_day ``am`` or ``pm``
    - weekday ``friday``; relative_day ``+1`` in days, ``week+1``, ``weekend+0``, ``month-1``, ``year+1``; date
      ``--05-21``, ``--05``, ``2026-05-21``, ``2026-05``, and ``5/6`` where day and month may be either
    - negation ``not``, one for each negation that no other cancels; negated: the word that it is said of
    - polarity: the axes that a word lies on and its side, apart by spaces (``off/on:on``)
    - spelling: the letters
    - withdrawn: what the speaker took back (``at five, no, six``), as ``kind:value`` or as bare words

    `start` and `stop` are characters of the text.
    """

    kind: str
    value: str
    start: int = -1
    stop: int = -1
