"""Sessions with their runner, inbox, intake and registry, on virtual time with stand-in workers."""

import asyncio
import base64
import json

import numpy as np
import pytest

from orchestrator.errors import Overloaded, SessionClosed, WireError
from orchestrator.flow.limiter import Refusal, RefusalReason
from orchestrator.scheduling.job import Job
from orchestrator.scheduling.work import Failed, Replied, ReplyText, Report, Transcribe
from orchestrator.sessions import events as on
from orchestrator.sessions.inbox import Inbox
from orchestrator.sessions.links import LinkKind, SessionRequest
from orchestrator.sessions.rules import SessionRules
from tests.fakes.links import FakeLink
from tests.fakes.workers import FakeWorkers, obliging
from tests.sessions.running import ASK, SILENCE, SPEECH, House, client, in_house, spoken
from tests.virtual_time import run


def test_runner_answers_speech_with_numbered_events_and_sound() -> None:
    """Sound goes in, transcript, text and sound come out; the event ids end in the log's numbers."""

    async def test(house: House) -> None:
        session, link = house.open()
        await client(
            session,
            "session.update",
            session={"type": "realtime", "audio": {"input": {"transcription": {"model": "x"}}}},
        )
        await spoken(session)
        await asyncio.sleep(2)
        assert link.types()[:2] == ["session.created", "session.updated"]
        assert link.types()[-1] == "response.done"
        done = link.events[-1]["response"]
        assert done["output"][0]["content"][0]["transcript"] == "You said: hello."
        assert sum(len(entry.pcm) for entry in link.sound) == len("You said: hello.") * 2_400
        numbers = [int(e["event_id"].rsplit("_", 1)[1]) for e in link.events[1:]]
        numbers += [int(entry.event_id.rsplit("_", 1)[1]) for entry in link.sound]
        assert sorted(numbers) == list(range(1, len(numbers) + 1))

    in_house(test)


def test_runner_gives_the_recogniser_exactly_the_sound_of_the_utterance() -> None:
    """F-T4, F-T6: from the first packet on; what the ring held is what the recogniser gets."""
    heard: list[bytes] = []

    def answer(job: Job) -> list[Report]:
        if isinstance(job.work, Transcribe) and not job.work.draft:
            heard.append(job.work.audio)
        return list(obliging(job))

    async def test(house: House) -> None:
        session, _ = house.open()
        ramp = (np.arange(16_000) % 3_000 + 6_000).astype(np.int16)
        for start in range(0, 16_000, 320):
            session.intake.append(ramp[start : start + 320])
            await asyncio.sleep(0.02)
        session.intake.append(SILENCE)
        await asyncio.sleep(2)
        (audio,) = heard
        assert np.array_equal(np.frombuffer(audio, dtype="<i2")[:16_000], ramp)

    in_house(test, FakeWorkers(answer, delay_s=0.6))


def test_runner_hears_the_same_in_sound_that_comes_all_at_once() -> None:
    """A file sent faster than real time gives the same turns at the same offsets as the live one."""
    offsets = []
    for live in (True, False):

        async def test(house: House, live: bool = live) -> None:
            session, link = house.open()
            if live:
                await spoken(session)
            else:
                session.intake.append(np.concatenate((SPEECH, SILENCE)))
            await asyncio.sleep(2)
            offsets.append(
                [
                    (e["type"], e.get("audio_start_ms", e.get("audio_end_ms")))
                    for e in link.events
                    if e["type"].startswith("input_audio_buffer.speech")
                ]
            )

        in_house(test)
    assert offsets[0] == offsets[1]
    assert len(offsets[0]) == 2


def test_runner_flushes_a_calls_playout_on_speech() -> None:
    """Speech during playout flushes the track; history keeps the words that the track had sent."""

    async def test(house: House) -> None:
        session, link = house.open(LinkKind.CALL)
        await spoken(session)
        await asyncio.sleep(1)
        playout = link.playout
        assert playout is not None
        playout.played = 12_000
        await spoken(session)
        assert playout.flushes == 1
        assert link.events[-1]["type"] != "error"
        said = [text for role, text in ((m.role, m.content) for m in session.heart.conversation.prompt(""))]
        assert said[1] == "You said:"

    in_house(test)


