"""Links that come back with the number of the last entry that they have, and requests that have no link."""

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.errors import Overloaded, SessionClosed, WireError
from orchestrator.ids import event_tag
from orchestrator.scheduling.job import Job
from orchestrator.scheduling.work import Replied, Reply, ReplyText, Report, SpeechPiece, Spoke
from orchestrator.sessions.askers import MOST_ASKERS, Askers
from orchestrator.sessions.links import LinkKind, LoggedAudio, LoggedEvent
from orchestrator.sessions.runner import SessionRunner
from orchestrator.transports.outbox import Outbox, Told
from orchestrator.wire import codec
from orchestrator.wire.client import AnyClientEvent
from tests.fakes.links import FakeLink
from tests.fakes.workers import FakeWorkers
from tests.sessions.running import ASK, House, client, in_house


class Returning(FakeLink):
    """Reads by an outbox, as doors do; keeps what it gets in its order."""

    def __init__(self, id: str, session: SessionRunner, after: int | None = None) -> None:
        super().__init__(id)
        self.outbox = Outbox(session)
        self.got: list[dict[str, Any]] = []
        self.outbox.start(session.attach(self, after))
        self.wake()

    def wake(self) -> None:
        while batch := self.outbox.take(3):
            for entry in batch:
                if isinstance(entry, LoggedEvent | Told):
                    self.got.append(json.loads(entry.data))
                elif isinstance(entry, LoggedAudio):
                    self.got.append({"type": "sound", "event_id": entry.event_id, "pcm": entry.pcm.hex()})

    def tell(self, data: bytes) -> None:
        self.outbox.tell(data)
        self.wake()

    def logged(self) -> list[dict[str, Any]]:
        """What has a number."""
        return [one for one in self.got if not one["event_id"].rpartition("_")[2].startswith("p")]


def numbers(events: list[dict[str, Any]]) -> list[int]:
    return [int(one["event_id"].rpartition("_")[2]) for one in events]


def said(type: str, **fields: Any) -> AnyClientEvent:
    return codec.decode_client(json.dumps({"type": type, **fields}))


def item(text: str) -> dict[str, Any]:
    return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}


async def answered(session: SessionRunner) -> None:
    await client(session, "conversation.item.create", item=item("hello there"))
    await client(session, "response.create")
    await asyncio.sleep(2)


@given(st.data())
@settings(max_examples=25, deadline=None)
def test_link_that_returns_gets_what_it_missed_once_and_in_order(data: st.DataObject) -> None:
    """F-C1: wherever it was cut and however little the log holds, it gets the rest, then what is live, each once: or it
    is told of one gap, whose first number is the next that it gets."""
    kept = data.draw(st.integers(6, 60))
    share = data.draw(st.floats(0, 1))

    async def test(house: House) -> None:
        session = house.registry.open(ASK, LinkKind.WEBSOCKET)
        await answered(session)
        first, last = session.statistics().log.first, session.last
        after = round(share * last)
        back = Returning("back", session, after)
        gaps = [one for one in back.got if one["type"] == "chorale.gap"]
        expected = [(after, first)] if after < first - 1 else []
        assert [(gap["after"], gap["first"]) for gap in gaps] == expected
        assert [one["type"] for one in back.got[: 1 + len(gaps)]] == [
            "session.created",
            *("chorale.gap" for _ in gaps),
        ]
        assert numbers(back.logged()) == list(range(max(after + 1, first), last + 1))
        await client(session, "conversation.item.create", item=item("and then"))
        await asyncio.sleep(0.1)
        assert numbers(back.logged()) == list(range(max(after + 1, first), session.last + 1))
        assert session.last > last

    in_house(test, log_events=kept)


