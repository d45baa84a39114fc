"""So many at one time, and of one tenant fewer: whoever comes when all places are taken is told to come back."""

from collections import Counter

from orchestrator.errors import Overloaded

RETRY_S = 1.0


class Seats:
    """Counts who is inside, by tenant. `what` is said to who finds no place."""

    def __init__(self, most: int, most_of_a_tenant: int, what: str) -> None:
        self._most = most
        self._most_of_a_tenant = most_of_a_tenant
        self._what = what
        self._taken: Counter[str] = Counter()

    def __len__(self) -> int:
        return self._taken.total()

    def take(self, tenant: str) -> None:
        """Takes a place. Raises `Overloaded`."""
        if len(self) >= self._most:
            raise Overloaded(self._what, RETRY_S)
        if self._taken.get(tenant, 0) >= self._most_of_a_tenant:
            raise Overloaded(f"{self._what} for this key's tenant", RETRY_S, is_tenant=True)
        self._taken[tenant] += 1

    def leave(self, tenant: str) -> None:
        """Gives a place back."""
        self._taken[tenant] -= 1
        if not self._taken[tenant]:
            del self._taken[tenant]
