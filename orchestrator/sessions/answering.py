"""Which turns wait for an answer that the server makes by itself, and when it is made (heart)."""

from collections.abc import Callable

from orchestrator.scheduling.work import ReplyCall, ReplyText
from orchestrator.sessions.conversation import Conversation, Entry
from orchestrator.sessions.figures import TurnTimes
from orchestrator.sessions.head_start import Prospect
from orchestrator.sessions.listening import Listener
from orchestrator.sessions.response import ResponseRun
from orchestrator.sessions.speaking import Speaker
from orchestrator.sessions.states import Ear
from orchestrator.sessions.turns import TurnWindow
from orchestrator.sessions.utterance import Heard
from orchestrator.wire.client import ResponseParams
from orchestrator.wire.items import InputAudio, Message
from orchestrator.wire.server import ErrorBody
from orchestrator.wire.session import FunctionTool


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
        self._again: ResponseRun | None = None
        self._silence: tuple[str, int] | None = None

    @property
    def owes(self) -> bool:
        """Whether the server is to make an answer by itself."""
        return self.is_due or self._again is not None

    def interrupt(self) -> None:
        """The user speaks or types: a reply that runs or sounds is cut, and is owed again where it was not heard."""
        self._again = None
        self._owed = self._speaker.interrupt() or self._owed

    def abandon(self) -> None:
        """Nobody is there to get an answer: what is being made of one stops. One that the server makes by itself, and
        of which nothing was heard, is made when somebody is back; so is one that was taken back for other words."""
        self.is_due = self._speaker.abandon() or self.is_due

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
        self._failure = self._again = None

    def mend(self, units: set[int], tools: tuple[FunctionTool, ...]) -> None:
        """The words of these turns have changed: what was answered to them is taken back and made again, with the
        client's own parameters where it had asked for it. Calls that can be undone are; then it is the client who goes
        on, with their outputs, as after any call."""
        run = self._speaker.take_back(min(units))
        if run is None:
            return
        undo = {
            tool.name: tool.chorale.reversible for tool in tools if tool.chorale and tool.chorale.reversible
        }
        undone = [(str(undo[call.name]), call.arguments) for call in run.calls if call.name in undo]
        if undone:
            calls = tuple(ReplyCall("", at, *reversed(call)) for at, call in enumerate(reversed(undone)))
            self._speaker.say(run.turn_id, calls)
        else:
            self._again = run

    def advance(self, listener: Listener, question: Callable[[int], str | None]) -> None:
        """Makes the answer that is due, if all of the turn is in and agreed upon. `question` gives what the user of a
        turn is to be asked instead."""
        if not (self.is_due or self._failure or self._again) or self._speaker.current is not None:
            return
        if listener.ear.state is not Ear.QUIET or not self._conversation.is_complete():
            return
        failure, self._failure = self._failure, None
        again, self._again = self._again, None
        if self.is_due:
            self.is_due = self._owed = False
            times, self._times = self._times, None
            asked = question(self._turns.turn.id)
            if asked is not None:
                self._turns.close()  # what follows answers the question
                self._speaker.say(self._turns.turn.id, (ReplyText("", asked),), times)
            else:
                self._speaker.create(ResponseParams(), self._turns.turn.id, automatic=True, times=times)
        elif again is not None:
            self._speaker.create(again.params, again.turn_id, again.automatic)
        elif failure is not None:
            self._speaker.fail(ResponseParams(), failure, self._turns.turn.id)

    def prospect(self, listener: Listener) -> Prospect | None:
        """Returns what would be asked by itself if the user's turn ended with its present silence, or as soon as all of
        it is agreed upon; None where that is nothing."""
        said = listener.foreseen
        if self._conversation.pending():
            return None
        if said is None:
            return self._awaited(listener)
        if self._speaker.current is not None:
            return None
        self._silence = (said.item_id, said.stop)
        item = Message(role="user", content=(InputAudio(transcript=said.text),))
        return self._speaker.foresee(self._silence, Entry(item, said.began_us))

    def _awaited(self, listener: Listener) -> Prospect | None:
        """What will be asked once everything has been agreed upon."""
        is_due = self.is_due and self._speaker.current is None and listener.ear.state is Ear.QUIET
        if not (is_due or self._speaker.is_waiting) or self._conversation.is_complete():
            return None
        last = self._conversation.last_id or ""
        if self._silence is None or self._silence[0] != last:
            self._silence = (last, 0)
        return self._speaker.foresee(self._silence)
