"""A voice assistant as a competent user of Pipecat 1.14 builds it for low latency, with the models that Chorale ships.

Run by an interpreter that has Pipecat; it imports nothing of this repository::

    python pipecat_voice.py serve --whisper FOLDER --llm MODEL.gguf --voice VOICE.onnx --stop-secs 0.2

The first line of its output is its port. It answers offers at ``/v1/realtime/calls`` as Chorale does, takes 16 kHz PCM
at ``/socket/NAME``, and prints a JSON line for each step of a turn: ``{"call", "type", "at"}``, `type` as in the
Realtime protocol, `at` by the machine's monotonic clock.

Models are loaded once and shared by all sessions; the language model is llama.cpp's own server in a process beside it.
The recogniser decodes with faster-whisper's default beam of 5: Pipecat has no setting for it.
Pipecat's default end of turn (Smart Turn) is replaced by the VAD's silence alone, its fastest way.
"""

import argparse
import asyncio
import functools
import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

PREFIX = "input_audio_buffer."
TRANSCRIBED = "conversation.item.input_audio_transcription.completed"
TEXT = "response.output_audio_transcript.delta"


def free_socket() -> socket.socket:
    """Returns a listening socket on a free port of this machine."""
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    listening.listen(128)
    return listening


def serve_llm(model: str, port: int, parallel: int, threads: int) -> None:
    """llama.cpp's server core until the process is ended."""
    import xllamacpp

    parameters = xllamacpp.CommonParams()
    parameters.model.path = model
    parameters.n_ctx = 2048 * parallel
    parameters.n_parallel = parallel
    parameters.cpuparams.n_threads = threads
    parameters.cpuparams_batch.n_threads = threads
    parameters.n_gpu_layers = 0
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = port
    parameters.verbosity = 0
    server = xllamacpp.Server(parameters)
    assert server is not None
    while os.getppid() != 1:
        time.sleep(1)


def tell(call: str, kind: str, **fields: object) -> None:
    """Prints one step of a turn."""
    print(json.dumps({"call": call, "type": kind, "at": time.monotonic(), **fields}), flush=True)


def make_bot(arguments: argparse.Namespace, llm_port: int) -> Any:
    """Returns what answers one connection, its models loaded."""
    import pipecat.services.piper.tts as piper
    import pipecat.services.whisper.stt as whisper
    from pipecat.audio.vad.silero import SileroVADAnalyzer
    from pipecat.audio.vad.vad_analyzer import VADParams
    from pipecat.frames.frames import (
        BotStoppedSpeakingFrame,
        LLMFullResponseEndFrame,
        LLMTextFrame,
        TranscriptionFrame,
        TTSAudioRawFrame,
        TTSStartedFrame,
        VADUserStartedSpeakingFrame,
        VADUserStoppedSpeakingFrame,
    )
    from pipecat.observers.base_observer import BaseObserver, FramePushed
    from pipecat.pipeline.pipeline import Pipeline
    from pipecat.pipeline.worker import PipelineParams, PipelineWorker
    from pipecat.processors.aggregators.llm_context import LLMContext
    from pipecat.processors.aggregators.llm_response_universal import (
        LLMContextAggregatorPair,
        LLMUserAggregatorParams,
    )
    from pipecat.services.openai.llm import OpenAILLMService
    from pipecat.turns.user_stop.speech_timeout_user_turn_stop_strategy import (
        SpeechTimeoutUserTurnStopStrategy,
    )
    from pipecat.turns.user_turn_strategies import UserTurnStrategies
    from pipecat.workers.runner import WorkerRunner

    # One model for all sessions: both services would load one of their own.
    load_whisper = functools.partial(whisper.WhisperModel, cpu_threads=arguments.threads)
    shared_whisper = functools.cache(
        lambda name, device, compute: load_whisper(name, device=device, compute_type=compute)
    )
    whisper.WhisperModel = lambda name, device, compute_type: shared_whisper(name, device, compute_type)
    shared_voice = functools.cache(piper.PiperVoice.load)
    piper.PiperVoice.load = shared_voice
    voice = Path(arguments.voice)

    steps = {
        VADUserStartedSpeakingFrame: PREFIX + "speech_started",
        VADUserStoppedSpeakingFrame: PREFIX + "speech_stopped",
        TranscriptionFrame: TRANSCRIBED,
        LLMTextFrame: TEXT,
        TTSStartedFrame: "sentence",
        TTSAudioRawFrame: "output_audio_buffer.started",
        LLMFullResponseEndFrame: "response.done",
        BotStoppedSpeakingFrame: "output_audio_buffer.stopped",
    }
    several = (TTSAudioRawFrame, LLMTextFrame)

    class Steps(BaseObserver):  # type: ignore[misc]  # checked where the peer is not installed
        """Tells each step when its frame is pushed first."""

        def __init__(self, call: str) -> None:
            super().__init__()
            self._call = call
            self._last: object = None

        async def on_push_frame(self, pushed: FramePushed) -> None:
            if not pushed.first_push:
                return
            kind = steps.get(type(pushed.frame))
            if kind is None or (kind == self._last and isinstance(pushed.frame, several)):
                return
            self._last = kind
            text = getattr(pushed.frame, "text", None)
            tell(self._call, kind, **({} if text is None else {"text": text}))

    def services() -> tuple[Any, Any, Any]:
        recognizer = whisper.WhisperSTTService(
            device="cpu",
            compute_type="int8",
            settings=whisper.WhisperSTTService.Settings(model=arguments.whisper),
        )
        model = OpenAILLMService(
            api_key="none",
            base_url=f"http://127.0.0.1:{llm_port}/v1",
            settings=OpenAILLMService.Settings(
                model="model",
                temperature=0.0,
                max_tokens=arguments.max_tokens,
            ),
        )
        speaker = piper.PiperTTSService(
            download_dir=voice.parent, settings=piper.PiperTTSService.Settings(voice=voice.stem)
        )
        return recognizer, model, speaker

    async def bot(call: str, transport: Any) -> None:
        recognizer, model, speaker = services()
        pair = LLMContextAggregatorPair(
            LLMContext([{"role": "system", "content": arguments.instructions}]),
            user_params=LLMUserAggregatorParams(
                vad_analyzer=SileroVADAnalyzer(params=VADParams(stop_secs=arguments.stop_secs)),
                user_turn_strategies=UserTurnStrategies(
                    stop=[SpeechTimeoutUserTurnStopStrategy(user_speech_timeout=0.0)]
                ),
            ),
        )
        pipeline = Pipeline(
            [transport.input(), recognizer, pair.user(), model, speaker, transport.output(), pair.assistant()]
        )
        worker = PipelineWorker(
            pipeline,
            params=PipelineParams(audio_in_sample_rate=16_000, audio_out_sample_rate=24_000),
            observers=[Steps(call)],
        )

        async def gone(*_: object) -> None:
            await worker.cancel()

        transport.add_event_handler("on_client_disconnected", gone)

        runner = WorkerRunner(handle_sigint=False)
        await runner.add_workers(worker)
        await runner.run()

    services()  # loads
    return bot


