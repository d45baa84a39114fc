"""What runs as long as the server (timers, threads) must not end over one fault: it is told, counted, and goes on.

A turn of such a loop is done under its `Guard`. Sessions, links and workers have borders of their own, which end them;
a loop that serves everybody has nobody who would start it again.
"""

import logging
from collections.abc import Mapping

log = logging.getLogger("chorale.faults")


class Guard:
    """Around one turn of a loop: ``with guard: …``. Passes on what is no `Exception` (cancelling).

    The first fault is logged with its trace, those that follow it directly are counted only; that the loop works again
    is logged too. One thread at a time.
    """

    __slots__ = ("_counts", "failed", "name")

    def __init__(self, name: str, counts: dict[str, int]) -> None:
        self.name = name
        self._counts = counts
        self.failed = False
        """Says whether the last turn failed."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, fault: BaseException | None, trace: object) -> bool:
        if fault is None:
            if self.failed:
                log.info("works again", extra={"loop": self.name})
            self.failed = False
            return False
        if not isinstance(fault, Exception):
            return False
        self._counts[self.name] += 1
        if not self.failed:
            log.error("failed, and goes on", extra={"loop": self.name}, exc_info=fault)
        self.failed = True
        return True


class Faults:
    """How often each loop of this process has failed, by its name; names are few, and known beforehand."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def guard(self, name: str) -> Guard:
        """Returns a guard for one loop. Loops of one name are counted together."""
        self._counts.setdefault(name, 0)
        return Guard(name, self._counts)

    def counts(self) -> Mapping[str, int]:
        """Returns the faults since the start; 0 for loops that never failed."""
        return dict(self._counts)


FAULTS = Faults()
"""Those of this process: one, as its log is."""
