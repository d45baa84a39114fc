"""What jobs cost their tenants: reserved when they are submitted, put right when they end, whatever the end."""

import asyncio
from collections.abc import Mapping

import pytest
from msgspec import structs

from orchestrator.clock import seconds
from orchestrator.flow.limiter import Refusal, RefusalReason
from orchestrator.flow.tenants import Quotas, ResourceUse, TenantLimits
from orchestrator.flow.token_limiter import Quota, Resource
from orchestrator.scheduling.cost import Charge, Costs
from orchestrator.scheduling.dispatcher import Dispatcher
from orchestrator.scheduling.job import Job, Tier
from orchestrator.scheduling.work import (
    Embed,
    Embedded,
    Failed,
    PromptMessage,
    Replied,
    Reply,
    ReplyText,
    Report,
    Score,
    Speak,
    Transcribe,
    Transcribed,
    Understand,
    Work,
)
from tests.scheduling.dispatching import llm, on_virtual_time, tick
from tests.virtual_time import VirtualClock

TOKENS, AUDIO, REQUESTS = Resource.LLM_TOKENS, Resource.AUDIO_MS, Resource.REQUESTS
HELLO = Reply((PromptMessage("user", "x" * 100),), max_tokens=40)


def _job(id: str, work: Work, *, session: str = "s") -> Job:
    return Job(id, session, work, Tier.GOLD, 2, 0, seconds(1000))


def _costs(quotas: Mapping[Resource, int], default: int = 1_024) -> Costs:
    own: Quotas = {resource: Quota(limit) for resource, limit in quotas.items()}
    return Costs(TenantLimits({Tier.GOLD: own}), default)


def _charge(costs: Costs, work: Work) -> Charge:
    charge = costs.reserve("t", _job("j", work), 0)
    assert isinstance(charge, Charge)
    return charge


def _held(costs: Costs, resource: Resource) -> ResourceUse:
    return costs.statistics().use.get((Tier.GOLD, resource), ResourceUse())


def test_costs_of_a_reply_are_what_is_read_and_what_may_be_written() -> None:
    """100 bytes count as 50 tokens before anything is known, and the client's bound is what may be written."""
    costs = _costs({TOKENS: 1_000, REQUESTS: 5})
    charge = _charge(costs, HELLO)
    assert charge.hold is not None
    assert charge.hold.amounts == {TOKENS: 90, REQUESTS: 1}
    costs.settle(charge, Replied("j", "stop", 30, 0, 12), 0, 1)
    assert _held(costs, TOKENS) == ResourceUse(reserved=90, returned=48)
    assert _held(costs, REQUESTS) == ResourceUse(reserved=1)


def test_costs_hold_a_reply_without_a_bound_to_the_default_where_tokens_are_bounded() -> None:
    """What is reserved must be enough: the model is told to stop there. Without such a quota nothing is changed."""
    unbounded = structs.replace(HELLO, max_tokens=None)
    work = _charge(_costs({TOKENS: 1_000}, default=200), unbounded).job.work
    assert isinstance(work, Reply)
    assert work.max_tokens == 200
    assert _charge(_costs({REQUESTS: 5}), unbounded).job.work == unbounded


def test_costs_learn_how_many_tokens_a_byte_is() -> None:
    """A quarter more than the highest seen: 30 tokens for 100 bytes make an estimate of 38."""
    costs = _costs({TOKENS: 1_000})
    costs.settle(_charge(costs, HELLO), Replied("j", "stop", 20, 0, 0), 0, 1)
    costs.settle(_charge(costs, HELLO), Replied("j", "stop", 30, 0, 0), 0, 1)
    charge = _charge(costs, HELLO)
    assert charge.hold is not None
    assert charge.hold.amounts[TOKENS] == 38 + 40


def test_costs_of_a_final_recognition_are_the_sound_that_is_heard() -> None:
    """Two seconds of sound are 2,000 ms."""
    costs = _costs({AUDIO: 10_000})
    charge = _charge(costs, Transcribe(0, 32_000, audio=bytes(64_000)))
    assert charge.hold is not None
    assert charge.hold.amounts == {AUDIO: 2_000}
    costs.settle(charge, Transcribed("j", "hello"), 0, 1)
    assert _held(costs, AUDIO) == ResourceUse(reserved=2_000)


