"""A server for `chorale bench rtc`: hears calls in one of three ways and tells what it made of them.

``python -m benchmarks.rtc_server aiortc`` echoes as aiortc's own examples do; ``aiortc+numpy`` is the same with the
audio level computed by numpy; ``chorale`` is our door, with each call's sound in its session's ring and the real voice
activity detector, answering with silence. The port is the first line of its output.
"""

import cProfile
import math
import pstats
import sys
import threading
import time
from typing import Any

import numpy as np
import uvloop
from aiortc import MediaStreamTrack, RTCConfiguration, RTCPeerConnection, RTCSessionDescription, rtp
from av import AudioFrame
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from benchmarks.stand_ins import QuietDirectory, QuietSession
from modalities.adapters.silero import SileroDetector
from orchestrator.clock import MonotonicClock
from orchestrator.ids import random_id
from orchestrator.observability.loop_lag import LoopLag
from orchestrator.sessions.events import AudioHeard
from orchestrator.sessions.intake import SpeechIntake
from orchestrator.sessions.links import SessionRequest
from orchestrator.transports.server import ServerOptions, listen, make_server
from orchestrator.transports.webrtc import CallDoor
from orchestrator.workers.voice_activity import VoiceActivity

RING_SAMPLES = 120 * 16_000
WINDOWS_PER_S = 31.25
SHOWN_FUNCTIONS = 14


class Listening(QuietSession):
    """A session that only listens: its ring, the shared detector, nothing behind them."""

    def __init__(self, voice: VoiceActivity) -> None:
        self.judged = 0
        super().__init__(SpeechIntake(voice, RING_SAMPLES, MonotonicClock().now_us, self._heard))

    def _heard(self, event: AudioHeard) -> None:
        self.judged += len(event.probabilities)


class Ours:
    """Our door. What is processed is what the voice detector has judged, in frames of 20 ms."""

    def __init__(self) -> None:
        voice = VoiceActivity(SileroDetector())
        self._directory = QuietDirectory(lambda: Listening(voice))
        self._door = CallDoor(self._directory)

    async def answer(self, offer: str) -> str:
        _, answer = await self._door.answer(offer, SessionRequest("bench", 1))
        return answer

    def processed(self) -> float:
        """Frames of 20 ms that were dealt with since the start."""
        return sum(session.judged for session in self._directory.sessions) * 50 / WINDOWS_PER_S


class Echo:
    """The echo of aiortc's examples. What is processed is what has gone through the track."""

    def __init__(self) -> None:
        self._peers: list[RTCPeerConnection] = []
        self._frames = 0

    async def answer(self, offer: str) -> str:
        peer = RTCPeerConnection(RTCConfiguration(iceServers=[]))
        self._peers.append(peer)

        @peer.on("track")
        def echo(track: MediaStreamTrack) -> None:
            peer.addTrack(Counted(track, self))

        await peer.setRemoteDescription(RTCSessionDescription(offer, "offer"))
        await peer.setLocalDescription(await peer.createAnswer())
        return peer.localDescription.sdp

    def count(self) -> None:
        self._frames += 1

    def processed(self) -> float:
        """As `Ours.processed`."""
        return self._frames


class Counted(MediaStreamTrack):
    """Passes a track on and counts its frames."""

    kind = "audio"

    def __init__(self, source: MediaStreamTrack, echo: Echo) -> None:
        super().__init__()
        self._source = source
        self._echo = echo

    async def recv(self) -> AudioFrame:
        frame = await self._source.recv()
        assert isinstance(frame, AudioFrame)
        self._echo.count()
        return frame


def level_by_numpy(frame: AudioFrame) -> int:
    """The level of RFC 6465, appendix A, as `aiortc.rtp.compute_audio_level_dbov`, over all samples at once."""
    samples = np.frombuffer(memoryview(frame.planes[0]), np.int16)
    square = float(np.dot(samples.astype(np.float64), samples)) / (frame.samples * 32_767.0**2)
    return round(max(20 * math.log10(math.sqrt(square)), -127)) if square > 0 else -127


class Watch:
    """What the benchmark asks for: processor time by thread, lateness of the loop, a profile of its thread."""

    def __init__(self, hearing: Ours | Echo) -> None:
        self._hearing = hearing
        self._lag = LoopLag(0.01)
        self._profile: cProfile.Profile | None = None

    async def usage(self, _: Request) -> Response:
        """Figures since the start; the lag since this was last asked."""
        self._lag.start()
        lag = self._lag.statistics()
        self._lag.clear()
        used: dict[str, Any] = {
            "cpu_s": time.process_time(),
            "wall_s": time.monotonic(),
            "loop_cpu_s": time.thread_time(),
            "threads": threading.active_count(),
            "processed": self._hearing.processed(),
            "lag_p99_ms": lag.p99_ms,
        }
        return JSONResponse(used)

    async def profile(self, _: Request) -> Response:
        """Begins a profile of the loop's thread; asked again, ends it and says what took most of its time."""
        if self._profile is None:
            self._profile = cProfile.Profile()
            self._profile.enable()
            return JSONResponse([])
        self._profile.disable()
        rows: dict[Any, Any] = pstats.Stats(self._profile).stats  # type: ignore[attr-defined]  # typeshed lacks it
        total_s = sum(own_s for _, _, own_s, _, _ in rows.values())
        most = sorted(rows.items(), key=lambda row: -row[1][2])[:SHOWN_FUNCTIONS]
        return JSONResponse(
            [
                {
                    "function": _named(*where),
                    "calls": calls,
                    "% of the loop's busy time": 100 * own_s / total_s,
                }
                for where, (_, calls, own_s, _, _) in most
            ]
        )


def _named(file: str, line: int, function: str) -> str:
    path = file.partition("site-packages/")[2] or "/".join(file.split("/")[-3:])
    return function if file == "~" else f"{path}:{function}"


async def main(way: str) -> None:
    """Serves until it is killed."""
    if way == "aiortc+numpy":
        rtp.compute_audio_level_dbov = level_by_numpy
    hearing = Ours() if way == "chorale" else Echo()
    watch = Watch(hearing)

    async def call(request: Request) -> Response:
        answer = await hearing.answer((await request.body()).decode())
        headers = {"Location": f"/v1/realtime/calls/{random_id('rtc')}"}
        return Response(answer, 201, headers, media_type="application/sdp")

    routes = [
        Route("/v1/realtime/calls", call, methods=["POST"]),
        Route("/usage", watch.usage),
        Route("/profile", watch.profile),
    ]
    sockets = listen("127.0.0.1", 0)
    sockets[0].listen(64)
    print(sockets[0].getsockname()[1], flush=True)
    await make_server(Starlette(routes=routes), ServerOptions()).serve(sockets)


if __name__ == "__main__":
    uvloop.run(main(sys.argv[1]))
