"""What a correction does: "No, fifteen." takes the place of the value of its kind that was said last. Pure.

What is corrected is found by what the correction says: by the words that it denies ("not Boston, Austin"), else by the
kind of the new value: a number takes the place of a number, of the number in a duration or an amount; a listed value
that of a slot which lists it; a name that of a place or a name. Of several, one whose slot is named beside the value
("three people"), then one that stood behind the same word ("for four"), then one that sounds alike, then the one that
was said last. Values in a sentence that says something else too ("sorry, I have two dogs") correct nothing.
What is denied and has nothing in its place ("not Boston") fills no slot any more.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from consistency.facts import conflicts
from consistency.named import DAYS, NUMERIC, Piece, counts, denied, lists, only_denied, pieces, says_more
from consistency.observation import Observation, Token
from consistency.ontology import Ontology, SlotSpec
from consistency.phonetics import distance
from consistency.reading import Reader, words_of
from consistency.relation import corrects, says_all
from consistency.rewording import WORD, core_of, filled, with_value
from consistency.roles import PREPOSITIONS, role_words

_KINDS_OF_SLOTS = {
    "time": frozenset({"time", "half_day"}),
    "date": DAYS,
    "number": frozenset({"number", "percent"}),
    "money": frozenset({"money"}),
    "duration": frozenset({"duration"}),
}
_SOUNDS_ALIKE = 0.5
_HOURS = 24
_LONGEST_TURN = 4
"""Words of a correction that turns a request round."""
_ADDS = re.compile(r"\b(?:another|also|too|as well|a second|one more|in addition)\b", re.IGNORECASE)
"""Words of a request for one thing more: it takes nobody's place."""
_CLOSES = re.compile(
    r"\b(?:(?:that|it)(?:['’]s|\s+is|['’]ll\s+be|\s+will\s+be)\s+all|have\s+an?\s+\w+\s+(?:one|day|evening|night|week\w*))\b",
    re.IGNORECASE,
)
"""Nothing more is wanted: "no, that's all for today"."""
_DENIES = re.compile(
    r"^\W*(?:oh\W+)?(?:no|nope|correction)\b|\b(?:not|wrong|i mean|i meant|i said)\b", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Amendment:
    """`new`: the correction with its values in the slots that they belong to. `earlier`: what it corrects, as that
    reads now. `replaced`: the tokens that stand no more. `about`: what was done, in words."""

    new: Observation
    earlier: tuple[Observation, ...]
    replaced: tuple[Token, ...]
    about: str


@dataclass(slots=True)
class _Draft:
    """What a correction does, while that is worked out. `now`: what was said before, as it reads by then; `changed`:
    which of these."""

    now: list[Observation]
    replaced: list[Token] = field(default_factory=list)
    changed: set[int] = field(default_factory=set)
    told: list[str] = field(default_factory=list)

    def change(self, at: int, reads: Observation, replaced: tuple[Token, ...], told: str = "") -> None:
        """Has an earlier observation read otherwise, without these tokens as they were."""
        self.now[at] = reads
        self.changed.add(at)
        self.replaced.extend(replaced)
        if told:
            self.told.append(told)

    @property
    def backwards(self) -> range:
        """The places of what was said, the newest first."""
        return range(len(self.now) - 1, -1, -1)


@dataclass(frozen=True, slots=True)
class _Place:
    """A token of an earlier observation that a value may belong to."""

    at: int
    token: Token
    rank: tuple[bool, bool, bool, bool, float, int]


class Corrections:
    """Knows the slots of a domain, and reads facts. Without a domain the kinds of values decide alone."""

    def __init__(self, ontology: Ontology, read: Reader) -> None:
        self._ontology = ontology
        self._read = read

    def concerns(self, text: str) -> bool:
        """Whether a text may be a correction: it has words that say so."""
        return corrects(text)

    def amend(self, new: Observation, before: Sequence[Observation]) -> Amendment | None:
        """Returns what a correction does to what was said before, the oldest first; None where it is no correction, or
        corrects nothing that is known."""
        if not corrects(new.text) or _ADDS.search(new.text) or _CLOSES.search(new.text):
            return None
        gone = tuple(filter(None, (denied(new.text, fact) for fact in new.facts)))
        draft = _Draft(list(before))
        tokens = list(new.tokens)
        own = [one for one in new.tokens if one.intent and one.slot]
        refused = only_denied(new)
        if refused and not own:
            tokens = self._refuse(refused, tokens, draft)
        elif says_all(new.text) and own:
            # It says all of its request itself; what it names otherwise stands no more.
            denies = _DENIES.search(new.text) is not None
            for token in own:
                self._supersede(token, denies, draft)
        else:
            tokens = self._place_values(new, gone, tokens, draft)
        if not draft.changed and tokens == list(new.tokens):
            tokens = self._turn(new, draft)
        if not draft.changed and tokens == list(new.tokens):
            return None
        intent = next((one.intent for one in tokens if one.intent), new.intent or "") or None
        amended = replace(new, tokens=tuple(tokens), intent=intent)
        earlier = tuple(draft.now[at] for at in sorted(draft.changed))
        return Amendment(amended, earlier, tuple(draft.replaced), "; ".join(draft.told)[:120])

    def _place_values(
        self, new: Observation, gone: Sequence[str], tokens: list[Token], draft: _Draft
    ) -> list[Token]:
        """Puts each value that a correction names where it belongs. Returns the new tokens."""
        homes: list[Token] = []
        for piece in self._pieces(new, draft.now, gone):
            found = self._home(piece, draft.now, new, gone, homes)
            if found is None:
                self._reword(piece, gone, draft)
                continue
            old = found.token
            value = filled(old.value, piece.text, piece.kind, self._slot(old), self._read)
            homes.append(replace(old, value=value, start=piece.start, stop=piece.stop))
            tokens = [one for one in tokens if one.slot and not _overlap(one, piece)] + homes[-1:]
            if _plain(value) != _plain(old.value):
                draft.told.append(f"{old.slot}: {value} for {old.value}")
                self._exchange(old, value, draft)
        return tokens

    def _supersede(self, token: Token, denies: bool, draft: _Draft) -> None:
        """The newest other value of the same slot, under whatever intent, stands no more. Words that only turn to
        something else ("actually, what's the weather in Rome") leave the sentence that it was said in as it is."""
        for at in draft.backwards:
            same = [one for one in draft.now[at].tokens if one.slot == token.slot]
            # From the end on: what stands before keeps its place.
            for one in sorted(same, key=lambda one: one.start, reverse=True):
                if _plain(one.value) == _plain(token.value):
                    continue
                said = draft.now[at]
                if denies:
                    reads = with_value(said, one, token.value, self._read)
                else:
                    reads = replace(said, tokens=tuple(other for other in said.tokens if other is not one))
                draft.change(at, reads, (one,), f"{one.slot}: {token.value} for {one.value}")
            if same:
                return

    def _exchange(self, old: Token, value: str, draft: _Draft) -> None:
        """Puts a value in the place of another, wherever that stands: a correction of a correction is one of both."""
        for at, said in enumerate(tuple(draft.now)):
            for one in said.tokens:
                if (one.intent, one.slot, one.value) == (old.intent, old.slot, old.value):
                    draft.change(at, with_value(said, one, value, self._read), (one,))
                    break

    def _reword(self, piece: Piece, denied: Sequence[str], draft: _Draft) -> None:
        """What is denied by its words was said, though no slot has it."""
        for at in draft.backwards:
            said = draft.now[at]
            for words in denied:
                place = re.search(rf"(?<!\w){re.escape(words)}(?!\w)", said.text, re.IGNORECASE)
                if place is not None:
                    token = Token("", "", words, start=place.start(), stop=place.end())
                    reads = with_value(said, token, piece.text, self._read)
                    draft.change(at, reads, (), f"{piece.text} for {words}")
                    return

    def _turn(self, new: Observation, draft: _Draft) -> list[Token]:
        """ "No, off!" turns the request before it round: its slots are the other intent's. Returns the new tokens."""
        before = next((at for at in draft.backwards if draft.now[at].tokens), None)
        intent = new.intent or ""
        if before is None or any(one.slot for one in new.tokens) or len(new.text.split()) > _LONGEST_TURN:
            return list(new.tokens)
        said = draft.now[before]
        opposed = [
            (one, two)
            for one, two in conflicts(said.facts, new.facts)
            if one is not None and two is not None and one.kind == two.kind == "polarity"
        ]
        takes = all(self._takes(intent, token) for token in said.tokens)
        if not opposed or not takes or any(token.intent == intent for token in said.tokens):
            return list(new.tokens)
        one, two = opposed[0]
        words = new.text[two.start : two.stop]
        turned = with_value(said, Token("", "", words, start=one.start, stop=one.stop), words, self._read)
        moved = tuple(replace(token, intent=intent) for token in turned.tokens)
        reads = replace(turned, tokens=moved, intent=intent)
        draft.change(before, reads, said.tokens, f"{intent} for {said.intent}")
        return [replace(token, start=-1, stop=-1) for token in moved]

    def _refuse(self, words: str, tokens: list[Token], draft: _Draft) -> list[Token]:
        """Takes the newest value that was said in these words out of its slot; what was asked for stands without it.
        Returns the new tokens."""
        for at in draft.backwards:
            said = draft.now[at]
            for one in said.tokens:
                as_said = said.text[one.start : one.stop] if 0 <= one.start < one.stop else one.value
                if one.slot and words in {_plain(as_said), _plain(core_of(one.value, self._read))}:
                    left = tuple(other for other in said.tokens if other is not one)
                    draft.change(at, replace(said, tokens=left), (one,), f"{one.slot}: not {one.value}")
                    asked = replace(one, slot="", value="", start=-1, stop=-1)
                    return [other for other in tokens if other.slot] + [asked] * bool(one.intent)
        return tokens

    def _takes(self, intent: str, token: Token) -> bool:
        service = self._ontology.service_of(token.service, token.intent)
        spec = None if service is None else service.intents.get(intent)
        return spec is not None and (not token.slot or spec.takes(token.slot))

    # -- where it belongs -------------------------------------------------------------------------------------------

    def _pieces(self, new: Observation, now: Sequence[Observation], gone: Sequence[str]) -> list[Piece]:
        """The values that a correction names; none where it tells something else beside them, and denies nothing."""
        slots = self._slots(now)
        known = {word for said in now for word in words_of(said.text)}
        for slot in slots:
            known |= role_words(slot.name, slot.roles, "", slot.description)
        return [] if says_more(new, known, slots) and not gone else pieces(new, slots, known)

    def _slots(self, now: Sequence[Observation]) -> list[SlotSpec]:
        """The slots of what has been asked for, each once."""
        found = {token.slot: slot for said in now for token in said.tokens if (slot := self._slot(token))}
        return list(found.values())

    def _home(
        self,
        piece: Piece,
        now: Sequence[Observation],
        new: Observation,
        denied: Sequence[str],
        homes: Sequence[Token],
    ) -> _Place | None:
        """Where a value belongs; not to a slot in which the same correction has put another (`homes`)."""
        behind = _word_before(new.text, piece.start)
        taken = {(one.intent, one.slot) for one in homes}
        for at in range(len(now) - 1, -1, -1):
            places = [
                place
                for token in now[at].tokens
                if token.slot and token.act == "inform" and (token.intent, token.slot) not in taken
                and (place := self._place(piece, at, now[at], token, new, behind, denied)) is not None
            ]  # fmt: skip
            if places:
                return max(places, key=lambda one: one.rank)
        return None

    def _place(
        self,
        piece: Piece,
        at: int,
        said: Observation,
        token: Token,
        new: Observation,
        behind: str,
        denied: Sequence[str],
    ) -> _Place | None:
        slot = self._slot(token)
        kinds = {fact.kind for fact in self._read(token.value)} | {
            fact.kind for fact in said.facts if token.start <= fact.start and 0 <= fact.stop <= token.stop
        }
        if slot is not None:
            kinds |= _KINDS_OF_SLOTS.get(slot.kind, frozenset())
        is_denied = any(
            re.search(rf"(?<!\w){re.escape(words)}(?!\w)", token.value.lower()) for words in denied
        )
        if piece.kind:
            same = piece.kind in kinds
            if not (same or _may_be(piece.kind, kinds)) or not self._fits(piece, token, slot, kinds):
                return None
        elif not is_denied and not self._takes_words(slot, piece, token, kinds):
            return None
        else:
            same = True
        roles = role_words("" if slot is None else slot.name, () if slot is None else slot.roles)
        named = slot is not None and bool((roles - PREPOSITIONS) & set(words_of(new.text)))
        apart = distance(piece.text.lower(), core_of(token.value, self._read).lower()) if piece.kind else 1.0
        likely = apart if apart <= _SOUNDS_ALIKE else 1.0
        if counts(new, piece) and not named:
            return None
        # Units tell kinds apart; a bare number may be any of them.
        exact = same and piece.kind != "number"
        led = behind in PREPOSITIONS | {"for"} and behind == _word_before(said.text, token.start)
        return _Place(at, token, (is_denied, named, exact, led, -likely, token.start))

    def _fits(self, piece: Piece, token: Token, slot: SlotSpec | None, kinds: set[str]) -> bool:
        """Whether a value can stand where the old one does: no hour is 45."""
        if piece.kind != "number" or "time" not in kinds:
            return True
        found = self._read(filled(token.value, piece.text, piece.kind, slot, self._read))
        return any(
            one.kind == "time" or (one.kind == "number" and float(one.value) <= _HOURS) for one in found
        )

    def _takes_words(self, slot: SlotSpec | None, piece: Piece, token: Token, kinds: set[str]) -> bool:
        if slot is None or kinds & (NUMERIC | DAYS):
            return False
        if lists(slot, piece.text):
            return True
        if self._is_listed(piece, token):
            return False
        is_name = all(word[:1].isupper() or word[:1].isdigit() for word in piece.text.split())
        return slot.kind in {"place", "name", "text"} and is_name

    def _is_listed(self, piece: Piece, token: Token) -> bool:
        """Whether some slot of a token's service lists these words: then they are no name."""
        service = self._ontology.service_of(token.service, token.intent)
        return service is not None and any(lists(slot, piece.text) for slot in service.slots.values())

    def _slot(self, token: Token) -> SlotSpec | None:
        service = self._ontology.service_of(token.service, token.intent)
        return None if service is None else service.slots.get(token.slot)


def _may_be(kind: str, kinds: set[str]) -> bool:
    """Whether a value of one kind can stand where one of these stood."""
    if kind == "number":
        return bool(kinds & NUMERIC)
    if kind in DAYS:
        return bool(kinds & DAYS)
    return kind == "half_day" and "time" in kinds


def _word_before(text: str, start: int) -> str:
    """The word that stands before a place in a text; empty where none does."""
    words = WORD.findall(text[: max(start, 0)])
    return words[-1].lower() if words else ""


def _overlap(token: Token, piece: Piece) -> bool:
    return token.start < piece.stop and piece.start < token.stop


def _plain(value: str) -> str:
    return " ".join(WORD.findall(value.lower()))
