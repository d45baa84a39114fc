"""Partial transcripts that never take a word back: local agreement.

Source: the LocalAgreement-2 policy (Liu et al. 2020; Macháček et al. 2023, Whisper-Streaming): of two successive
hypotheses for a growing stretch of speech only the common prefix is shown.
"""


def _key(word: str) -> str:
    return "".join(c for c in word.lower() if c.isalnum() or c == "'")


class LocalAgreement:
    """Takes hypotheses for one utterance and gives out text that two of them in a row agreed on.

    What was given out joins to `agreed`; it is only ever appended to.
    """

    __slots__ = ("_agreed", "_previous")

    def __init__(self) -> None:
        self._agreed: list[str] = []
        self._previous: list[str] = []

    @property
    def agreed(self) -> str:
        return " ".join(self._agreed)

    def hypothesis(self, text: str) -> str:
        """Takes the next hypothesis of the whole utterance so far; returns the text to append, "" where none.

        The last word of a hypothesis is never agreed on: speech may have been cut inside it.
        """
        words = text.split()
        common = 0
        for ours, theirs in zip(words[:-1], self._previous, strict=False):
            if _key(ours) != _key(theirs):
                break
            common += 1
        self._previous = words
        shown = len(self._agreed)
        fresh = words[shown:common]
        if not fresh:
            return ""
        self._agreed.extend(fresh)
        return (" " if shown else "") + " ".join(fresh)

    def final(self, text: str) -> str:
        """Takes the final text; returns what is to be appended, "" where the shown words already contradict it (the
        final transcript then replaces them on the wire)."""
        words = text.split()
        shown = len(self._agreed)
        if [_key(w) for w in words[:shown]] != [_key(w) for w in self._agreed]:
            return ""
        rest = words[shown:]
        if not rest:
            return ""
        return (" " if shown else "") + " ".join(rest)