def test_links_at_one_time_see_the_same_events_under_the_same_numbers() -> None:
    """One was there all the time, one came back in the middle of the reply: byte for byte the same from there on."""

    async def test(house: House) -> None:
        session, _ = house.open()
        unbroken = Returning("unbroken", session)
        await client(session, "response.create")
        while session.last < 5:  # noqa: ASYNC110 - virtual time
            await asyncio.sleep(0.01)
        back = Returning("back", session, after=2)
        await asyncio.sleep(2)
        await answered(session)
        assert back.logged() == unbroken.logged()[2:]

    in_house(test)


@pytest.mark.parametrize("away", [-1, 1, 10**15])
def test_link_that_knows_more_than_there_is_is_refused(away: int) -> None:
    """A number that no entry has yet, or none: an error names the field, and nobody has joined."""

    async def test(house: House) -> None:
        session, _ = house.open()
        after = away if away < 0 else session.last + away
        with pytest.raises(WireError) as caught:
            session.attach(FakeLink("ahead"), after)
        assert (caught.value.wire_code, caught.value.param) == ("invalid_value", "after")
        assert session.statistics().links == 1

    in_house(test)


def test_link_that_returns_is_told_of_a_gap_though_the_session_never_asked() -> None:
    """Who says what it has knows what a gap is; who does not is told of none."""

    async def test(house: House) -> None:
        session, _ = house.open()
        await answered(session)
        session.detach("link")
        session.forget_log()
        assert [one["type"] for one in Returning("back", session, 0).got] == [
            "session.created",
            "chorale.gap",
        ]
        assert [one["type"] for one in Returning("new", session).got] == ["session.created"]
        at_the_end = Returning("whole", session, session.last)
        assert [one["type"] for one in at_the_end.got] == ["session.created"]

    in_house(test)


def test_sound_in_the_log_says_where_it_stands_in_its_item() -> None:
    """Each piece begins where the one before ended, in each item from 0; plain PCM needs no entry at its end."""

    async def test(house: House) -> None:
        session, link = house.open()
        for _ in range(2):
            await answered(session)
        assert len(link.sound) > 6
        stops: dict[str, int] = {}
        for piece in link.sound:
            assert piece.start == stops.get(piece.item_id, 0)
            stops[piece.item_id] = piece.start + len(piece.pcm) // 2
            assert not piece.last
        assert list(stops.values()) == [sum(range(400, 404)) * 2] * 2

    def in_pieces(job: Job) -> list[Report]:
        if isinstance(job.work, Reply):
            return [ReplyText(job.id, "One sentence more. And one."), Replied(job.id, "stop")]
        sizes = range(400, 404)
        pieces: list[Report] = [SpeechPiece(job.id, i, 24_000, n, bytes(2 * n)) for i, n in enumerate(sizes)]
        return [*pieces, Spoke(job.id, len(sizes))]

    in_house(test, FakeWorkers(in_pieces))