def test_costs_of_vectors_are_the_tokens_that_they_are_of() -> None:
    """Two bytes are a token before it is known better; what fails or is taken back costs nothing, and what a language
    model makes of bytes is not learnt from it."""
    costs = _costs({TOKENS: 1_000})
    asked = Embed(("x" * 100, "y" * 100))
    charge = _charge(costs, asked)
    assert charge.hold is not None
    assert charge.hold.amounts == {TOKENS: 102}
    costs.settle(charge, Embedded("j", (b"", b""), 30), 0, 1)
    assert _held(costs, TOKENS) == ResourceUse(reserved=102, returned=72)
    costs.settle(_charge(costs, asked), None, 0, 1)
    costs.settle(_charge(costs, asked), Failed("j", "worker_failed", "m"), 0, 1)
    assert _held(costs, TOKENS) == ResourceUse(reserved=306, returned=276)
    reply = _charge(costs, HELLO)
    assert reply.hold is not None
    assert reply.hold.amounts[TOKENS] == 90


@pytest.mark.parametrize(
    "work",
    [
        Transcribe(0, 32_000, draft=True, audio=bytes(64_000)),
        Score(0, 320, ("a",), "b"),
        Understand("hello"),
        Speak("hello"),
    ],
)
def test_costs_of_what_the_server_makes_for_itself_are_nothing(work: Work) -> None:
    """Drafts, scores, understanding and speech open no account."""
    costs = _costs({TOKENS: 1, AUDIO: 1, REQUESTS: 1})
    assert _charge(costs, work).hold is None
    assert costs.statistics().tenants == 0


@pytest.mark.parametrize(
    ("report", "written", "returned"),
    [
        (Failed("j", "worker_failed", "broken"), 0, 90),
        (Failed("j", "deadline_exceeded", "late"), 60, 90),
        (None, 0, 90),  # taken back before anything came
        (None, 60, 90 - 50 - 20),  # taken back half way: read, and 60 characters written
    ],
)
def test_costs_of_what_did_not_end_well(report: Report | None, written: int, returned: int) -> None:
    """What failed costs nothing; what was interrupted costs what was done."""
    costs = _costs({TOKENS: 1_000})
    costs.settle(_charge(costs, HELLO), report, written, 1)
    assert _held(costs, TOKENS).returned == returned


def test_costs_are_settled_once() -> None:
    """A job that ended and is then forgotten with its session is booked once."""
    costs = _costs({TOKENS: 1_000})
    charge = _charge(costs, HELLO)
    costs.settle(charge, Replied("j", "stop", 30, 0, 12), 0, 1)
    costs.settle(charge, None, 0, 2)
    assert _held(costs, TOKENS).returned == 48


def test_costs_refuse_where_a_quota_is_used_up() -> None:
    """The refusal says whose fault it is."""
    costs = _costs({TOKENS: 100})
    _charge(costs, HELLO)
    answer = costs.reserve("t", _job("k", HELLO), 0)
    assert isinstance(answer, Refusal)
    assert answer.reason is RefusalReason.TENANT


def test_dispatcher_five_replies_at_once_do_not_pass_a_limit_of_100_tokens() -> None:
    """Two of 40 fit, three are told when to come back, and the estimate of what did not run is free again (F-L3)."""

    async def main() -> None:
        workers = llm(8)
        dispatcher = Dispatcher(workers, VirtualClock(), costs=_costs({TOKENS: 100}))
        dispatcher.start()
        inbox: dict[str, list[Report]] = {"a": [], "b": [], "other": []}
        for session, tenant in (("a", "t"), ("b", "t"), ("other", "u")):
            dispatcher.listen(session, inbox[session].append, tenant)
        work = Reply((PromptMessage("user", "x" * 20),), max_tokens=30)
        for number in range(5):
            session = "ab"[number % 2]  # all sessions of a tenant share its quota
            dispatcher.submit(_job(f"j{number}", work, session=session))
        dispatcher.submit(_job("o", work, session="other"))
        await tick()
        assert workers.sent == [("w", ["j0", "j1", "o"])]
        refused = [one for one in inbox["a"] + inbox["b"] if isinstance(one, Failed)]
        assert {(one.code, one.reason) for one in refused} == {("rate_limit_exceeded", "tenant_limit")}
        assert [one.job_id for one in sorted(refused, key=lambda one: one.job_id)] == ["j2", "j3", "j4"]
        assert all(0 < one.retry_after_s <= 61 for one in refused)
        workers.report("w", Replied("j0", "stop", 4, 0, 6))  # 10 of the 40
        dispatcher.cancel("j1")  # nothing of it had come
        dispatcher.submit(_job("j5", work, session="a"))
        dispatcher.submit(_job("j6", work, session="b"))
        await tick()
        assert [ids for _, ids in workers.sent[1:]] == [["j5", "j6"]]
        dispatcher.close()

    on_virtual_time(main())


