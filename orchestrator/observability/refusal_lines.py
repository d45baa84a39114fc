"""Lines of log about what was refused: who, what and why, and never more than one for each of these in ten seconds.

`/metrics` counts refusals and names no tenant; the log names the tenant and is no count: a client that comes again at
once would else write the log full.
"""

import logging
from collections import OrderedDict

from orchestrator.clock import US_PER_S

EVERY_US = 10 * US_PER_S

MOST_REMEMBERED = 1_024
"""Of so many tenants with their kinds and reasons it is known when they were told of; the one told of longest ago is
forgotten, and may be told of again early."""


class RefusalLines:
    """Writes one line ``refused`` for the first refusal, and one for the first after ten seconds, with how many there
    were in between (`unsaid`)."""

    def __init__(self, log: logging.Logger) -> None:
        self._log = log
        self._told: OrderedDict[tuple[str, str, str], tuple[int, int]] = OrderedDict()

    def note(
        self, tenant: str, kind: str, reason: str, now: int, retry_after_s: float, session: str | None = None
    ) -> None:
        """Something of this `kind` was refused for `reason`, at `now` (µs)."""
        key = (tenant, kind, reason)
        since, unsaid = self._told.get(key, (None, 0))
        if since is not None and now - since < EVERY_US:
            self._told[key] = (since, unsaid + 1)
            return
        self._told[key] = (now, 0)
        self._told.move_to_end(key)
        if len(self._told) > MOST_REMEMBERED:
            self._told.popitem(last=False)
        about: dict[str, object] = {
            "tenant": tenant,
            "kind": kind,
            "reason": reason,
            "retry_after_s": round(retry_after_s, 1),
            "unsaid": unsaid,
        }
        self._log.info("refused", extra=about if session is None else {"session": session, **about})
