"""What a session says, under its number: into its log for all who follow, or to one reader alone."""

from orchestrator.buffers.output_log import OutputLog
from orchestrator.ids import event_tag
from orchestrator.sessions.askers import Asker
from orchestrator.sessions.effects import EmitAudio
from orchestrator.sessions.links import Link, LogEntry, LoggedAudio, LoggedEvent
from orchestrator.sessions.pieces import Pieces
from orchestrator.sessions.secrecy import for_holders, told_to
from orchestrator.wire import codec
from orchestrator.wire import server as wire

_SOUND_OVERHEAD = 128
"""What an entry with sound takes beside its samples, in bytes."""

_SPECIAL = frozenset({wire.AudioDone, wire.SessionUpdated})
"""Before which something is written, or which are not the same for all."""


class Writing:
    """Writes a session's log. An entry's event id ends in its number; one that is told to a single reader has a number
    of its own and is in no log."""

    def __init__(self, session_id: str, secret: str, log: OutputLog[LogEntry], pieces: Pieces) -> None:
        self._name = f"event_{event_tag(session_id)}_"
        self._secret = secret
        self._log = log
        self._pieces = pieces
        self._told = 0

    def write(self, event: wire.ServerEvent) -> None:
        """Writes an event; where sound of its item is held back for a codec, that comes before its end."""
        event_id = f"{self._name}{self._log.last + 1}"
        if type(event) not in _SPECIAL:  # a word of a reply, mostly
            data = codec.encode(event, event_id)
            self._log.append(LoggedEvent(data), len(data))
            return
        if type(event) is wire.AudioDone:
            entry = self._pieces.ended(event.item_id, event_id)
            if entry is not None:
                self._log.append(entry, _SOUND_OVERHEAD)
                event_id = f"{self._name}{self._log.last + 1}"
        logged = LoggedEvent(codec.encode(event, event_id))
        if type(event) is wire.SessionUpdated:
            logged = for_holders(logged, event, event_id, self._secret)
        self._log.append(logged, logged.size)

    def sound(self, effect: EmitAudio) -> LoggedAudio:
        """Writes a piece of a reply's sound, and returns it."""
        entry = self._pieces.sent(effect, f"{self._name}{self._log.last + 1}")
        self._log.append(entry, len(entry.pcm) + _SOUND_OVERHEAD)
        return entry

    def tell(self, reader: Link | Asker, event: wire.ServerEvent) -> None:
        """Tells one reader."""
        self._told += 1
        reader.tell(codec.encode(told_to(reader, event, self._secret), f"{self._name}p{self._told}"))
