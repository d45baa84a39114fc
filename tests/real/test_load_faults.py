"""Faults under load, over real sockets: a server process, worker processes, and an accelerator that is simulated.

What such a fault is like is told in the tests of the parts (`tests/scheduling`, `tests/flow`); here the whole server
stands in for them. Nothing is timed: replies that nobody cancels would go on for a quarter of an hour.
"""

import asyncio
import base64
from collections.abc import Coroutine, Iterator
from typing import Any

import numpy as np
import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from tests.real.accelerated import DIGITS, PITCHES_HZ, roles, words_of
from tests.real.loaded_server import HURRIED
from tests.real.loading import (
    LONG_S,
    Event,
    Talker,
    all_of,
    at_rest,
    error_of,
    figures,
    figures_when,
    loaded,
    talkers,
)
from tests.real.serving import Served
from tests.telemetry.collector import Collector, collecting

pytestmark = pytest.mark.real

PLACES = 16
STEP_MS = 10.0
STREAMS = 64
ROOM = 3 * STREAMS
"""So many of each kind may wait: all that the streams of speech say at once."""

HEARD_IN = "conversation.item.input_audio_transcription.completed"
TENANTS: dict[str, dict[str, Any]] = {
    "anybody": {"tier": "gold"},
    HURRIED: {"tier": "gold"},
    "bounded": {"tier": "gold", "limits": {"llm_tokens": 1_100, "window_s": 3_600}},
    "narrow": {"tier": "gold", "limits": {"llm_tokens": 6_000, "window_s": 3_600}},
}


@pytest.fixture(scope="module")
def collector() -> Iterator[Collector]:
    with collecting() as running:
        yield running


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, collector: Collector) -> Iterator[Served]:
    """One server for all: a queue with an exact bound, and nothing left out under pressure."""
    tree = {
        "server": {"max_sessions": 400, "max_links": 400, "ping_s": 8},
        "sessions": {"grace_s": 2},
        "workers": {**roles(PLACES, step_ms=STEP_MS), "speech": None},
        "flow": {
            "max_waiting": ROOM, "watermark": "fixed", "share": 1.0, "shedding": False, "slo_error_rate": 1.0,
            "abandoned_s": 1,
        },
        "telemetry": {"otlp_endpoint": collector.endpoint, "export_every_s": 0.2},
    }  # fmt: skip
    with loaded(tmp_path_factory.mktemp("faults"), tree, TENANTS) as running:
        yield running


def run(server: Served, test: Coroutine[Any, Any, None]) -> None:
    """Runs a test on a server where nothing is left of the one before; nothing is left of it either."""

    async def main() -> None:
        try:
            await at_rest(server, "anybody")
        except BaseException:
            test.close()
            raise
        async with asyncio.timeout(LONG_S):
            await test
        await at_rest(server, "anybody")

    asyncio.run(main())


async def fill(server: Served, crowd: list[Talker]) -> None:
    """Every place of the accelerator is taken by a reply that never ends."""
    for number, talker in enumerate(crowd):
        await talker.ask(f"endless{number}")
    await figures_when(server, "anybody", lambda seen: seen.running == len(crowd) and not seen.waiting)


# --- F-L3: reserve first ----------------------------------------------------------------------------------------------


def test_five_calls_at_once_use_no_more_than_their_keys_limit(server: Served) -> None:
    """F-L3: of five replies of 400 tokens on a limit of 1,100 two are made, three are told when to come back; what was
    used fits, other keys notice nothing, and what there is left is still given out."""

    async def test() -> None:
        async with talkers(server, *["bounded"] * 5, "anybody") as everybody:
            *five, other = everybody
            for talker in everybody:
                await talker.ask("five", 400)
            responses = await asyncio.gather(*(talker.answer() for talker in everybody))
            made = [one for one in responses[:5] if one["status"] == "completed"]
            refused = [error_of(one) for one in responses[:5] if one["status"] != "completed"]
            assert (len(made), len(refused)) == (2, 3)
            assert {error["code"] for error in refused} == {"rate_limit_exceeded"}
            assert all(
                "quota" in error["message"] and "try again in" in error["message"] for error in refused
            )
            assert [one["usage"]["total_tokens"] for one in made] == [440, 440]
            assert "".join(other.deltas) == words_of("five", 400)
            told_to_wait = five[[one["status"] for one in responses].index("failed")]
            await told_to_wait.ask("small", 10)
            assert (await told_to_wait.answer())["status"] == "completed"

    run(server, test())


