"""Sound of replies on its way from the synthesiser to the log: hearts see how much there is, and say what is sent."""

from dataclasses import replace

from msgspec import structs

from orchestrator.scheduling.work import SpeechPiece
from orchestrator.sessions.effects import EmitAudio
from orchestrator.sessions.links import LoggedAudio
from orchestrator.wire.session import PCM


class Pieces:
    """Holds pieces by job and number until they are sent or not wanted: at most those of the jobs that run."""

    def __init__(self) -> None:
        self._pcm: dict[tuple[str, int], bytes] = {}
        self._next: dict[str, LoggedAudio] = {}  # by item: where its next piece begins, until there is none

    def __len__(self) -> int:
        return len(self._pcm)

    def keep(self, piece: SpeechPiece) -> SpeechPiece:
        """Takes the sound out of a piece, and returns it without."""
        self._pcm[(piece.job_id, piece.index)] = piece.audio
        return structs.replace(piece, audio=b"")

    def sent(self, effect: EmitAudio, event_id: str) -> LoggedAudio:
        """Returns what goes into the log for a piece that is sent, and holds it no longer."""
        before = self._next.get(effect.item_id)
        entry = LoggedAudio(
            event_id,
            effect.response_id,
            effect.item_id,
            effect.output_index,
            effect.content_index,
            self._pcm.pop((effect.job_id, effect.index), b""),
            effect.format,
            0 if before is None else before.start,
        )
        stop = entry.start + len(entry.pcm) // 2
        self._next[effect.item_id] = replace(entry, pcm=b"", start=stop)
        return entry

    def ended(self, item_id: str, event_id: str) -> LoggedAudio | None:
        """No more sound of an item follows: returns what goes into the log to say so, None where nothing is held back
        for it."""
        before = self._next.pop(item_id, None)
        if before is None or before.format == PCM:
            return None
        return replace(before, event_id=event_id, last=True)

    def drop(self, piece: SpeechPiece) -> None:
        """Lets one go. Idempotent."""
        self._pcm.pop((piece.job_id, piece.index), None)

    def forget(self, job_id: str) -> None:
        """Lets all of a job go."""
        for key in [key for key in self._pcm if key[0] == job_id]:
            del self._pcm[key]

    def clear(self) -> None:
        self._pcm.clear()
        self._next.clear()
