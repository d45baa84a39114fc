"""What a link that joins cannot be given any more (heart)."""

from typing import Any

from msgspec import UNSET

from orchestrator.buffers.output_log import OutputLog
from orchestrator.wire.server import Gap
from orchestrator.wire.session import Session as SessionView


class Gaps:
    """Knows since when nobody has followed a session's log."""

    def __init__(self, log: OutputLog[Any]) -> None:
        self._log = log
        self._left_at: int | None = None

    def all_left(self) -> None:
        """Nobody reads from here on."""
        self._left_at = self._log.last

    def joined(self, after: int | None, view: SessionView) -> Gap | None:
        """Somebody reads again, from `after` on. Returns what is told first where entries behind it are gone. Where the
        session asked for ``chorale.gap``, one without `after` is told it too: of what came since the last link left."""
        since = after
        if after is None and view.chorale is not UNSET and "chorale.gap" in view.chorale.events:
            since = self._left_at
        self._left_at = None
        if since is None or since + 1 >= self._log.first:
            return None
        return Gap(since, self._log.first)