# --- F-L4: deadlines by timer, bounds exact ---------------------------------------------------------------------------


def test_who_waits_behind_endless_replies_is_told_at_the_deadline(server: Served) -> None:
    """F-L4: turns behind a full accelerator fail when their time is over, while all that it is at goes on; one that
    the accelerator is at ends likewise, and its place is free. Their sessions live."""

    async def test() -> None:
        async with (
            talkers(server, *["anybody"] * PLACES) as busy,
            talkers(server, *[HURRIED] * 6) as hurried,
        ):
            await fill(server, busy)
            for talker in hurried:
                await talker.ask("hurry", 5)
            ends = await asyncio.gather(*(talker.answer() for talker in hurried))
            assert {error_of(end)["code"] for end in ends} == {"deadline_exceeded"}
            seen = await figures(server, "anybody")
            assert (seen.running, seen.waiting) == (PLACES, 0)
            for number, talker in enumerate(busy):
                while (event := await talker.next())["type"] != "response.output_text.delta":
                    assert event["type"] != "response.done"
                await talker.send(type="response.cancel")
                assert (await talker.answer())["status"] == "cancelled"
                assert "".join(talker.deltas) == words_of(f"endless{number}", len(talker.deltas))
            await hurried[0].ask("endless")
            assert error_of(await hurried[0].answer())["code"] == "deadline_exceeded"
            await figures_when(server, "anybody", lambda now: not now.running)
            await answered_at_last(hurried[0])

    run(server, test())


async def answered_at_last(talker: Talker) -> None:
    """Asks until there is an answer: on a busy machine the hurried ones may have to ask twice."""
    while True:
        await talker.ask("again", 1)
        response = await talker.answer()
        if response["status"] == "completed":
            return
        assert error_of(response)["code"] == "deadline_exceeded"


def test_as_many_wait_as_there_is_room_and_the_rest_is_counted(server: Served) -> None:
    """F-L4 and F-O1: beside a full accelerator 192 turns wait, not one more or less; five are refused at once, with
    the time to come back. Once all is over the next scrape still tells of the five."""

    async def test() -> None:
        before = await figures(server, "anybody")
        async with (
            talkers(server, *["anybody"] * PLACES) as busy,
            talkers(server, *["anybody"] * (ROOM + 5)) as crowd,
        ):
            await fill(server, busy)
            for talker in crowd:
                await talker.ask("wait", 1)
            ends = [asyncio.create_task(talker.answer()) for talker in crowd]
            await figures_when(
                server, "anybody", lambda seen: seen.ended("refused") - before.ended("refused") >= 5
            )
            done: list[Event] = []
            for ended in asyncio.as_completed(ends):
                done.append(await ended)
                if len(done) == 5:
                    break
            errors = [error_of(one) for one in done]
            assert {error["code"] for error in errors} == {"rate_limit_exceeded"}
            assert all("try again in" in error["message"] for error in errors)
            seen = await figures(server, "anybody")
            assert (seen.running, seen.waiting) == (PLACES, ROOM)
            for talker in busy:
                talker.drop()
            answers = await asyncio.gather(*ends)
            assert [one["status"] for one in answers].count("completed") == ROOM
        after = await at_rest(server, "anybody")
        reason = {"reason": "queue_full"}
        assert after.ended("refused", **reason) - before.ended("refused", **reason) == 5
        assert after.ended("cancelled") - before.ended("cancelled") == PLACES

    run(server, test())


# --- F-L5: who is gone leaves nothing behind --------------------------------------------------------------------------


