"""Sound of replies on its way from the synthesiser to the log: hearts see how much there is, and say what is sent."""

from msgspec import structs

from orchestrator.scheduling.work import SpeechPiece
from orchestrator.sessions.effects import EmitAudio
from orchestrator.sessions.links import LoggedAudio


class Pieces:
    """Holds pieces by job and number until they are sent or not wanted: at most those of the jobs that run."""

    def __init__(self) -> None:
        self._pcm: dict[tuple[str, int], bytes] = {}

    def __len__(self) -> int:
        return len(self._pcm)

    def keep(self, piece: SpeechPiece) -> SpeechPiece:
        """Takes the sound out of a piece, and returns it without."""
        self._pcm[(piece.job_id, piece.index)] = piece.audio
        return structs.replace(piece, audio=b"")

    def sent(self, effect: EmitAudio, event_id: str) -> LoggedAudio:
        """Returns what goes into the log for a piece that is sent, and holds it no longer."""
        return LoggedAudio(
            event_id,
            effect.response_id,
            effect.item_id,
            effect.output_index,
            effect.content_index,
            self._pcm.pop((effect.job_id, effect.index), b""),
            effect.format,
        )

    def drop(self, piece: SpeechPiece) -> None:
        """Lets one go. Idempotent."""
        self._pcm.pop((piece.job_id, piece.index), None)

    def forget(self, job_id: str) -> None:
        """Lets all of a job go."""
        for key in [key for key in self._pcm if key[0] == job_id]:
            del self._pcm[key]

    def clear(self) -> None:
        self._pcm.clear()
