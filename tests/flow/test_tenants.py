"""Accounts of tenants: all resources or none, one account per tenant, as many as there is room for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.clock import seconds
from orchestrator.errors import InvalidState
from orchestrator.flow.limiter import Refusal, RefusalReason
from orchestrator.flow.tenants import LOOKED_AT, Hold, Places, Quotas, ResourceUse, TenantLimits, quotas
from orchestrator.flow.token_limiter import Quota, Resource

TOKENS, AUDIO, REQUESTS = Resource.LLM_TOKENS, Resource.AUDIO_MS, Resource.REQUESTS
GOLD, SILVER = 2, 3
SMALL: Quotas = {TOKENS: Quota(100), REQUESTS: Quota(3)}


def _hold(answer: Hold | Refusal | None) -> Hold:
    assert isinstance(answer, Hold)
    return answer


def test_tenant_limits_without_a_quota_keep_no_account() -> None:
    """A tier without quotas, and a resource that is not bounded, cost nothing."""
    limits = TenantLimits({SILVER: SMALL})
    assert limits.reserve("a", GOLD, {TOKENS: 10**9}, 0) is None
    assert limits.reserve("a", SILVER, {AUDIO: 10**9}, 0) is None
    assert limits.statistics().tenants == 0


def test_tenant_limits_take_all_or_nothing() -> None:
    """Where one resource is used up, what was taken of the others is given back."""
    limits = TenantLimits({SILVER: SMALL})
    for _ in range(3):
        _hold(limits.reserve("a", SILVER, {TOKENS: 1, REQUESTS: 1}, 0))
    assert isinstance(limits.reserve("a", SILVER, {TOKENS: 90, REQUESTS: 1}, 0), Refusal)
    _hold(limits.reserve("a", SILVER, {TOKENS: 97}, 0))


def test_tenant_limits_are_each_tenants_own() -> None:
    """What one has used up is another's to use; with two tiers a tenant has two accounts, unless they are its own."""
    limits = TenantLimits({SILVER: SMALL, GOLD: SMALL}, {"own": {REQUESTS: Quota(1)}})
    _hold(limits.reserve("a", SILVER, {TOKENS: 100}, 0))
    assert isinstance(limits.reserve("a", SILVER, {TOKENS: 1}, 0), Refusal)
    _hold(limits.reserve("b", SILVER, {TOKENS: 100}, 0))
    _hold(limits.reserve("a", GOLD, {TOKENS: 100}, 0))
    _hold(limits.reserve("own", SILVER, {REQUESTS: 1, TOKENS: 10**6}, 0))
    assert isinstance(limits.reserve("own", GOLD, {REQUESTS: 1}, 0), Refusal)


def test_tenant_limits_own_quotas_of_nothing_bound_nothing() -> None:
    """A key file takes the limits of its tier away with `{}`."""
    limits = TenantLimits({SILVER: SMALL}, {"lab": {}})
    assert limits.reserve("lab", SILVER, {TOKENS: 10**6}, 0) is None


def test_hold_ends_once_and_settles_what_was_used() -> None:
    """Of a resource that is not named what was reserved counts as used."""
    limits = TenantLimits({SILVER: SMALL})
    hold = _hold(limits.reserve("a", SILVER, {TOKENS: 80, REQUESTS: 1}, 0))
    assert hold.amounts == {TOKENS: 80, REQUESTS: 1}
    hold.settle({TOKENS: 20}, 1)
    assert hold.ended
    for end in (hold.refund, lambda now: hold.settle({}, now)):
        with pytest.raises(InvalidState):
            end(2)
    over = _hold(limits.reserve("a", SILVER, {TOKENS: 80, REQUESTS: 1}, 2))
    over.settle({TOKENS: 90}, 3)
    back = _hold(limits.reserve("a", SILVER, {REQUESTS: 1}, 4))
    back.refund(5)
    assert limits.statistics().use == {
        (SILVER, TOKENS): ResourceUse(reserved=160, returned=60, overrun=10),
        (SILVER, REQUESTS): ResourceUse(reserved=3, returned=1),
    }
    assert isinstance(limits.reserve("a", SILVER, {TOKENS: 1}, 6), Refusal)
    assert limits.statistics().use[(SILVER, TOKENS)].refused == 1


def test_tenant_limits_forget_who_was_idle_for_a_window() -> None:
    """The longest idle makes room once a new account would say the same; before that a new tenant is told to wait."""
    limits = TenantLimits({SILVER: SMALL}, capacity=2)
    _hold(limits.reserve("a", SILVER, {TOKENS: 100}, seconds(0)))
    _hold(limits.reserve("b", SILVER, {TOKENS: 100}, seconds(10))).settle({}, seconds(10))
    turned_away = limits.reserve("c", SILVER, {TOKENS: 1}, seconds(20))
    assert isinstance(turned_away, Refusal)
    assert turned_away.reason is RefusalReason.TENANT
    assert isinstance(
        limits.reserve("a", SILVER, {TOKENS: 1}, seconds(30)), Refusal
    )  # it is not the longest idle now
    _hold(limits.reserve("c", SILVER, {TOKENS: 1}, seconds(72)))
    told = limits.statistics()
    assert (told.tenants, told.forgotten, told.turned_away) == (2, 1, 1)


