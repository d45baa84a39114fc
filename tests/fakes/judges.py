"""Stand-ins for those who measure: what they say is written down by the test, or drawn from what they are asked."""

from zlib import crc32

from consistency.judge import Comparison, Connectivity, Relation, Surroundings
from consistency.observation import ForcedScore, Observation, Token
from consistency.verdict import Evidence

RELATIONS: tuple[Relation, ...] = ("restatement", "restatement", "correction", "complement", "unrelated")


class ScriptedJudge:
    """Says of two texts, in either order, what was written down for them; `with_sound` once they were scored. Texts
    that nothing is known of have nothing to do with each other."""

    def __init__(
        self,
        pairs: dict[tuple[str, str], tuple[Relation, float]],
        with_sound: dict[tuple[str, str], tuple[Relation, float]] | None = None,
    ) -> None:
        self._pairs = pairs
        self._with_sound = with_sound or {}
        self.asked: list[tuple[str, str]] = []

    def compare(
        self,
        a: Observation,
        b: Observation,
        scores: tuple[ForcedScore, ...] = (),
        second: Observation | None = None,
    ) -> Comparison:
        self.asked.append((a.text, b.text))
        for table in (self._with_sound, self._pairs) if scores else (self._pairs,):
            for key in ((a.text, b.text), (b.text, a.text)):
                if key in table:
                    return Comparison(
                        *table[key], evidence=(Evidence("script", table[key][1], " / ".join(key)),)
                    )
        return Comparison("unrelated", 0.0)


class DrawnJudge:
    """Says something different of every two texts, and always the same of the same two."""

    def compare(
        self,
        a: Observation,
        b: Observation,
        scores: tuple[ForcedScore, ...] = (),
        second: Observation | None = None,
    ) -> Comparison:
        heard = sorted((score.text, score.rung) for score in scores)
        chance = crc32(f"{a.text}|{b.text}|{heard}|{second.text if second else ''}".encode())
        return Comparison(RELATIONS[chance % len(RELATIONS)], round(chance // 7 % 10_001 / 10_000, 4))


class ScriptedGraph:
    """Knows how well values hang together with everything; what is not written down does so perfectly."""

    def __init__(self, values: dict[str, float] | None = None) -> None:
        self._values = values or {}
        self.surroundings: list[Surroundings] = []

    def check(self, tokens: tuple[Token, ...], surroundings: Surroundings) -> Connectivity:
        self.surroundings.append(surroundings)
        return Connectivity(min(self._values.get(token.value, 1.0) for token in tokens))


class DrawnGraph:
    """Lets a fifth of all tokens hang loose; what they are said with decides."""

    def check(self, tokens: tuple[Token, ...], surroundings: Surroundings) -> Connectivity:
        past = [one for turn in surroundings.recent for one in turn.said]
        around = [(one.text, len(one.tokens)) for one in (*past, *surroundings.said)]
        held = [token.value for token in surroundings.committed]
        chance = crc32(f"{[t.value for t in tokens]}{around}{held}".encode())
        return Connectivity(round(chance % 1_000 / 1_000 * 0.75 + 0.45, 4))


class DrawnDoubt:
    """Doubts half of what is heard, for ever in the same way."""

    def doubt(
        self, heard: Observation, second: Observation | None = None, score: ForcedScore | None = None
    ) -> float:
        other = (second.text if second else "", score.total if score else 0.0)
        return crc32(f"{heard.text}|{other}|{heard.alternatives}".encode()) % 1_000 / 1_000


class ScriptedDoubt:
    """Doubts what was written down; `both` where the second recogniser has been heard too."""

    def __init__(self, alone: dict[str, float], both: dict[str, float] | None = None) -> None:
        self._alone, self._both = alone, both or {}

    def doubt(
        self, heard: Observation, second: Observation | None = None, score: ForcedScore | None = None
    ) -> float:
        return (self._alone if second is None else self._both).get(heard.text, 0.0)


class ListedDomain:
    """Every utterance with an intent takes these slots: words for their listed values, and the values."""

    def __init__(self, slots: dict[str, dict[str, str]]) -> None:
        self._slots = slots

    def takes(self, one: Observation) -> dict[str, dict[str, str]]:
        return self._slots if one.intent else {}

    def listed(self) -> dict[str, dict[str, str]]:
        return {slot: values for slot, values in self._slots.items() if values}
