"""From the first sample of an interrupting voice to the last audible one of the reply, at the server's own track."""

import asyncio
import itertools

import numpy as np
import pytest

from modalities.adapters.registry import build
from modalities.adapters.silero import SileroDetector
from modalities.audio import g711
from modalities.audio.resample import Resampler
from modalities.ports import Pcm, VoiceActivityDetector
from orchestrator.scheduling.job import Job
from orchestrator.scheduling.work import (
    Replied,
    Reply,
    ReplyText,
    Report,
    Speak,
    SpeechPiece,
    Spoke,
    Transcribe,
)
from orchestrator.sessions.links import LinkKind
from orchestrator.transports.playing import PlayoutTrack
from orchestrator.transports.rtp_order import SoundCodec
from orchestrator.wire.client import CreateResponse
from tests.fakes.links import FakeLink
from tests.fakes.workers import FakeWorkers, obliging
from tests.sessions.running import ASK, SPEECH, House, in_house
from tests.virtual_time import VirtualClock

BACKLOG_S = 8
FRAME_S = 0.02
AUDIBLE = 100


def talkative(job: Job) -> list[Report]:
    """Every reply is one sentence of which eight seconds of noise are there at once."""
    match job.work:
        case Reply():
            return [ReplyText(job.id, "This takes a while."), Replied(job.id, "stop")]
        case Speak():
            noise = np.random.default_rng(5).normal(0, 6_000, 24_000 * BACKLOG_S).astype(np.int16)
            pieces = [noise[at : at + 4_800].tobytes() for at in range(0, len(noise), 4_800)]
            told: list[Report] = [
                SpeechPiece(job.id, index, 24_000, 4_800, piece) for index, piece in enumerate(pieces)
            ]
            return [*told, Spoke(job.id, len(pieces))]
        case Transcribe() if job.work.draft:
            return []
        case _:
            return list(obliging(job))


def interrupt(voice: Pcm, detector: VoiceActivityDetector | None = None) -> None:
    """Lets `voice` (16 kHz, sound from its first sample on) cut off a reply of which more than 5 s are in hand, and
    checks what left the server's track."""

    async def test(house: House) -> None:
        loop = asyncio.get_running_loop()
        if detector is not None:
            house.detector.detector = detector
        runner = house.registry.open(ASK, LinkKind.CALL)
        link = FakeLink(kind=LinkKind.CALL)
        track = PlayoutTrack(VirtualClock(), 120, runner.playout_drained)
        track.use(SoundCodec.PCMU)  # a packet is its sound: nothing to decode, no memory of the frame before
        link.playout = track  # type: ignore[assignment]
        link.attach(runner)
        sent: list[tuple[float, int, int]] = []

        async def play() -> None:
            while True:
                packet = await track.recv()
                assert packet.pts is not None
                loudest = int(np.abs(g711.decode_mulaw(bytes(packet)).astype(np.int32)).max())
                sent.append((loop.time(), packet.pts, loudest))

        playing = asyncio.create_task(play())
        await runner.submit(link.id, CreateResponse())
        while not sent or sent[-1][2] <= AUDIBLE:  # noqa: ASYNC110 - the track tells nobody
            await asyncio.sleep(FRAME_S)
        await asyncio.sleep(1)
        assert track.queued_s > 5
        began_s = loop.time()
        for at in range(0, len(voice) - 319, 320):
            runner.intake.append_at(runner.intake.position, voice[at : at + 320])
            await asyncio.sleep(FRAME_S)
        playing.cancel()
        await asyncio.wait([playing])
        audible_s = [at_s for at_s, _, loudest in sent if loudest > AUDIBLE]
        assert began_s < audible_s[-1] <= began_s + 0.2
        assert sent[-1][0] >= began_s + 0.7
        assert {later[1] - one[1] for one, later in itertools.pairwise(sent)} == {160}
        assert track.queued_s == 0

    in_house(test, FakeWorkers(talkative))


def test_barge_in_silences_the_track_within_200_ms_whatever_waits_to_be_played() -> None:
    """F-I5: with more than 5 s of a reply in hand, the last audible packet leaves at most 200 ms after the user's voice
    began; everything after it is silence, with unbroken stamps."""
    interrupt(SPEECH)


@pytest.mark.real
def test_barge_in_of_a_voice_is_as_quick_with_the_real_detector() -> None:
    """F-I5 with a voice that says "stop" and the network that has to find it."""
    voice = build("speech", "piper", {"variation": 0.0})
    resampler = Resampler(voice.sample_rate_hz, 16_000)
    pieces = [resampler.feed(piece) for piece in voice.synthesize("Please stop now, I have heard enough.")]
    sound = np.concatenate((*pieces, resampler.flush()))
    onset = int(np.argmax(np.abs(sound.astype(np.int32)) > 500))
    interrupt(sound[onset : onset + 16_000], SileroDetector())