def test_tenant_limits_forget_nobody_with_open_work() -> None:
    """Work that has lasted longer than the window is still to be settled on its account."""
    limits = TenantLimits({SILVER: SMALL}, capacity=1)
    hold = _hold(limits.reserve("a", SILVER, {TOKENS: 10}, 0))
    assert isinstance(limits.reserve("b", SILVER, {TOKENS: 1}, seconds(500)), Refusal)
    hold.settle({}, seconds(500))
    _hold(limits.reserve("b", SILVER, {TOKENS: 1}, seconds(501)))


@given(
    calls=st.lists(
        st.tuples(st.sampled_from("abcd"), st.integers(0, seconds(30)), st.integers(1, 60)), max_size=80
    )
)
def test_tenant_limits_hold_for_every_tenant_though_accounts_come_and_go(
    calls: list[tuple[str, int, int]],
) -> None:
    """With fewer accounts than tenants nobody gets more than its quota in any window."""
    limits, now = TenantLimits({SILVER: {TOKENS: Quota(100)}}, capacity=2), seconds(100)
    taken: list[tuple[str, int, int]] = []
    for tenant, gap_us, amount in calls:
        now += gap_us
        answer = limits.reserve(tenant, SILVER, {TOKENS: amount}, now)
        if isinstance(answer, Hold):
            answer.settle({}, now)
            taken.append((tenant, now, amount))
            held = sum(one for who, when, one in taken if who == tenant and when > now - seconds(60))
            assert held <= 100
        assert limits.statistics().tenants <= 2


def test_quotas_are_in_the_units_that_are_counted() -> None:
    """Seconds of sound become milliseconds; a share of a small number is at least one; what is not named is free."""
    assert quotas(llm_tokens=500, audio_s=1.5, window_s=30) == {
        TOKENS: Quota(500, seconds(30)),
        AUDIO: Quota(1_500, seconds(30)),
    }
    assert quotas(requests=5, burst=0.1) == {REQUESTS: Quota(5, seconds(60), 1)}
    assert quotas() == {}


def test_tenant_limits_take_other_quotas_of_tenants_while_they_run() -> None:
    """Who gets quotas, or others, or loses them begins anew; whose stay the same keeps what it has used; what was
    reserved before can still be ended."""
    limits = TenantLimits({SILVER: SMALL}, {"same": SMALL, "changed": SMALL, "lost": {}})
    for tenant in ("same", "changed", "new"):
        _hold(limits.reserve(tenant, SILVER, {TOKENS: 100}, 0))
    open_hold = _hold(limits.reserve("changed", SILVER, {REQUESTS: 1}, 0))
    limits.set_own({"same": SMALL, "changed": {TOKENS: Quota(7)}, "new": {TOKENS: Quota(9)}})
    assert isinstance(limits.reserve("same", SILVER, {TOKENS: 1}, 0), Refusal)
    for tenant, most in (("changed", 7), ("new", 9), ("lost", 100)):
        assert isinstance(limits.reserve(tenant, SILVER, {TOKENS: most + 1}, 0), Refusal)
        _hold(limits.reserve(tenant, SILVER, {TOKENS: most}, 0))
    open_hold.refund(0)
    assert limits.statistics().tenants == 4


@given(st.lists(st.tuples(st.sampled_from("ab"), st.booleans())))
def test_places_are_counted_for_each_tenant(steps: list[tuple[str, bool]]) -> None:
    """Never more than are allowed, never fewer than none, and a tenant without any is not remembered."""
    places, taken = Places(), {"a": 0, "b": 0}
    for tenant, takes in steps:
        if takes:
            assert places.take(tenant, 2) == (taken[tenant] < 2)
            taken[tenant] = min(2, taken[tenant] + 1)
        elif taken[tenant]:
            places.give_back(tenant)
            taken[tenant] -= 1
        else:
            with pytest.raises(InvalidState):
                places.give_back(tenant)
        assert {one: places.taken(one) for one in taken} == taken
    assert all(places.take("c", None) for _ in range(50))


def test_tenant_limits_find_an_idle_account_behind_a_busy_one() -> None:
    """The oldest account has work that never ends; the others were idle for a window, and make room one by one."""
    limits = TenantLimits({SILVER: {TOKENS: Quota(100)}}, capacity=3)
    for tenant in ("busy", "b", "c"):
        hold = limits.reserve(tenant, SILVER, {TOKENS: 10}, 0)
        assert isinstance(hold, Hold)
        if tenant != "busy":
            hold.settle({}, 0)
    for number in range(2):
        assert isinstance(limits.reserve(f"new {number}", SILVER, {TOKENS: 1}, seconds(300)), Hold)
    assert isinstance(limits.reserve("one more", SILVER, {TOKENS: 1}, seconds(300)), Refusal)
    told = limits.statistics()
    assert (told.tenants, told.forgotten, told.turned_away) == (3, 2, 1)


def test_tenant_limits_look_at_some_accounts_only_and_at_others_next_time() -> None:
    """Behind twice as many busy accounts as are looked at an idle one is found by the third that comes."""
    limits = TenantLimits({SILVER: {TOKENS: Quota(100)}}, capacity=2 * LOOKED_AT + 1)
    for number in range(2 * LOOKED_AT):
        limits.reserve(f"busy {number}", SILVER, {TOKENS: 1}, 0)
    idle = limits.reserve("idle", SILVER, {TOKENS: 1}, 0)
    assert isinstance(idle, Hold)
    idle.refund(0)
    came = [limits.reserve(f"new {number}", SILVER, {TOKENS: 1}, seconds(300)) for number in range(3)]
    assert [isinstance(one, Hold) for one in came] == [False, False, True]