def test_a_hundred_impatient_clients_get_their_answers_once_they_come_back(server: Served) -> None:
    """F-L5: fifty ask for what never ends, break off, hang up or vanish, and come back with another question. What
    nobody awaits leaves the queue and the accelerator, or none of these would ever be answered; nothing is left."""

    async def test() -> None:
        before = await at_rest(server, "anybody")
        async with talkers(server, *["anybody"] * 50) as gone:
            for talker in gone:
                await talker.ask("endless")
            await figures_when(
                server, "anybody", lambda seen: seen.running == PLACES and seen.waiting == 50 - PLACES
            )
            for number, talker in enumerate(gone):
                if number % 4 == 0:
                    talker.vanish()
                elif number % 4 == 1:
                    await talker.socket.close()
                else:
                    talker.drop()
            async with talkers(server, *["anybody"] * 50) as back:
                for number, talker in enumerate(back):
                    await talker.ask(f"back{number}", 5)
                assert all_of(await asyncio.gather(*(talker.answer() for talker in back))) == {"completed"}
                for number, talker in enumerate(back):
                    assert "".join(talker.deltas) == words_of(f"back{number}", 5)
            # Those that vanished are still connected, as far as this side knows: the server has found out by itself.
            after = await at_rest(server, "anybody")
        assert after.ended("cancelled") - before.ended("cancelled") == 50
        assert after.ended("completed") - before.ended("completed") == 50
        empty = before.of("chorale_worker_memory_share", worker="llm-1")
        await figures_when(
            server, "anybody", lambda seen: seen.of("chorale_worker_memory_share", worker="llm-1") == empty
        )

    run(server, test())


def test_what_a_gone_client_had_reserved_is_given_back(server: Served) -> None:
    """F-L5: a key's limit is taken by one long reply; a second one is refused, until the first one's client drops. No
    window passes meanwhile: it is an hour."""

    async def test() -> None:
        async with talkers(server, "narrow", "narrow") as (first, second):
            await first.ask("n", 4_096)
            await first.until("response.output_text.delta")
            await second.ask("m", 2_000)
            assert "quota" in error_of(await second.answer())["message"]
            first.drop()
            await figures_when(server, "anybody", lambda seen: not seen.running)
            await second.ask("m", 2_000)
            await second.until("response.output_text.delta")
            await second.send(type="response.cancel")
            assert (await second.answer())["status"] == "cancelled"

    run(server, test())


# --- F-L8: order, and nobody starves ----------------------------------------------------------------------------------


def test_sixty_four_streams_at_once_get_their_own_words_in_order(server: Served) -> None:
    """F-L8: four times as many as there are places, three turns each. Nobody has had three answers while another has
    not had the first word of one."""
    begun: set[int] = set()
    at_first_end: list[int] = []

    async def talk(number: int, talker: Talker) -> None:
        for turn in range(3):
            await talker.ask(f"s{number}t{turn}", 20)
            await talker.until("response.output_text.delta")
            begun.add(number)
            assert (await talker.answer())["status"] == "completed"
            assert "".join(talker.deltas) == words_of(f"s{number}t{turn}", 20)
        at_first_end.append(len(begun))

    async def test() -> None:
        async with talkers(server, *["anybody"] * STREAMS) as streams:
            await asyncio.gather(*(talk(number, talker) for number, talker in enumerate(streams)))
        assert at_first_end[0] == STREAMS

    run(server, test())


def test_sixty_four_streams_of_speech_are_heard_in_order(server: Served) -> None:
    """F-L8: three utterances each, committed one behind the other, recognised in batches that take a random time; each
    item has the words of its own sound."""

    async def test() -> None:
        async with talkers(server, *["anybody"] * STREAMS) as streams:
            heard = await asyncio.gather(
                *(speak(talker, digits_of(number)) for number, talker in enumerate(streams))
            )
        said = [[DIGITS[digit] for digit in digits_of(number)] for number in range(STREAMS)]
        assert heard == said

    run(server, test())


def digits_of(number: int) -> tuple[int, int, int]:
    """Returns what a stream says: no two of 64 say the same."""
    return number // 8, number % 8, (number // 8 + number) % 8


