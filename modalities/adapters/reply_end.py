"""Where a reply may end that nobody limited but our own configuration: behind a sentence, not inside one."""

import re

from modalities.text.boundaries import CLAUSE_MARKS, ends_sentence

_GAP = re.compile(r"\s+(?=\S)|\n")
_CLAUSE = re.compile(rf"[{re.escape(''.join(sorted(CLAUSE_MARKS)))}](?=\s)")
_LOOK_BACK = 200
"""Characters before what is held back in which the beginning of its sentence is looked for."""


class ReplyEnd:
    """Passes tokens on until there are `soft` of them, then only up to the next end of a sentence.

    From there on text is held back until its clause is complete, so that a reply that the engine's limit cuts inside a
    sentence at least ends behind a clause. Nothing that was said is taken back.
    """

    def __init__(self, soft: int) -> None:
        self._soft = soft
        self._tokens = 0
        self._said = ""
        self._held = ""
        self.ended = False
        """The reply is complete; further tokens are not wanted."""

    def take(self, token: str) -> str:
        """Takes one more token; returns the text that is free to be said now, mostly the token itself."""
        self._tokens += 1
        self._held += token
        if self._tokens <= self._soft:
            return self._free(len(self._held))
        end = self._sentence_end()
        if end is not None:
            self.ended = True
            return self._free(end)
        clauses = [match.start() for match in _CLAUSE.finditer(self._held)]
        return self._free(clauses[-1]) if clauses else ""

    def close(self, cut: bool) -> str:
        """The engine has ended, at its limit where `cut`: returns what may still be said."""
        if self.ended:
            return ""
        complete = not cut or ends_sentence((self._said + self._held).rstrip(), "")
        self.ended = complete
        return self._free(len(self._held)) if complete else ""

    def _sentence_end(self) -> int | None:
        """Returns how much of what is held belongs to the running sentence, if the next one has begun."""
        before = self._said[-_LOOK_BACK:]
        text = before + self._held
        for gap in _GAP.finditer(text):
            body = text[: gap.start()]
            done = "\n" in gap[0] or ends_sentence(body, text[gap.end() : gap.end() + 1])
            if gap.start() >= len(before) and body.strip() and done:
                return gap.start() - len(before)
        return None

    def _free(self, end: int) -> str:
        free, self._held = self._held[:end], self._held[end:]
        self._said += free
        return free