def test_runner_transcribes_sound_inside_a_clients_item() -> None:
    """A user item with base64 sound is transcribed before it is answered; no event carries the sound."""

    async def test(house: House) -> None:
        session, link = house.open()
        audio = base64.b64encode(np.full(24_000, 5_000, dtype="<i2").tobytes()).decode()
        item = {"type": "message", "role": "user", "content": [{"type": "input_audio", "audio": audio}]}
        await client(session, "conversation.item.create", item=item)
        await client(session, "response.create", response={"output_modalities": ["text"]})
        await asyncio.sleep(2)
        assert link.events[-1]["response"]["output"][0]["content"][0]["text"] == "You said: hello."
        assert audio not in json.dumps(link.events)
        (job,) = [job for job in house.workers.jobs if isinstance(job.work, Transcribe)]
        assert isinstance(job.work, Transcribe)
        assert len(job.work.audio) == 32_000
        assert session.statistics().clip_bytes == 0
        bad = {"type": "message", "role": "user", "content": [{"type": "input_audio", "audio": "no!"}]}
        await client(session, "conversation.item.create", item=bad, event_id="mine")
        await asyncio.sleep(0.01)
        assert link.events[-1]["error"]["param"] == "item.content[0].audio"
        assert link.events[-1]["error"]["event_id"] == "mine"

    in_house(test)


def test_runner_refuses_sound_beyond_an_uncommitted_buffer() -> None:
    """A manual buffer that is full refuses more and loses nothing: its commit is answered."""

    async def test(house: House) -> None:
        session, link = house.open()
        await client(
            session,
            "session.update",
            session={"type": "realtime", "audio": {"input": {"turn_detection": None}}},
        )
        await asyncio.sleep(0.01)
        for _ in range(5):
            session.intake.append(SPEECH)
        with pytest.raises(Overloaded):
            session.intake.append(SPEECH)
        await client(session, "input_audio_buffer.commit")
        await client(session, "response.create", response={"output_modalities": ["text"]})
        await asyncio.sleep(2)
        assert link.events[-1]["response"]["status"] == "completed"

    in_house(test, rules=SessionRules(buffer_s=5))


def test_runner_tells_a_failed_job_as_a_failed_response() -> None:
    """A worker that fails for good ends the response, not the session."""

    def answer(job: Job) -> list[Report]:
        return [Failed(job.id, "worker_failed", "the language model failed repeatedly")]

    async def test(house: House) -> None:
        session, link = house.open()
        await client(session, "response.create", response={"output_modalities": ["text"]})
        await asyncio.sleep(1)
        assert link.events[-1]["response"]["status_details"]["error"]["code"] == "worker_failed"

    in_house(test, FakeWorkers(answer))


def test_runner_wakes_its_links_once_for_what_came_together() -> None:
    """However many words one turn of the loop brings, a link is woken once and finds them all; and once more for
    everything that ends the reply behind them."""

    async def test(house: House) -> None:
        runner, link = house.open()
        found: list[int] = []
        usual = link.wake

        def wake() -> None:
            usual()
            found.append(link.types().count("response.output_text.delta"))

        link.wake = wake  # type: ignore[method-assign]
        await client(runner, "response.create", response={"output_modalities": ["text"]})
        await asyncio.sleep(1)
        assert [count for count in found if count] == [30, 30]

    def answer(job: Job) -> list[Report]:
        return [*(ReplyText(job.id, "a") for _ in range(30)), Replied(job.id, "stop")]

    in_house(test, FakeWorkers(answer))


def test_registry_reserves_a_place_when_it_accepts() -> None:
    """F-C5: two starts at one instant and a limit of one: the second is refused with a time to retry."""

    async def test(house: House) -> None:
        house.open()
        with pytest.raises(Overloaded) as refused:
            house.open()
        assert refused.value.retry_after_s > 0
        assert house.registry.refused == 1

    in_house(test, max_sessions=1)


def test_registry_opens_nothing_while_there_is_too_much_to_do() -> None:
    """New sessions are what is left out last; those that are there go on, and no place is lost by asking."""

    async def test(house: House) -> None:
        house.open()
        house.registry.may_open = lambda: Refusal(0.2, RefusalReason.SHED)
        for _ in range(3):
            with pytest.raises(Overloaded) as refused:
                house.open()
            assert refused.value.retry_after_s == 1.0
        house.registry.may_open = lambda: None
        house.open()
        assert len(house.registry) == 2
        assert house.registry.refused == 3

    in_house(test, max_sessions=2)


def test_registry_frees_places_on_every_path() -> None:
    """F-C4: ten rounds of stop and start, refused configurations and never-joined calls leak no place."""

    async def test(house: House) -> None:
        for _ in range(10):
            session, link = house.open()
            other, _ = house.open()
            with pytest.raises(Overloaded):
                house.open()
            house.registry.end(session, "bye")
            house.registry.end(other, "bye")
            house.registry.end(other, "twice is fine")
            await asyncio.sleep(1)
            assert link.closed is not None
            with pytest.raises(WireError):
                house.registry.open(
                    SessionRequest("t", 2, initial=b'{"type":"realtime","voice":7,"tools":3}'), link.kind
                )
        house.registry.open_call(ASK)
        house.registry.open_call(ASK)
        await asyncio.sleep(30)
        assert len(house.registry) == 0

    in_house(test, max_sessions=2)