def test_sound_in_g711_ends_with_an_entry_of_its_own_before_it_is_done() -> None:
    """What a resampler holds back has a number of its own, right before `response.output_audio.done`."""

    async def test(house: House) -> None:
        session, link = house.open()
        output = {"format": {"type": "audio/pcmu"}}
        await client(session, "session.update", session={"type": "realtime", "audio": {"output": output}})
        await answered(session)
        *pieces, last = link.sound
        assert [piece.last for piece in pieces] == [False] * len(pieces)
        assert last.last
        assert last.pcm == b""
        assert last.start == sum(len(piece.pcm) // 2 for piece in pieces)
        (done,) = [event for event in link.events if event["type"] == "response.output_audio.done"]
        assert int(last.event_id.rpartition("_")[2]) + 1 == int(done["event_id"].rpartition("_")[2])

    in_house(test)


def test_call_that_returns_has_another_id_and_the_same_session() -> None:
    """The id before is no longer known; a session that has ended takes no call."""

    async def test(house: House) -> None:
        call_id, session = house.registry.open_call(ASK)
        new_id, same = house.registry.open_call(ASK, session)
        assert same is session
        assert new_id != call_id
        assert house.registry.by_call(new_id, "t") is session
        with pytest.raises(SessionClosed):
            house.registry.by_call(call_id, "t")
        assert len(house.registry) == 1
        house.registry.end(session, "over")
        await asyncio.sleep(1)
        with pytest.raises(SessionClosed):
            house.registry.open_call(ASK, session)
        with pytest.raises(SessionClosed):
            house.registry.by_call(new_id, "t")

    in_house(test)


# -- requests without a link ------------------------------------------------------------------------------------------


def test_request_is_answered_once_it_has_been_handled() -> None:
    """What it causes is in the log by then, also where nobody is connected; nothing is said to it alone."""

    async def test(house: House) -> None:
        session = house.registry.open(ASK, LinkKind.EVENTS)
        before = session.last
        assert await session.perform(said("conversation.item.create", item=item("hello"))) == ()
        assert session.last > before
        assert session.heart.conversation.prompt("")[0].content == "hello"

    in_house(test)


def test_request_that_is_wrong_gets_its_error_and_nobody_else_does() -> None:
    """The error names the client's event; links see nothing of it, and other requests neither."""

    async def test(house: House) -> None:
        session, link = house.open()
        seen = len(link.events)
        wrong = session.perform(said("conversation.item.delete", event_id="mine", item_id="nobody"))
        right = session.perform(said("conversation.item.create", item=item("hello")))
        (error,), none = await asyncio.gather(wrong, right)
        told = json.loads(error)
        assert (told["type"], told["error"]["event_id"]) == ("error", "mine")
        assert told["event_id"].startswith(f"event_{event_tag(session.id)}_p")
        assert none == ()
        assert "error" not in [event["type"] for event in link.events[seen:]]

    in_house(test)


def test_request_with_sound_that_cannot_be_read_gets_its_error() -> None:
    """What is refused before the session's heart sees it is answered in the same way."""

    async def test(house: House) -> None:
        session, _ = house.open()
        bad = {"type": "message", "role": "user", "content": [{"type": "input_audio", "audio": "%%%"}]}
        (error,) = await session.perform(said("conversation.item.create", event_id="e", item=bad))
        assert json.loads(error)["error"]["event_id"] == "e"

    in_house(test)


def test_request_beyond_those_that_wait_is_refused() -> None:
    """A session keeps answers for a bounded number of requests; one that is cancelled makes room."""

    async def test(house: House) -> None:
        session, _ = house.open()
        waiting = [asyncio.create_task(session.perform(said("response.cancel"))) for _ in range(MOST_ASKERS)]
        await asyncio.sleep(0)
        with pytest.raises(Overloaded):
            await session.perform(said("response.cancel"))
        waiting[3].cancel()
        await asyncio.wait([waiting[3]])
        assert len(await session.perform(said("response.cancel"))) == 1
        rest = [task for task in waiting if task is not waiting[3]]
        assert [len(answers) for answers in await asyncio.gather(*rest)] == [1] * (MOST_ASKERS - 1)
        assert len(await session.perform(said("response.cancel"))) == 1

    in_house(test)


def test_request_to_a_session_that_has_ended_is_told_so() -> None:
    """Also one that waits while it ends: it does not wait for ever, and does not pass for handled."""

    async def test(house: House) -> None:
        session, _ = house.open()
        waiting = asyncio.create_task(session.perform(said("response.cancel")))
        await asyncio.sleep(0)
        await house.registry.close()
        with pytest.raises(SessionClosed):
            await waiting
        with pytest.raises(SessionClosed):
            await session.perform(said("response.cancel"))

    in_house(test, FakeWorkers())


def test_askers_use_their_ids_again() -> None:
    """What hangs on an id stays bounded, however many have asked."""
    askers = Askers()
    seen = set()
    for _ in range(100):
        with askers.ask() as asker:
            seen.add(asker.id)
            assert askers.get(asker.id) is asker
        assert askers.get(asker.id) is None
    assert len(seen) == 1
    assert len(askers) == 0
