"""Which turns wait for an answer that the server makes by itself, and when it is made (heart)."""

from orchestrator.sessions.conversation import Conversation, Entry
from orchestrator.sessions.figures import TurnTimes
from orchestrator.sessions.head_start import Prospect
from orchestrator.sessions.listening import Listener
from orchestrator.sessions.speaking import Speaker
from orchestrator.sessions.states import Ear
from orchestrator.sessions.turns import TurnWindow
from orchestrator.sessions.utterance import Heard
from orchestrator.wire.client import ResponseParams
from orchestrator.wire.items import InputAudio, Message
from orchestrator.wire.server import ErrorBody


class Answering:
    """Answers a turn once all of it is in and somebody is there to hear it."""

    def __init__(self, conversation: Conversation, turns: TurnWindow, speaker: Speaker) -> None:
        self.is_due = False
        self._conversation = conversation
        self._turns = turns
        self._speaker = speaker
        self._owed = False
        self._failure: ErrorBody | None = None
        self._times: TurnTimes | None = None

    def interrupt(self) -> None:
        """The user speaks or types: a reply that runs or sounds is cut, and is owed again where it was not heard."""
        self._owed = self._speaker.interrupt() or self._owed

    def typed(self) -> None:
        """The user has typed something that is to be answered."""
        self.is_due = True
        self._times = None

    def heard(self, heard: Heard) -> None:
        """A final transcript is in."""
        self._times = heard.times if heard.text else self._times
        if not heard.text and self._owed:
            self.is_due = True
        elif heard.error is not None:
            self._failure = heard.error if heard.wants_reply else self._failure
        elif heard.wants_reply:
            self.is_due = True

    def asked(self) -> None:
        """The client has asked for the answer itself."""
        self.is_due = self._owed = False
        self._failure = None

    def advance(self, listener: Listener) -> None:
        """Makes the answer that is due, if all of the turn is in."""
        if not (self.is_due or self._failure) or self._speaker.current is not None:
            return
        if listener.ear.state is not Ear.QUIET or self._conversation.pending():
            return
        failure, self._failure = self._failure, None
        if self.is_due:
            self.is_due = self._owed = False
            times, self._times = self._times, None
            self._speaker.create(ResponseParams(), self._turns.turn.id, automatic=True, times=times)
        elif failure is not None:
            self._speaker.fail(ResponseParams(), failure, self._turns.turn.id)

    def prospect(self, listener: Listener) -> Prospect | None:
        """Returns what would be asked by itself if the user's turn ended with its present silence, or None."""
        said = listener.foreseen
        if said is None or self._speaker.current is not None or self._conversation.pending():
            return None
        item = Message(role="user", content=(InputAudio(transcript=said.text),))
        return self._speaker.foresee((said.item_id, said.stop), Entry(item, said.began_us))
