"""Say what is said in the recorded sessions of samples/sessions/:  .venv/bin/python samples/make_sessions.py

Each is spoken by the server's own voice, its variation switched off, so that the same words give the same sound, and
kept as FLAC at 16 kHz. Only sounds are made here: the sessions beside them are written by hand (docs/replay.md).
"""

import argparse
from pathlib import Path

import av
import numpy as np
from av import AudioFrame

from modalities.adapters.registry import build
from modalities.audio.resample import Resampler

SESSIONS = Path(__file__).parent / "sessions"
RATE_HZ = 16_000
SPOKEN = {
    "alarm-seven-morning": "Set an alarm for seven in the morning.",
    "alarm-tuesday": "Set an alarm for Tuesday at eight o'clock.",
    "book-a-table": "Please book a table.",
    "lights-off-bedroom": "Turn off the light in the bedroom.",
    "lights-on-kitchen": "Turn on the lights in the kitchen.",
    "no-fifteen-minutes": "No, I mean fifteen minutes.",
    "remind-call-anna": "Remind me to call Anna tomorrow.",
    "timer-fifteen": "Set a timer for fifteen minutes.",
    "timer-fifty": "Set a timer for fifty minutes.",
    "weather-boston": "What is the weather in Boston?",
}


def main() -> None:
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter).parse_args()
    SESSIONS.mkdir(exist_ok=True)
    voice = build("speech", "piper", {"variation": 0.0})
    for name, words in SPOKEN.items():
        resampler = Resampler(voice.sample_rate_hz, RATE_HZ)
        sound = np.concatenate((*map(resampler.feed, voice.synthesize(words)), resampler.flush()))
        path = SESSIONS / f"{name}.flac"
        with av.open(path, "w") as container:
            stream = container.add_stream("flac", rate=RATE_HZ, layout="mono")
            frame = AudioFrame.from_ndarray(sound[np.newaxis], format="s16", layout="mono")
            frame.sample_rate = RATE_HZ
            container.mux(stream.encode(frame))
            container.mux(stream.encode(None))
        print(f"{len(sound) / RATE_HZ:5.2f} s  {path.stat().st_size // 1024:4d} KiB  {path.name}")


if __name__ == "__main__":
    main()
