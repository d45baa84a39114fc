"""What would be asked of the language model if the user's turn ended now (heart): made once, until it would be another.

It is looked at with every event of a silence, ten a second, and a prompt of a thousand items takes 2 ms to make.
"""

from orchestrator.errors import WireError
from orchestrator.sessions.asking import reply_work, response_shape
from orchestrator.sessions.conversation import Conversation, Entry
from orchestrator.sessions.head_start import Prospect
from orchestrator.wire.client import ResponseParams
from orchestrator.wire.session import Session


class Foresight:
    """Makes prospects of one conversation and remembers the last one."""

    def __init__(self, conversation: Conversation, conversation_id: str, speech_output: bool) -> None:
        self._conversation = conversation
        self._conversation_id = conversation_id
        self._speech_output = speech_output
        self._view: Session | None = None
        self._of: object = None
        self._last: Prospect | None = None

    def of(
        self, view: Session, params: ResponseParams, silence: tuple[str, int], entry: Entry | None
    ) -> Prospect | None:
        """Returns what would be asked at the end of `silence`, with `entry` in the conversation where it is given; None
        where the conversation is too long to be asked about."""
        said = None if entry is None else (entry.item, entry.began_us)
        of = (self._conversation.changes, params, silence, said)
        if self._last is None or self._view is not view or self._of != of:
            try:
                work = reply_work(view, params, self._conversation, self._conversation_id, entry)
            except WireError:
                return None
            shape = response_shape(view, params, self._conversation_id, self._speech_output)
            self._view, self._of = view, of
            self._last = Prospect(silence, work, shape.modality == "audio", view.audio.output.speed)
        return self._last
