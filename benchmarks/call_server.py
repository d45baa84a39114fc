"""A server for `call_cost`: answers offers in one of two ways, with nothing behind them, and tells what it has used.

``python -m benchmarks.call_server aiortc`` echoes as aiortc's own examples do; ``chorale`` has our door with a session
that listens to everything and speaks whenever it hears something. The port is the first line of its output.
"""

import resource
import sys
import threading
import time
from typing import Any

import numpy as np
import uvloop
from aiortc import MediaStreamTrack, RTCConfiguration, RTCPeerConnection, RTCSessionDescription
from av import AudioFrame
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from benchmarks.call_cost import speech
from benchmarks.stand_ins import HeardBy, QuietDirectory, QuietSession
from modalities.ports import Pcm
from orchestrator.sessions.links import SessionRequest
from orchestrator.transports.server import ServerOptions, listen, make_server
from orchestrator.transports.webrtc import CallDoor

LOUD = 1_000
QUIET_S = 0.2
watching = False
"""Set while delays are measured: looking into every frame would count as aiortc's cost."""

BYTES_PER_SAMPLE_HEARD = 3  # 16 kHz in, 24 kHz of 2 bytes out


class Onsets:
    """When sound began, after at least 200 ms of quiet: the times at which this process could have acted on it."""

    def __init__(self) -> None:
        self.times_s: list[float] = []
        self._quiet_since_s = 0.0

    def hear(self, pcm: Pcm) -> bool:
        """Takes sound in as it is handed on; tells whether it is loud."""
        now_s = time.monotonic()
        if np.abs(pcm[::8]).max(initial=0) < LOUD:
            return False
        if now_s - self._quiet_since_s > QUIET_S:
            self.times_s.append(now_s)
        self._quiet_since_s = now_s
        return True


onsets = Onsets()


class WatchedTrack(MediaStreamTrack):
    """Passes a track on and notes its onsets."""

    kind = "audio"

    def __init__(self, source: MediaStreamTrack) -> None:
        super().__init__()
        self._source = source

    async def recv(self) -> AudioFrame:
        frame = await self._source.recv()
        assert isinstance(frame, AudioFrame)
        if watching:
            onsets.hear(frame.to_ndarray()[0])
        return frame


class SpeakingSession(QuietSession):
    """For each piece of loud sound it plays as much speech."""

    def __init__(self, voice: bytes) -> None:
        super().__init__(HeardBy(self._heard))
        self._voice = voice
        self._spoken = 0

    def _heard(self, position: int, pcm: Pcm) -> None:
        playout = self.link.playout if self.link is not None else None
        if not onsets.hear(pcm) or playout is None:
            return
        start = self._spoken % (len(self._voice) // 2)
        piece = self._voice[start : start + len(pcm) * BYTES_PER_SAMPLE_HEARD]
        self._spoken += len(piece)
        playout.play("resp", piece)


async def answer_by_aiortc(offer: str) -> str:
    """The echo of aiortc's examples."""
    peer = RTCPeerConnection(RTCConfiguration(iceServers=[]))
    _peers.append(peer)

    @peer.on("track")
    def echo(track: MediaStreamTrack) -> None:
        peer.addTrack(WatchedTrack(track))

    await peer.setRemoteDescription(RTCSessionDescription(offer, "offer"))
    await peer.setLocalDescription(await peer.createAnswer())
    return peer.localDescription.sdp


_peers: list[RTCPeerConnection] = []


def application(way: str) -> Starlette:
    """The two routes."""
    voice = 2 * speech(24_000).tobytes()
    door = CallDoor(QuietDirectory(lambda: SpeakingSession(voice)))

    async def call(request: Request) -> Response:
        offer = (await request.body()).decode()
        if way == "aiortc":
            call_id, answer = "rtc_0", await answer_by_aiortc(offer)
        else:
            call_id, answer = await door.answer(offer, SessionRequest("bench", 1))
        headers = {"Location": f"/v1/realtime/calls/{call_id}"}
        return Response(answer, 201, headers, media_type="application/sdp")

    async def usage(_: Request) -> Response:
        used: dict[str, Any] = {
            "cpu_s": time.process_time(),
            "wall_s": time.monotonic(),
            "threads": threading.active_count(),
            "memory_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        }
        return JSONResponse(used)

    async def delays(_: Request) -> Response:
        global watching
        watching = True
        return JSONResponse(onsets.times_s)

    routes = [
        Route("/onsets", delays),
        Route("/v1/realtime/calls", call, methods=["POST"]),
        Route("/usage", usage),
    ]
    return Starlette(routes=routes)


async def main(way: str) -> None:
    """Serves until it is killed."""
    sockets = listen("127.0.0.1", 0)
    print(sockets[0].getsockname()[1], flush=True)
    await make_server(application(way), ServerOptions()).serve(sockets)


if __name__ == "__main__":
    uvloop.run(main(sys.argv[1]))
