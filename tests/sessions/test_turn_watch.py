"""What is recorded of a session's turns: each once, with its stages in order, its outcome and whose trace it is in."""

import asyncio
import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from orchestrator.clock import US_PER_MS
from orchestrator.observability.instrument import Ending, Silent, TurnRecord
from orchestrator.observability.traceparent import parse
from orchestrator.scheduling.job import Job
from orchestrator.scheduling.work import REFUSED, Failed, Reply, Report, Speak
from orchestrator.sessions.links import LinkKind, SessionRequest
from orchestrator.sessions.turn_watch import TurnWatch
from tests.fakes.links import FakeLink
from tests.fakes.workers import FakeWorkers, obliging
from tests.sessions.running import House, client, in_house, spoken
from tests.sessions.talk import Talk

ORIGIN = 7_000_000
PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
OTHER = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


class Watched(Talk):
    """A talk whose turns are recorded."""

    def __init__(self, remote: str | None = None, **fields: Any) -> None:
        self.records: list[TurnRecord] = []
        self.watch = TurnWatch("sess_test", 2, ORIGIN, self.records.append, parse(remote))
        self._looked = 0
        super().__init__(**fields)

    def step(self, event: Any) -> list[dict[str, Any]]:
        now = int(self.now_ms * US_PER_MS)
        shown = super().step(event)
        effects, self._looked = self.effects[self._looked :], len(self.effects)
        self.watch.saw(effects, now, self.heart.turn.id, self.view_type != "transcription")
        return shown

    @property
    def view_type(self) -> str:
        return self.heart.view.type

    def turn(self, text: str = "One is here. Two is here.") -> None:
        self.typed("Hello?")
        self.client("response.create")
        self.wait(200)
        self.answer(text)


def ms(record: TurnRecord, stage: str) -> tuple[float, float]:
    start, stop = record.stages[stage]
    return (start - ORIGIN) / US_PER_MS, (stop - ORIGIN) / US_PER_MS


def test_turn_watch_records_a_spoken_turn_with_its_stages() -> None:
    """From the first sound of speech to the answer's end, each stage from where the one before it ended."""
    talk = Watched()
    talk.speak()
    silent_ms = talk.now_ms
    talk.wait(100)
    talk.transcribed("hello")
    talk.wait(200)
    talk.writes("One is here. Two ")
    talk.wait(50)
    talk.sounds(500)
    talk.wait(50)
    talk.finishes()
    while talk.open_jobs(Speak):
        talk.spoke()
    (record,) = talk.records
    assert (record.turn, record.modality, record.outcome, record.error) == (1, "audio", Ending.COMPLETED, "")
    assert record.began_us < ORIGIN + 400 * US_PER_MS
    assert record.ended_us == ORIGIN + int(talk.now_ms * US_PER_MS)
    assert set(record.stages) == {"listen", "transcribe", "agree", "think", "voice", "speak"}
    assert ms(record, "listen")[1] <= silent_ms
    assert ms(record, "transcribe")[1] == silent_ms + 100
    assert ms(record, "think") == (silent_ms + 100, silent_ms + 300)
    assert ms(record, "voice") == (silent_ms + 300, silent_ms + 350)
    assert ms(record, "speak") == (silent_ms + 350, silent_ms + 400)
    assert talk.watch.number == 2


def test_turn_watch_records_a_typed_turn() -> None:
    """It begins with what was typed, and is over with the response."""
    talk = Watched()
    talk.turn()
    talk.wait(1_000)
    talk.turn()
    first, second = talk.records
    assert (first.turn, second.turn) == (1, 2)
    assert first.modality == "text"
    assert first.ended_us - first.began_us == 200 * US_PER_MS
    assert second.began_us == ORIGIN + 1_200 * US_PER_MS
    assert first.conversation_id == second.conversation_id != ""


@pytest.mark.parametrize(
    ("code", "ending"),
    [(REFUSED, Ending.REFUSED), ("worker_failed", Ending.FAILED), (None, Ending.CANCELLED)],
)
def test_turn_watch_says_how_a_turn_ended(code: str | None, ending: Ending) -> None:
    """Refused, failed and cancelled are three things."""
    talk = Watched()
    talk.typed("Hello?")
    talk.client("response.create")
    if code is None:
        talk.client("response.cancel")
    else:
        talk.report(Failed(talk.reply_job(), code, "no"))
    (record,) = talk.records
    assert (record.outcome, record.error) == (ending, code or "")


