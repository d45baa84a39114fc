"""Which job goes to which worker next: the level by its share, then the pair that is wanted most."""

from collections.abc import Mapping, Sequence

from orchestrator.scheduling.batching import shape_of
from orchestrator.scheduling.homes import HAVE_STATE, Homes, rendezvous
from orchestrator.scheduling.kinds import BATCHED_KINDS
from orchestrator.scheduling.lanes import Draft, Entry, Lane
from orchestrator.scheduling.order import CANDIDATES, Allows, Order
from orchestrator.scheduling.priority import UNBLOCKING, FairShares
from orchestrator.scheduling.ranking import affinity
from orchestrator.scheduling.weights import FIRST, Weights
from orchestrator.scheduling.work import WorkKind


class Chooser:
    """Chooses among the lanes of one kind."""

    def __init__(
        self, kind: WorkKind, order: Order, shares: FairShares, homes: Homes, weights: Mapping[int, Weights]
    ) -> None:
        self._kind = kind
        self._order = order
        self._shares = shares
        self._homes = homes
        self._weights = weights

    def next(self, drafts: Sequence[Draft], workers: int, now: int) -> tuple[Draft, Entry | None]:
        """Returns what is started next and where; None: nothing more for that worker. `drafts` (not empty) have room;
        `workers` is how many do this kind of work, busy ones too."""
        draft = drafts[0] if len(drafts) == 1 else max(drafts, key=lambda one: one.room)
        batched = self._kind in BATCHED_KINDS
        if batched and draft.entries:
            return draft, self._rider(draft)
        allows = self._allows([draft]) if batched else self._allows(drafts)
        levels = [level for level in self._order.levels if self._order.first(level, allows) is not None]
        if not levels:
            return draft, None
        level = self._shares.choose(levels)
        suits = self._kind in HAVE_STATE and workers > 1
        lanes = self._order.heads(level, allows, CANDIDATES if suits else 1)
        lane, draft = self._pair(level, lanes, [draft] if batched else drafts, now, suits=suits)
        entry = lane.queued[0]
        if entry.alone and not draft.is_empty:
            empty = None if batched else next((one for one in drafts if one.is_empty), None)
            if empty is None:
                # Nothing else is given to this worker either: it runs empty and is then free for the lone job.
                return draft, None
            draft = empty
        return draft, entry

    def _pair(
        self, level: int, lanes: Sequence[Lane], drafts: Sequence[Draft], now: int, *, suits: bool
    ) -> tuple[Lane, Draft]:
        """Returns the pair with the highest w; of equal ones the emptiest worker, then who is missed longest."""
        part = (FIRST[2] if level == UNBLOCKING else self._weights[level].affinity) if suits else 0.0
        best: tuple[float, int, int, int] | None = None
        found: list[tuple[Lane, Draft]] = []
        for lane in lanes:
            place, wanted = lane.place, self._order.wanted(lane, now)
            assert place is not None, "heads stand in the order"
            for draft in drafts:
                score = wanted
                if suits:
                    warm = self._homes.warm(lane.session_id, self._kind) == draft.worker_id
                    score += part * affinity(draft.free_memory, warm=warm)
                standing = (score, draft.room, -place.urgency.missed_us, -place.urgency.sequence)
                if best is None or standing > best:
                    best, found = standing, [(lane, draft)]
                elif standing == best:
                    found.append((lane, draft))
        if suits and len(found) > 1:
            home = rendezvous(found[0][0].session_id, [draft.worker_id for _, draft in found])
            return next(pair for pair in found if pair[1].worker_id == home)
        return found[0]

    def _rider(self, draft: Draft) -> Entry | None:
        """Finds the next job that may go with the first of a batch, of the level whose turn it is if it has one."""
        shape = shape_of(draft.entries[0].job.work)
        allows = self._allows([draft])
        for level in self._shares.in_turn(self._order.levels):
            for lane in self._order.scan(level, allows):
                entry = lane.queued[0]
                if not entry.alone and shape_of(entry.job.work) == shape:
                    return entry
        return None

    def _allows(self, drafts: Sequence[Draft]) -> Allows | None:
        """What belongs to other workers is passed over; None where nothing of this kind belongs to any."""
        if self._kind != "asr":
            return None
        ids = [draft.worker_id for draft in drafts]
        return lambda lane: any(self._homes.allow(lane.queued[0].job.work, id) for id in ids)