def test_dispatcher_reply_that_was_interrupted_costs_what_was_said() -> None:
    """A client that always interrupts pays for what the model did."""

    async def main() -> None:
        workers = llm(8)
        costs = _costs({TOKENS: 1_000})
        dispatcher = Dispatcher(workers, VirtualClock(), costs=costs)
        dispatcher.start()
        dispatcher.listen("s", lambda _: None, "t")
        dispatcher.submit(_job("j", HELLO))
        await tick()
        workers.report("w", ReplyText("j", "y" * 30))
        dispatcher.cancel("j")
        assert _held(costs, TOKENS) == ResourceUse(reserved=90, returned=90 - 50 - 10)
        dispatcher.submit(_job("k", HELLO))
        dispatcher.drop_session("s")
        assert _held(costs, TOKENS) == ResourceUse(reserved=180, returned=30 + 90)
        await asyncio.sleep(0)
        dispatcher.close()

    on_virtual_time(main())


def test_dispatcher_tells_with_a_reply_what_its_tenant_may_still_use() -> None:
    """As booked, not as reserved; of a tenant's own reply only, and nothing where there are no quotas."""

    async def main() -> None:
        workers = llm(8)
        clock = VirtualClock()
        dispatcher = Dispatcher(workers, clock, costs=_costs({TOKENS: 1_000, REQUESTS: 5, AUDIO: 9}))
        dispatcher.start()
        came: list[Report] = []
        dispatcher.listen("s", came.append, "t")
        dispatcher.submit(_job("j", HELLO))
        await tick()
        workers.report("w", Replied("j", "stop", 30, 0, 20))
        await tick()
        (replied,) = came
        assert isinstance(replied, Replied)
        requests, tokens = replied.limits
        assert (requests.name, requests.limit, requests.remaining) == ("requests", 5, 4)
        assert (tokens.name, tokens.limit, tokens.remaining) == ("tokens", 1_000, 950)
        assert 59 < tokens.reset_s < 61
        dispatcher.close()

    on_virtual_time(main())


def test_costs_without_quotas_of_replies_tell_nothing() -> None:
    """Sound is no limit that the protocol knows."""
    replied = Replied("j", "stop", 30, 0, 20)
    assert _costs({AUDIO: 9}).with_limits(replied, "t", Tier.GOLD, 0) is replied
    untouched = _costs({TOKENS: 7}).with_limits(replied, "nobody yet", Tier.GOLD, 0)
    assert [(one.remaining, one.reset_s) for one in untouched.limits] == [(7, 0.0)]


def test_costs_of_a_request_are_booked_at_once() -> None:
    """Work that costs nothing by itself costs a request where somebody asks for it alone; the next one waits."""
    costs = _costs({REQUESTS: 1, TOKENS: 10})
    assert costs.request("t", Tier.GOLD, 0) is None
    assert _held(costs, REQUESTS).reserved == 1
    refusal = costs.request("t", Tier.GOLD, 1)
    assert isinstance(refusal, Refusal)
    assert refusal.reason is RefusalReason.TENANT
    assert refusal.retry_after_s > 0
    assert costs.request("other", Tier.GOLD, 1) is None
    assert _costs({TOKENS: 10}).request("t", Tier.GOLD, 0) is None
