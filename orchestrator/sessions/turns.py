"""Turn windows (design §4): which signs of a user belong to one turn and get one answer.

A window opens with the first sign (speech start, typed message) and stays open for `window_us` after the last one;
speech keeps it open. An explicit ``response.create`` or commit closes it. What arrives in an open window joins the
unit.
"""

from dataclasses import dataclass, field


@dataclass(slots=True)
class Turn:
    """One user's say: the items of its unit."""

    id: int
    opened_us: int
    last_sign_us: int
    items: list[str] = field(default_factory=list)
    closed: bool = False


class TurnWindow:
    """Numbers turns and says whether a sign joins the current one."""

    __slots__ = ("_count", "_window_us", "turn")

    def __init__(self, window_us: int) -> None:
        self._window_us = window_us
        self._count = 0
        self.turn = Turn(0, 0, 0, closed=True)

    def sign(self, now: int, speaking: bool = False) -> Turn:
        """A sign of the user at `now`: returns the turn that it belongs to. `speaking` says that speech has been
        going on since the last sign, which keeps the window open."""
        turn = self.turn
        if turn.closed or (not speaking and now - turn.last_sign_us > self._window_us):
            self._count += 1
            turn = self.turn = Turn(self._count, now, now)
        turn.last_sign_us = max(turn.last_sign_us, now)
        return turn

    def close(self) -> None:
        """Nothing joins this turn any more."""
        self.turn.closed = True
