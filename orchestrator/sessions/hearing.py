"""What the user heard of the assistant's messages (heart): the conversation keeps that much of them and no more."""

from collections import OrderedDict

from orchestrator.errors import WireError
from orchestrator.sessions.conversation import Conversation
from orchestrator.sessions.outbound import Outbound
from orchestrator.sessions.response import OUTPUT_RATE_HZ, ResponseRun
from orchestrator.wire import server as wire
from orchestrator.wire.items import Message

_REMEMBERED_RUNS = 32
_TRUNCATE_TOLERANCE_MS = 500
_SAMPLES_PER_MS = OUTPUT_RATE_HZ // 1_000


class Hearing:
    """Cuts messages by what was played, by estimate where nobody tells, or by the client's word, which settles it."""

    def __init__(self, out: Outbound, conversation: Conversation) -> None:
        self._out = out
        self._conversation = conversation
        self._runs: OrderedDict[str, ResponseRun] = OrderedDict()

    def remember(self, run: ResponseRun) -> None:
        """A client may yet say what it heard of this response's message."""
        if run.message_id is not None:
            self._runs[run.message_id] = run
            while len(self._runs) > _REMEMBERED_RUNS:
                self._runs.popitem(last=False)

    def cancelled(self, run: ResponseRun) -> None:
        """The client has cancelled a response: what was not made into sound by then was not said."""
        entry = self._conversation.get(str(run.message_id)) if run.in_conversation else None
        if entry is not None and run.shape.modality == "audio" and not run.is_truncated:
            entry.heard = run.heard_until(run.sent_samples)

    def interrupted(self, run: ResponseRun) -> bool:
        """Cuts the interrupted message to what was heard; nothing heard takes it back altogether (True then)."""
        if run.message is None:
            return True
        item_id = str(run.message_id)
        entry = self._conversation.get(item_id)
        if entry is None or run.is_truncated:
            return False
        heard = run.heard(self._out.attended_us, self._out.rules.text_grace_us)
        if not heard:
            self._conversation.remove(item_id, remember=True)
            self._out.emit(wire.ItemDeleted(item_id))
        elif run.shape.modality == "text":
            if run.final_status == "cancelled":
                self._conversation.cut(item_id, heard)
        elif len(heard) < len(run.text.rstrip()):
            if run.played_samples is not None:
                self._conversation.cut(item_id, heard)
                played_ms = run.heard_samples(self._out.attended_us) // _SAMPLES_PER_MS
                self._out.emit(wire.ItemTruncated(item_id, 0, played_ms))
            else:
                entry.heard = heard  # until the client says exactly what it played
        return not heard

    def truncate(
        self, item_id: str, content_index: int, audio_end_ms: int, current: ResponseRun | None
    ) -> None:
        """The client's `conversation.item.truncate`: history really ends there. Raises `WireError`; harmless then."""
        entry = self._conversation.get(item_id)
        if entry is None:
            if self._conversation.taken_back(item_id) is not None:
                self._conversation.cut(item_id, "")  # it was taken back since nothing of it was heard
                self._out.emit(wire.ItemTruncated(item_id, content_index, audio_end_ms))
                return
            raise WireError("item_truncate_invalid_item_id", f"There is no item '{item_id}'", "item_id")
        run = current if current and current.message_id == item_id else self._runs.get(item_id)
        if not isinstance(entry.item, Message) or entry.item.role != "assistant":
            raise WireError("invalid_value", "Only assistant messages can be truncated", "item_id")
        if content_index != 0:
            raise WireError("invalid_value", "The item has one content part: expected 0", "content_index")
        if run is not None:
            if audio_end_ms > run.produced_ms + _TRUNCATE_TOLERANCE_MS:
                raise WireError(
                    "invalid_value",
                    f"Audio content of {run.produced_ms}ms is already shorter than {audio_end_ms}ms",
                    "audio_end_ms",
                )
            run.is_truncated = True
            heard = run.heard_until(min(run.sent_samples, audio_end_ms * _SAMPLES_PER_MS))
            self._conversation.cut(item_id, heard)
        elif audio_end_ms == 0:
            self._conversation.cut(item_id, "")
        self._out.emit(wire.ItemTruncated(item_id, content_index, audio_end_ms))