def application(bot: Any) -> Any:
    """The two doors."""
    from fastapi import FastAPI, Request, Response, WebSocket
    from pipecat.frames.frames import Frame, InputAudioRawFrame, OutputAudioRawFrame
    from pipecat.serializers.base_serializer import FrameSerializer
    from pipecat.transports.base_transport import TransportParams
    from pipecat.transports.smallwebrtc.connection import SmallWebRTCConnection
    from pipecat.transports.smallwebrtc.transport import SmallWebRTCTransport
    from pipecat.transports.websocket.fastapi import FastAPIWebsocketParams, FastAPIWebsocketTransport

    class RawSound(FrameSerializer):  # type: ignore[misc]  # as above
        """16-bit PCM both ways, nothing around it."""

        async def serialize(self, frame: Frame) -> bytes | None:
            return frame.audio if isinstance(frame, OutputAudioRawFrame) else None

        async def deserialize(self, data: str | bytes) -> Frame | None:
            if isinstance(data, str):
                return None
            return InputAudioRawFrame(audio=data, sample_rate=16_000, num_channels=1)

    app = FastAPI()
    running: set[asyncio.Task[None]] = set()

    @app.post("/v1/realtime/calls")
    async def call(request: Request) -> Response:
        connection = SmallWebRTCConnection()
        await connection.initialize(sdp=(await request.body()).decode(), type="offer")
        transport = SmallWebRTCTransport(
            connection, params=TransportParams(audio_in_enabled=True, audio_out_enabled=True)
        )
        answer = connection.get_answer()
        task = asyncio.create_task(bot(answer["pc_id"], transport))
        running.add(task)
        task.add_done_callback(running.discard)
        where = {"Location": f"/v1/realtime/calls/{answer['pc_id']}"}
        return Response(answer["sdp"], 201, where, media_type="application/sdp")

    @app.websocket("/socket/{name}")
    async def sound(socket: WebSocket, name: str) -> None:
        await socket.accept()
        parameters = FastAPIWebsocketParams(
            audio_in_enabled=True, audio_out_enabled=True, serializer=RawSound()
        )
        await bot(name, FastAPIWebsocketTransport(socket, parameters))

    @app.get("/readyz")
    async def ready() -> Response:
        return Response("ready")

    return app


async def wait_for_llm(port: int) -> None:
    """Returns when the language model answers."""
    for _ in range(600):
        try:
            await asyncio.to_thread(urllib.request.urlopen, f"http://127.0.0.1:{port}/health", None, 2)
        except (urllib.error.URLError, OSError):
            await asyncio.sleep(0.1)
        else:
            return
    raise SystemExit("the language model did not start")


async def serve(arguments: argparse.Namespace, llm_port: int) -> None:
    """Serves until it is killed."""
    import uvicorn

    await wait_for_llm(llm_port)
    server = uvicorn.Server(uvicorn.Config(application(make_bot(arguments, llm_port)), log_level="warning"))
    listening = free_socket()
    print(listening.getsockname()[1], flush=True)
    await server.serve([listening])


def run(arguments: argparse.Namespace) -> None:
    """Runs the language model and the assistant until they are ended."""
    from loguru import logger

    logger.remove()
    logger.add(sys.stderr, level=arguments.log)
    with free_socket() as probe:
        llm_port = probe.getsockname()[1]
    llm = subprocess.Popen(
        [sys.executable, __file__, "llm", arguments.llm, str(llm_port), "4", str(arguments.threads)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        asyncio.run(serve(arguments, llm_port))
    finally:
        llm.kill()
        llm.wait()


def main() -> None:
    """Reads what to do."""
    if sys.argv[1] == "llm":
        serve_llm(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5]))
        return
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["serve"])
    parser.add_argument("--whisper", required=True)
    parser.add_argument("--llm", required=True)
    parser.add_argument("--voice", required=True)
    parser.add_argument("--stop-secs", type=float, default=0.2)
    parser.add_argument("--max-tokens", type=int, default=60)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--instructions", default="You are a helpful voice assistant.")
    parser.add_argument("--log", default="WARNING")
    run(parser.parse_args())


if __name__ == "__main__":
    main()
