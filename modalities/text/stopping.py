"""Ends a reply before a text that its client named, while it is still being written."""

from collections.abc import Sequence


class StopText:
    """Passes text on until one of `stops` is complete; neither it nor what follows is passed on.

    What may be the beginning of a stop is held back until it is known. Of several stops the one that is complete first
    counts, of two that end together the longer one: the result does not depend on how the text is cut into pieces.
    Holds at most the longest stop, less a character.
    """

    __slots__ = ("_held", "_stops", "ended")

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = tuple(stop for stop in stops if stop)
        self._held = ""
        self.ended = False
        """Whether a stop has come."""

    def feed(self, text: str) -> str:
        """Takes more of the reply; returns what of it is certain to be passed on now."""
        if self.ended:
            return ""
        text = self._held + text
        found = [(at + len(stop), at) for stop in self._stops if (at := text.find(stop)) >= 0]
        if found:
            self.ended, self._held = True, ""
            return text[: min(found)[1]]
        held = max((_overlap(text, stop) for stop in self._stops), default=0)
        cut = len(text) - held
        self._held = text[cut:]
        return text[:cut]

    def close(self) -> str:
        """The reply ends by itself: returns what was held back."""
        held, self._held = self._held, ""
        return held


def _overlap(text: str, stop: str) -> int:
    """Returns the length of the longest end of `text` that begins `stop`, without being all of it."""
    longest = min(len(text), len(stop) - 1)
    return next((size for size in range(longest, 0, -1) if text.endswith(stop[:size])), 0)
