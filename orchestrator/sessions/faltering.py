"""What is left out of a session or fails where there is too much to do (heart), and how its client is told."""

from msgspec import UNSET

from orchestrator.scheduling.refusals import SPECULATIVE
from orchestrator.scheduling.work import REFUSED, Failed
from orchestrator.sessions.outbound import Outbound
from orchestrator.wire import server as wire
from orchestrator.wire.session import Session

EXPIRED = "deadline_exceeded"


def is_too_much(report: Failed) -> bool:
    """Whether work was refused, or did not end in time: the same might be done when there is less to do."""
    return report.code in (REFUSED, EXPIRED)


class Faltering:
    """Turns failed work into what clients are told. `SessionRules.gives_way` off: only that it failed, as it came."""

    def __init__(self, out: Outbound) -> None:
        self._out = out

    def error(self, report: Failed) -> wire.ErrorBody:
        """Returns what failed, with when to try again where waiting helps."""
        message = report.message
        if report.retry_after_s > 0 and self._out.rules.gives_way and "try again" not in message:
            message = f"{message}; try again in {report.retry_after_s:.1f} s"
        return wire.ErrorBody(type="server_error", message=message, code=report.code)

    def goes_on(self, report: Failed) -> bool:
        """Whether a reply goes on without the sound that failed so: the sentence stays text."""
        return self._out.rules.gives_way and is_too_much(report)

    def tell(
        self,
        report: Failed,
        kind: str,
        view: Session,
        response_id: str | None = None,
        item_id: str | None = None,
    ) -> bool:
        """Tells a session that asked for ``chorale.overload`` what was left out, and why; returns whether it did."""
        extension = view.chorale
        if extension is UNSET or "chorale.overload" not in extension.events or not self.goes_on(report):
            return False
        reason = "shed" if report.reason == SPECULATIVE else report.reason or report.code
        self._out.emit(wire.Overload(reason, kind, report.retry_after_s, response_id, item_id))
        return True