def test_turn_watch_who_interrupts_is_in_the_next_turn() -> None:
    """Speech that cuts an answer begins a turn of its own, where it began."""
    talk = Watched()
    talk.typed("Hello?")
    talk.client("response.create")
    talk.writes("One is here. Two ")
    talk.sounds(3_000)
    talk.wait(1_000)
    began_ms = talk.now_ms
    talk.speak()
    talk.transcribed("stop that")
    talk.answer("I did.")
    first, second = talk.records
    assert first.outcome is Ending.CANCELLED
    assert second.outcome is Ending.COMPLETED
    assert began_ms < (second.began_us - ORIGIN) / US_PER_MS < began_ms + 500
    assert (first.modality, second.modality) == ("text", "audio")


def test_turn_watch_what_is_said_beside_an_answer_is_of_the_next_turn() -> None:
    """Speech that does not interrupt, begun and over while an answer is made: the next turn begins where it began."""
    talk = Watched()
    quiet = {"type": "server_vad", "interrupt_response": False, "create_response": False}
    talk.update(audio={"input": {"turn_detection": quiet}})
    talk.typed("Hello?")
    talk.client("response.create")
    talk.writes("One is here. Two ")
    talk.wait(1_000)
    began_ms = talk.now_ms
    talk.speak()
    talk.transcribed("and another thing")
    talk.answer("is here.")
    talk.client("response.create")
    talk.answer("Well.")
    first, second = talk.records
    assert (first.modality, second.modality) == ("text", "audio")
    assert "listen" not in first.stages
    assert began_ms < (second.began_us - ORIGIN) / US_PER_MS < began_ms + 500


def test_turn_watch_transcripts_that_come_late_end_their_own_turn() -> None:
    """In a transcription session the next thing is being said when the last one's transcript comes."""
    talk = Watched()
    transcription = {"audio": {"input": {"transcription": {"model": "x"}}}}
    talk.client("session.update", session={"type": "transcription", **transcription})
    talk.speak()
    began_ms = talk.now_ms
    talk.hear(1_000, 0.95)
    talk.transcribed("first")
    talk.hear(700, 0.01)
    talk.transcribed("second")
    _, second = talk.records
    assert (second.began_us - ORIGIN) / US_PER_MS < began_ms + 500


def test_turn_watch_transcription_session_ends_turns_with_their_transcripts() -> None:
    """There is no response: what was said is the answer."""
    talk = Watched()
    transcription = {"audio": {"input": {"transcription": {"model": "x"}}}}
    talk.client("session.update", session={"type": "transcription", **transcription})
    talk.speak()
    talk.wait(100)
    talk.transcribed("hello")
    talk.speak()
    while talk.finals():
        talk.failed(talk.finals()[0], REFUSED)
    assert [record.outcome for record in talk.records] == [Ending.COMPLETED, Ending.REFUSED]


def test_turn_watch_turn_that_nobody_answers_ends_before_the_next() -> None:
    """A client that makes no responses: each turn is recorded all the same."""
    talk = Watched()
    talk.update(audio={"input": {"turn_detection": {"type": "server_vad", "create_response": False}}})
    for _ in range(3):
        talk.speak()
        talk.transcribed("hello")
        talk.hear(5_000, 0.01)
    assert [record.outcome for record in talk.records] == [Ending.COMPLETED] * 2
    assert all(record.ended_us - record.began_us < 3_000 * US_PER_MS for record in talk.records)


def test_turn_watch_session_that_ends_takes_its_turn_with_it() -> None:
    """An answer that was never done is cancelled; a session that was silent leaves nothing."""
    talk = Watched()
    talk.turn()
    talk.watch.close(int(talk.now_ms * US_PER_MS))
    assert len(talk.records) == 1
    talk.typed("Hello?")
    talk.client("response.create")
    talk.watch.close(int(talk.now_ms * US_PER_MS))
    assert talk.records[-1].outcome is Ending.CANCELLED


def test_turn_watch_belongs_to_the_trace_of_its_connection_or_its_request() -> None:
    """The header of the connection is the parent of all turns, metadata of a `response.create` of its own."""
    talk = Watched(remote=PARENT)
    talk.turn()
    talk.typed("Hello?")
    talk.client("response.create", response={"metadata": {"traceparent": OTHER}})
    talk.answer("Yes.")
    talk.turn()
    assert [record.remote for record in talk.records] == [parse(PARENT), parse(OTHER), parse(PARENT)]


def test_turn_watch_malformed_trace_parent_is_none() -> None:
    """As the standard asks: it is ignored."""
    talk = Watched(remote="nonsense")
    talk.typed("Hello?")
    talk.client("response.create", response={"metadata": {"traceparent": "00-zz"}})
    talk.answer("Yes.")
    assert talk.records[0].remote is None


