"""A response's items on their way to clients and into the conversation (heart)."""

from msgspec import UNSET, UnsetType

from orchestrator.scheduling.work import ReplyCall, ReplyText
from orchestrator.sessions.conversation import Conversation, Entry
from orchestrator.sessions.effects import NoteTurn
from orchestrator.sessions.outbound import Outbound
from orchestrator.sessions.response import DoneReason, DoneStatus, ResponseRun
from orchestrator.wire import server as wire
from orchestrator.wire.items import Item, ItemStatus
from orchestrator.wire.splitting import parts_of


class Showing:
    """Opens and closes the items of responses, in the protocol's order."""

    def __init__(self, out: Outbound, conversation: Conversation) -> None:
        self._out = out
        self._conversation = conversation

    def item(self, run: ResponseRun, item: Item) -> None:
        self._out.emit(wire.OutputItemAdded(run.id, run.output_index(item), item))
        if run.in_conversation:
            # Behind what it answers: what the user added since then is not in its context, and waits for an answer.
            entry = Entry(item, began_us=run.asked_us, response_id=run.id)
            self._out.emit(wire.ItemAdded(item, self._conversation.add(entry)))

    def more(self, run: ResponseRun, report: ReplyText | ReplyCall) -> None:
        """Sends more of a reply; sentences that are whole now wait in `run.unspoken`."""
        if not isinstance(report, ReplyText):
            self._more_call(run, report)
            return
        for text in self._parts(report.text):
            if run.message is None:
                self.item(run, run.open_message())
                self._out.emit(*run.message_opened())
            event, sentences = run.add_text(text, self._out.attended_us)
            self._out.emit(event)
            run.unspoken.extend(sentences)

    def _parts(self, text: str) -> tuple[str, ...]:
        if self._out.rules.heeds:
            return parts_of(text)
        return (text,) if text else ()

    def _more_call(self, run: ResponseRun, report: ReplyCall) -> None:
        if not run.takes_call(report.index):
            return
        if not run.has_call(report.index):
            self.item(run, run.open_call(report.index, report.name or ""))
        self._out.emit(*run.add_arguments(report.index, report.arguments))

    def close(self, run: ResponseRun, status: ItemStatus) -> None:
        for events, item in run.close_items(status):
            self._out.emit(*events)
            self._out.emit(wire.OutputItemDone(run.id, run.output_index(item), item))
            entry = self._conversation.get(str(item.id)) if run.in_conversation else None
            if entry is not None:
                entry.item = item
                self._out.emit(wire.ItemDone(item, self._conversation.previous_of(entry.id)))
                if run.is_truncated and entry.heard is not None:
                    self._conversation.cut(entry.id, entry.heard)

    def end(
        self,
        run: ResponseRun,
        status: DoneStatus,
        reason: DoneReason | UnsetType = UNSET,
        error: wire.ErrorBody | UnsetType = UNSET,
    ) -> None:
        """Closes what is open of a response, and the response."""
        self.close(run, "completed" if status == "completed" else "incomplete")
        self._out.emit(*run.end(status, reason, error))
        if run.limits:
            limits = (wire.RateLimit(one.name, one.limit, one.remaining, one.reset_s) for one in run.limits)
            self._out.emit(wire.RateLimitsUpdated(tuple(limits)))

    def note(self, run: ResponseRun) -> None:
        """Once for an answer to a spoken turn: at its first sound, or at its end where it had none."""
        times, run.times = run.times, None
        if times is not None and times.token_us is not None:
            self._out.do(NoteTurn(times))
