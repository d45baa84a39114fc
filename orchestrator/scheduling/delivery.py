"""How a report gets from the worker's pipe to its session: by the loop, in a call of its own, so that a session which
fails over it harms neither the worker nor another session. A word of a reply goes at once where no report is before it.
"""

import asyncio
from collections.abc import Callable

from orchestrator.scheduling.work import ReplyText, Report


class Delivery:
    """Keeps the order of reports. Whatever `deliver` raises goes to the event loop's exception handler."""

    __slots__ = ("_deliver", "_waiting")

    def __init__(self, deliver: Callable[[Report], None]) -> None:
        self._deliver = deliver
        self._waiting = 0

    def send(self, report: Report) -> None:
        if type(report) is ReplyText and not self._waiting:
            with self:
                self._deliver(report)
        else:
            self._waiting += 1
            asyncio.get_running_loop().call_soon(self._send_waiting, report)

    def _send_waiting(self, report: Report) -> None:
        self._waiting -= 1
        self._deliver(report)

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, fault: BaseException | None, trace: object) -> bool:
        if not isinstance(fault, Exception):
            return False
        context = {"message": "a session failed over a word of its reply", "exception": fault}
        asyncio.get_running_loop().call_exception_handler(context)
        return True