def test_registry_lets_only_those_who_know_the_secret_come_back() -> None:
    """A session is found by its secret and by its own tenant, a call by its tenant; whatever else is shown, the words
    are the same."""

    async def test(house: House) -> None:
        session, _ = house.open()
        assert house.registry.by_id(session.id, session.secret, "t") is session
        assert house.registry.by_id(session.id, session.secret, None) is session
        told = set()
        for id, secret, tenant in (
            *((session.id, wrong, "t") for wrong in ("", "x", session.secret[:-1], "\udcff")),
            (session.id, session.secret, "another"),
            ("sess_nobody", session.secret, "t"),
            ("sess_nobody", "", None),
        ):
            with pytest.raises(SessionClosed) as caught:
                house.registry.by_id(id, secret, tenant)
            told.add(str(caught.value))
        assert len(told) == 1
        call_id, call = house.registry.open_call(ASK)
        assert house.registry.by_call(call_id, "t") is call
        with pytest.raises(SessionClosed):
            house.registry.by_call(call_id, "another")

    in_house(test)


def test_registry_keeps_a_session_for_a_link_that_comes_back() -> None:
    """F-C2: the last link leaves, another comes within the grace time: same session, same history, live events."""

    async def test(house: House) -> None:
        session, _ = house.open()
        message = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "remember"}]}
        await client(session, "conversation.item.create", item=message)
        session.detach("link")
        session.detach("link")
        await asyncio.sleep(9)
        back = FakeLink("back")
        back.attach(house.registry.by_id(session.id, session.secret, "t"))
        assert back.types() == ["session.created"]
        assert session.heart.conversation.prompt("")[0].content == "remember"
        session.detach("back")
        await asyncio.sleep(11)
        with pytest.raises(SessionClosed):
            house.registry.by_id(session.id, session.secret, "t")

    in_house(test)


def test_registry_ends_one_session_for_its_own_fault_and_no_other(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fault inside one heart closes its links; other sessions notice nothing."""

    async def test(house: House) -> None:
        sick, sick_link = house.open()
        healthy, link = house.open()
        monkeypatch.setattr(sick.heart, "receive", lambda event, now: 1 / 0)
        await client(sick, "response.create")
        await asyncio.sleep(1)
        assert sick_link.closed is not None
        await client(healthy, "response.create", response={"output_modalities": ["text"]})
        await asyncio.sleep(1)
        assert link.types()[-1] == "response.done"

    in_house(test)
    assert "session failed" in caplog.text


def test_registry_drain_waits_for_running_turns_only() -> None:
    """An idle session ends at once, a busy one when its reply is done; none is opened any more."""

    async def test(house: House) -> None:
        _, idle = house.open()
        session, busy = house.open()
        await client(session, "response.create", response={"output_modalities": ["text"]})
        await asyncio.sleep(0.01)
        await house.registry.drain(5)
        assert asyncio.get_running_loop().time() < 1
        assert busy.types()[-1] == "response.done"
        assert idle.closed == busy.closed == (1001, "The server is shutting down.")
        with pytest.raises(Overloaded):
            house.open()

    in_house(test, FakeWorkers(delay_s=0.3))


def test_inbox_holds_clients_back_but_never_reports() -> None:
    """BLOCK: a client waits for room; a report goes in at once; order is kept; closing wakes who waits."""

    async def main() -> None:
        inbox = Inbox(capacity=2, limit=4)
        await inbox.put(on.LinkLeft("1"))
        await inbox.put(on.LinkLeft("2"))
        waiting = asyncio.create_task(inbox.put(on.LinkLeft("4")))
        await asyncio.sleep(0)
        inbox.put_nowait(on.LinkLeft("3"))
        assert inbox.statistics().held == 3
        assert await inbox.take() == [on.LinkLeft("1"), on.LinkLeft("2"), on.LinkLeft("3")]
        await waiting
        assert await inbox.take() == [on.LinkLeft("4")]
        for _ in range(4):
            inbox.put_nowait(on.TimePassed())
        with pytest.raises(Overloaded):
            inbox.put_nowait(on.TimePassed())
        late = asyncio.create_task(inbox.put(on.LinkLeft("5")))
        await asyncio.sleep(0)
        inbox.close()
        with pytest.raises(SessionClosed):
            await late

    run(main())
