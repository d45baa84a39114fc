"""The meaning of what the user said and typed (heart): one job for each text, and what is told of its answer."""

from msgspec import UNSET

from orchestrator.scheduling.work import Report, Understand, Understood
from orchestrator.sessions.outbound import Outbound
from orchestrator.wire import server as wire
from orchestrator.wire.session import Session


class Understanding:
    """Has texts understood; clients that asked for ``chorale.token`` are told."""

    def __init__(self, out: Outbound) -> None:
        self._out = out
        self._items: dict[str, str] = {}

    def start(self, item_id: str, text: str) -> None:
        job = self._out.start(Understand(text=text), self._out.rules.understand_within_us)
        self._items[job] = item_id

    def owns(self, job_id: str) -> bool:
        return job_id in self._items

    def report(self, report: Report, view: Session) -> None:
        """Takes an answer; a failure has no consequence."""
        item_id = self._items.pop(report.job_id)
        if not isinstance(report, Understood):
            return
        extension = view.chorale
        if extension is UNSET or "chorale.token" not in extension.events:
            return
        slots = tuple(wire.Slot(s.name, s.value, round(s.confidence, 4)) for s in report.slots)
        self._out.emit(wire.TokenUnderstood(item_id, report.intent, round(report.confidence, 4), slots))