@given(
    st.lists(
        st.sampled_from(["speak", "type", "ask", "hear", "answer", "fail", "cancel", "wait"]), max_size=25
    )
)
@example(["ask", "type", "wait", "answer", "speak"])
def test_turn_watch_counts_each_response_in_one_turn_under_any_order(steps: list[str]) -> None:
    """Turns are numbered one by one, none ends before it began or after the next one, and there is one for
    each response."""
    talk = Watched()
    for step in steps:
        match step:
            case "speak":
                talk.speak(300)
            case "type":
                talk.typed("Hello?")
            case "ask":
                talk.client("response.create")
            case "hear" if talk.finals():
                talk.transcribed("hello")
            case "answer" if talk.open_jobs(Reply):
                talk.answer("Yes. So it is.")
            case "fail" if talk.open_jobs(Reply):
                talk.failed(talk.open_jobs(Reply)[0])
            case "cancel":
                talk.client("response.cancel")
            case _:
                talk.wait(400)
    talk.watch.close(int(talk.now_ms * US_PER_MS))
    assert [record.turn for record in talk.records] == list(range(1, len(talk.records) + 1))
    ends = [record.ended_us for record in talk.records]
    assert ends == sorted(ends)
    for record in talk.records:
        assert record.began_us <= record.ended_us
        assert all(start <= stop for start, stop in record.stages.values())
    answered = [record for record in talk.records if record.conversation_id]
    assert len(answered) == len(talk.all("response.created"))


class Kept(Silent):
    """An instrument that keeps the turns it is told of."""

    def __init__(self) -> None:
        self.turns: list[TurnRecord] = []

    def turn(self, record: TurnRecord) -> None:
        self.turns.append(record)


def test_runner_tells_of_turns_and_hands_jobs_over_with_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the running parts: records reach the instrument in the server's time, every job of a turn has its number, the
    tenant is told, and the user's signs move what waits."""
    kept = Kept()
    given: list[tuple[str, int]] = []
    touched: list[str] = []
    tenants: list[str] = []

    async def test(house: House) -> None:
        dispatcher = house.dispatcher
        submit, listen = dispatcher.submit, dispatcher.listen

        def submitted(job: Job, turn: int = 0) -> None:
            given.append((job.kind, turn))
            submit(job, turn)

        def listened(session_id: str, deliver: Any, tenant: str = "", remote: Any = None) -> None:
            tenants.append(tenant)
            listen(session_id, deliver, tenant, remote)

        monkeypatch.setattr(dispatcher, "submit", submitted)
        monkeypatch.setattr(dispatcher, "listen", listened)
        monkeypatch.setattr(dispatcher, "touch", touched.append)
        request = SessionRequest(tenant="acme", tier=1, traceparent=PARENT)
        session = house.registry.open(request, LinkKind.WEBSOCKET)
        link = FakeLink()
        link.attach(session)
        began = asyncio.get_running_loop().time()
        await spoken(session)
        await asyncio.sleep(2)
        await client(session, "response.create")
        await asyncio.sleep(2)
        assert json.dumps(link.types()).count("response.done") == 2
        first, second = kept.turns
        assert (first.turn, second.turn) == (1, 2)
        assert (first.tier, first.session_id, first.remote) == (1, session.id, parse(PARENT))
        assert first.began_us >= int(began * 1e6)
        assert second.began_us >= first.ended_us
        assert set(touched) == {session.id}
        assert 2 <= len(touched) <= 8

    in_house(test, FakeWorkers(), instrument=kept)
    assert tenants == ["acme"]
    assert [turn for kind, turn in given if kind == "llm"][-1] == 2
    assert {turn for _, turn in given} == {1, 2}


def test_runner_tells_of_a_turn_whose_session_ends() -> None:
    """The client hangs up in the middle of an answer: its turn is told as cancelled."""
    kept = Kept()

    def silent(job: Job) -> list[Report]:
        return [] if isinstance(job.work, Reply) else list(obliging(job))

    async def test(house: House) -> None:
        session, _ = house.open()
        await client(session, "response.create")
        await asyncio.sleep(0.2)
        house.registry.end(session, "bye")
        await asyncio.sleep(10)
        (record,) = kept.turns
        assert record.outcome is Ending.CANCELLED

    in_house(test, FakeWorkers(silent), instrument=kept)


def test_runner_tells_when_a_typed_turns_answer_began() -> None:
    """Words of a reply go by who measures turns, but for the first: how long the model thought is known of a typed turn
    too, whose times nobody else keeps."""
    kept = Kept()

    async def test(house: House) -> None:
        session, _ = house.open()
        await client(session, "session.update", session={"type": "realtime", "output_modalities": ["text"]})
        await client(session, "response.create")
        await asyncio.sleep(2)
        (record,) = kept.turns
        assert set(record.stages) == {"think"}

    in_house(test, FakeWorkers(), instrument=kept)