async def speak(talker: Talker, digits: tuple[int, ...]) -> list[str]:
    """Says one utterance for each digit without waiting; returns what was heard, in the order of the items."""
    audio = {"input": {"transcription": {"model": "default"}, "turn_detection": None}}
    await talker.send(type="session.update", session={"type": "realtime", "audio": audio})
    for digit in digits:
        await talker.send(type="input_audio_buffer.append", audio=tone(PITCHES_HZ[digit]))
        await talker.send(type="input_audio_buffer.commit")
    items: list[str] = []
    texts: dict[str, str] = {}
    while len(texts) < len(digits):
        event = await talker.next()
        if event["type"] == "input_audio_buffer.committed":
            items.append(event["item_id"])
        elif event["type"] == HEARD_IN:
            texts[event["item_id"]] = event["transcript"]
        assert not event["type"].endswith("transcription.failed"), event
    assert list(texts) == items, "told in the order in which they were said"
    return [texts[item] for item in items]


def tone(pitch_hz: int) -> str:
    """Returns 300 ms of a tone in the protocol's form."""
    wave = 8_000 * np.sin(2 * np.pi * pitch_hz * np.arange(7_200) / 24_000)
    return base64.b64encode(wave.astype("<i2").tobytes()).decode()


# --- F-O1: spans cover the work ---------------------------------------------------------------------------------------


def test_spans_cover_the_work_and_cancelled_ones_say_so(server: Served, collector: Collector) -> None:
    """F-O1: a reply's span, and that of the work in it, last as long as its tokens take at least. One that was
    cancelled is marked so, without an error, and enters no figure of how soon a first token comes."""

    async def test() -> None:
        before = await figures(server, "anybody")
        async with talkers(server, "anybody", "anybody") as (whole, cut):
            sessions = [(await talker.until("session.created"))["session"]["id"] for talker in (whole, cut)]
            await whole.ask("whole", 60)
            assert (await whole.answer())["status"] == "completed"
            await cut.ask("cut")
            await cut.until("response.output_text.delta")
            await cut.send(type="response.cancel")
            assert (await cut.answer())["status"] == "cancelled"
        after = await at_rest(server, "anybody")
        done, cancelled = [await reply_of(collector, session) for session in sessions]
        work = await child_of(collector, done, "work")
        for span in (done, work):
            assert span.end_time_unix_nano - span.start_time_unix_nano >= 60 * STEP_MS * 1_000_000
        about, of_cancelled = attributes(done), attributes(cancelled)
        assert (about["chorale.outcome"], of_cancelled["chorale.outcome"]) == ("completed", "cancelled")
        assert about["chorale.first_report_ms"] >= STEP_MS
        assert "chorale.first_report_ms" not in of_cancelled
        assert "error.type" not in of_cancelled
        assert cancelled.status.code == Status.STATUS_CODE_UNSET
        for metric in ("time_to_first_token", "time_per_output_token"):
            name = f"gen_ai_server_{metric}_seconds_count"
            assert after.of(name) - before.of(name) == 1
        assert after.ended("cancelled") - before.ended("cancelled") == 1

    run(server, test())


def attributes(span: Span) -> Event:
    return {one.key: one.value.string_value or one.value.int_value for one in span.attributes}


async def reply_of(collector: Collector, session_id: str) -> Span:
    """Returns the span of a session's only reply, once it has come."""

    def found() -> list[Span]:
        with collector.changed:
            spans = [span for span in collector.spans if span.name.startswith("chat ")]
        return [span for span in spans if attributes(span)["session.id"] == session_id]

    while not (spans := found()):  # noqa: ASYNC110 - it is another thread's doing
        await asyncio.sleep(0.05)
    (span,) = spans
    return span


async def child_of(collector: Collector, parent: Span, name: str) -> Span:
    """Returns the span of this name right below another, once it has come."""
    while True:
        children = [span for span in collector.named(name) if span.parent_span_id == parent.span_id]
        if children:
            return children[0]
        await asyncio.sleep(0.05)
