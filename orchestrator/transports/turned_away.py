"""Who was not let in and would be at another time: counted, and told of in the log."""

import asyncio
import logging

from orchestrator.clock import seconds
from orchestrator.errors import ChoraleError, Overloaded
from orchestrator.observability.refusal_lines import RefusalLines
from orchestrator.transports.refusals import ShuttingDown

_RETRY_AFTER_S = 5.0


class TurnedAway:
    """For one door. Who never is let in (no key, no such session) is no loss, and not in here."""

    def __init__(self, log: logging.Logger) -> None:
        self._lines = RefusalLines(log)
        self.count = 0
        """How many since the start."""

    def note(self, error: ChoraleError, tenant: str, kind: str = "link") -> None:
        """Somebody has met `error` as he wanted in."""
        match error:
            case ShuttingDown():
                reason, retry_after_s = error.wire_code or error.code, _RETRY_AFTER_S
            case Overloaded():
                reason, retry_after_s = error.code, error.retry_after_s
            case _:
                return
        self.count += 1
        now = seconds(asyncio.get_running_loop().time())
        self._lines.note(tenant, kind, reason, now, retry_after_s)
