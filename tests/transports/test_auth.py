"""Keys, client secrets, and where a request carries them."""

import hmac
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.clock import US_PER_S
from orchestrator.errors import Overloaded, Unauthorized
from orchestrator.flow.tenants import Allowance
from orchestrator.scheduling.job import Tier
from orchestrator.transports.auth import (
    LOCAL,
    Gate,
    Key,
    KeyRing,
    Principal,
    SecretBook,
    credential,
    digest_of,
    offered_subprotocols,
)

ACME = Principal("acme", Tier.PLATINUM, ("https://app.example.com",))
LAB = Principal("lab", Tier.SILVER)
RING = KeyRing([Key(digest_of("sk-acme"), ACME), Key(digest_of("sk-lab"), LAB)])


def keyed(capacity: int = 100) -> Gate:
    return Gate(RING, SecretBook(capacity))


def test_key_ring_finds_the_tenant_of_a_key() -> None:
    """Each key stands for its tenant, tier and pages; an unknown one for nobody."""
    assert RING.find("sk-acme") == replace(ACME, key_id=digest_of("sk-acme").hex()[:12])
    assert (RING.find("sk-lab") or ACME).tenant == "lab"
    assert RING.find("sk-acm") is None
    assert RING.origins == {"https://app.example.com"}


def test_key_ring_compares_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hit at the first key looks at all others whose hashes begin alike too, and all comparisons are
    `hmac.compare_digest`."""
    digest = digest_of("sk-acme")
    alike = digest[:8] + bytes(24)
    ring = KeyRing([Key(digest, ACME), Key(alike, LAB), Key(bytes(32), LAB)])
    compared = []

    def compare(one: bytes, other: bytes) -> bool:
        compared.append(other)
        return one == other

    monkeypatch.setattr("orchestrator.transports.auth.hmac.compare_digest", compare)
    assert ring.find("sk-acme") == replace(ACME, key_id=digest.hex()[:12])
    assert compared == [digest, alike]


@pytest.mark.parametrize("presented", [None, "", "sk-nobody", "ek_nobody"])
def test_gate_with_keys_refuses_who_has_none(presented: str | None) -> None:
    """No key, a wrong key and an unknown secret are all unauthorised."""
    with pytest.raises(Unauthorized):
        keyed().admit(presented, 0)


def test_gate_without_keys_lets_everyone_in_with_any_key() -> None:
    """Libraries insist on sending some key; a keyless server takes it."""
    gate = Gate(None, SecretBook(10))
    assert gate.admit(None, 0) is LOCAL
    assert gate.admit("sk-whatever", 0) is LOCAL
    assert not gate.needs_key


def test_gate_without_keys_still_checks_client_secrets() -> None:
    """A secret carries a session: an expired one is refused instead of silently losing it."""
    gate = Gate(None, SecretBook(10))
    secret = gate.secrets.make(LOCAL, b'{"instructions":"x"}', 10, 0)
    assert gate.admit(secret.value, 0).initial == b'{"instructions":"x"}'
    with pytest.raises(Unauthorized):
        gate.admit(secret.value, 10 * US_PER_S)


def test_client_secret_stands_for_its_maker_until_it_expires() -> None:
    """Tenant, tier, pages and the session part come back, any number of times, and not one microsecond too long."""
    gate = keyed()
    secret = gate.secrets.make(gate.admit("sk-acme", 0), b"{}", 60, 5)
    assert secret.value.startswith("ek_")
    assert secret.expires_us == 60 * US_PER_S + 5
    for _ in range(3):
        found = gate.admit(secret.value, secret.expires_us - 1)
        assert (found.tenant, found.tier, found.origins, found.initial) == (
            "acme",
            Tier.PLATINUM,
            ACME.origins,
            b"{}",
        )
        assert found.temporary
    with pytest.raises(Unauthorized):
        gate.admit(secret.value, secret.expires_us)


def test_client_secret_dies_with_its_key_and_follows_its_changes() -> None:
    """It is worth what its key is worth now: another tier, and nothing once the key has gone or expired."""
    gate = keyed()
    secret = gate.secrets.make(gate.admit("sk-acme", 0), None, 600, 0).value
    slower = replace(ACME, tier=Tier.SILVER)
    gate.replace(KeyRing([Key(digest_of("sk-acme"), slower, expires_us=100)]))
    assert gate.admit(secret, 99).tier is Tier.SILVER
    with pytest.raises(Unauthorized):
        gate.admit(secret, 100)
    gate.replace(KeyRing([Key(digest_of("sk-lab"), LAB)]))
    with pytest.raises(Unauthorized):
        gate.admit(secret, 0)


@pytest.mark.parametrize("initial", [None, b'{"type":"realtime"}'])
def test_client_secret_is_worth_nothing_once_its_key_is_anothers(initial: bytes | None) -> None:
    """What was made for one tenant opens nothing of the next; back with the first it does."""
    gate = Gate(RING, SecretBook(10))
    secret = gate.secrets.make(gate.admit("sk-acme", 0), initial, 60, 0).value
    gate.replace(KeyRing([Key(digest_of("sk-acme"), LAB)]))
    with pytest.raises(Unauthorized):
        gate.admit(secret, 1)
    gate.replace(RING)
    assert gate.admit(secret, 1).tenant == "acme"


@pytest.mark.parametrize("makers_ring", [RING, None])
def test_client_secret_is_worth_nothing_where_keys_were_brought_in_or_given_up(
    makers_ring: KeyRing | None,
) -> None:
    """A server with the same signing key, but once with keys and once without, takes no secret of its former life."""
    signing_key = bytes(range(32))
    before = Gate(makers_ring, SecretBook(10, signing_key))
    after = Gate(None if makers_ring else RING, SecretBook(10, signing_key))
    secret = before.secrets.make(before.admit("sk-acme", 0), None, 60, 0).value
    assert before.admit(secret, 1).temporary
    with pytest.raises(Unauthorized):
        after.admit(secret, 1)


def test_client_secret_outlives_the_process_but_not_without_its_session() -> None:
    """With the same signing key a new book knows it again; one whose session part is lost is refused: the server's own
    session in its place might allow more."""
    signing_key = bytes(range(32))
    made = Gate(RING, SecretBook(10, signing_key))
    owner = made.admit("sk-lab", 0)
    plain = made.secrets.make(owner, None, 60, 0).value
    bound = made.secrets.make(owner, b'{"type":"realtime"}', 60, 0).value
    once = made.secrets.make(owner, None, 60, 0, uses=1).value
    later = Gate(RING, SecretBook(10, signing_key))
    assert later.admit(plain, 1).tenant == "lab"
    with pytest.raises(Unauthorized):
        later.admit(bound, 1)
    with pytest.raises(Unauthorized, match="has been used"):
        later.use(later.admit(once, 1))
    with pytest.raises(Unauthorized):
        keyed().admit(plain, 1)


def test_client_secret_begins_as_many_things_as_it_says() -> None:
    """The last use is the last, one that came to nothing counts again, and one without a number has no end."""
    gate = keyed()
    owner = gate.admit("sk-lab", 0)
    twice = gate.admit(gate.secrets.make(owner, None, 60, 0, uses=2).value, 1)
    gate.use(twice)
    gate.give_back(twice)
    gate.use(twice)
    gate.use(twice)
    with pytest.raises(Unauthorized):
        gate.use(twice)
    endless = gate.admit(gate.secrets.make(owner, None, 60, 0).value, 1)
    for _ in range(300):
        gate.use(endless)
    gate.use(owner)


def test_key_that_has_expired_lets_nobody_in() -> None:
    """To the microsecond; it is still compared like any other."""
    gate = Gate(KeyRing([Key(digest_of("sk-acme"), ACME, expires_us=50)]), SecretBook(4))
    assert gate.admit("sk-acme", 49).tenant == "acme"
    with pytest.raises(Unauthorized):
        gate.admit("sk-acme", 50)


def test_gate_tells_once_which_keys_are_worth_nothing_any_more() -> None:
    """Taken out, expired, or given to another tenant; one whose tier changed, or that is new, is not among them."""
    names = ("sk-1", "sk-2", "sk-3", "sk-4")
    kept, out, moved, ends = (Key(digest_of(name), LAB) for name in names)
    gate = Gate(KeyRing([kept, out, moved, replace(ends, expires_us=10)]), SecretBook(4))
    assert gate.gone(0) == frozenset()
    assert gate.gone(9) == frozenset()
    gate.replace(
        KeyRing([
            replace(kept, principal=replace(LAB, tier=Tier.GOLD)),
            replace(moved, principal=ACME),
            replace(ends, expires_us=10),
            Key(digest_of("sk-5"), LAB),
        ])
    )  # fmt: skip
    assert gate.gone(9) == {out.id, moved.id}
    assert gate.gone(10) == {ends.id}
    assert gate.gone(11) == frozenset()


def test_keys_are_looked_at_no_more_often_for_being_many() -> None:
    """A thousand: one that is shown is compared with hardly any, and who asks again and again which have gone looks at
    none, until one of them ends."""
    compared, asked = 0, 0

    class Counted(Key):
        def is_valid(self, now_us: int) -> bool:
            nonlocal asked
            asked += 1
            return super().is_valid(now_us)

    ring = KeyRing(
        [Counted(digest_of(f"sk-{number}"), LAB, expires_us=number + 50) for number in range(1_000)]
    )
    same = hmac.compare_digest

    def counting(one: bytes, other: bytes) -> bool:
        nonlocal compared
        compared += 1
        return same(one, other)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hmac, "compare_digest", counting)
        assert ring.find("sk-7", 0) == ring.keys[7].principal
        assert ring.find("sk-nobody", 0) is None
    assert 1 <= compared < 10
    valid, asked = ring.valid(0), 0
    assert ring.valid(49) is valid
    assert asked == 0
    assert len(ring.valid(50)) == 999


def test_secret_book_refuses_a_tenant_over_its_share_and_says_when_to_come_back() -> None:
    """One tenant cannot fill the book for the others; what is kept already is kept for longer at no price."""
    book = SecretBook(8)
    for number in range(2):
        book.make(ACME, b"%d" % number, 30, 0)
    book.make(ACME, b"1", 40, 0)
    with pytest.raises(Overloaded) as caught:
        book.make(ACME, b"3", 30, 10 * US_PER_S)
    assert (caught.value.retry_after_s, caught.value.is_tenant) == (20, True)
    assert book.refused == 1
    with pytest.raises(Overloaded):
        book.make(ACME, b"1", 30, 10 * US_PER_S, uses=1)
    book.make(LAB, b"1", 30, 10 * US_PER_S)
    book.make(ACME, b"3", 30, 30 * US_PER_S)
    with pytest.raises(Overloaded):
        book.make(ACME, b"4", 30, 30 * US_PER_S)
    assert len(book) == 3


def test_secret_book_that_is_full_is_so_for_everybody() -> None:
    """Who has kept nothing yet is refused too, and not for what he did."""
    book = SecretBook(4)
    for number in range(4):
        book.make(Principal(f"tenant {number}", Tier.GOLD), b"{}", 30, 0)
    with pytest.raises(Overloaded) as caught:
        book.make(LAB, b"{}", 30, 0)
    assert not caught.value.is_tenant


def test_what_one_key_says_of_its_tenants_places_holds_for_all_its_keys() -> None:
    """A second key that names no bounds, made for a rotation, lifts none; other tenants are not bounded by it."""
    ring = KeyRing([
        Key(digest_of("sk-1"), replace(ACME, allowance=Allowance(sessions=3))),
        Key(digest_of("sk-2"), ACME),
        Key(digest_of("sk-3"), replace(ACME, allowance=Allowance(links=5))),
        Key(digest_of("sk-4"), LAB),
    ])  # fmt: skip
    allowed = [key.principal.allowance for key in ring.keys]
    assert allowed == [Allowance(3, 5)] * 3 + [Allowance()]
    found = ring.find("sk-2")
    assert found is not None
    assert found.allowance == Allowance(3, 5)


def test_secret_book_that_refuses_keeps_nothing_of_it() -> None:
    """A session and a number of uses take two places, or none."""
    book = SecretBook(4)
    with pytest.raises(Overloaded):
        book.make(ACME, b"{}", 30, 0, uses=1)
    assert len(book) == 0


@given(st.lists(st.tuples(st.sampled_from("abcdefgh"), st.integers(1, 50), st.integers(0, 20)), max_size=60))
def test_secret_book_never_holds_more_than_its_capacity(makes: list[tuple[str, int, int]]) -> None:
    """Whatever is asked for, in whatever order, the bound holds and no living secret is dropped."""
    book = SecretBook(8)
    now_us = 0
    living: dict[str, int] = {}
    tenants: dict[str, str] = {}
    waits_s: list[float] = []
    for number, (tenant, lifetime_s, pause_s) in enumerate(makes):
        now_us += pause_s * US_PER_S
        initial = b"%d" % number
        try:
            secret = book.make(Principal(tenant, Tier.GOLD), initial, lifetime_s, now_us)
        except Overloaded as refusal:
            waits_s.append(refusal.retry_after_s)
        else:
            living[secret.value] = secret.expires_us
            tenants[secret.value] = tenant
        assert len(book) <= 8
        for value, expires_us in living.items():
            claims = book.find(value, now_us)
            assert (claims is not None) == (expires_us > now_us)
            if claims is not None:
                assert book.part_of(claims, tenants[value])
    assert all(wait_s > 0 for wait_s in waits_s)


@pytest.mark.parametrize(
    ("headers", "key"),
    [
        ({"authorization": "Bearer sk-1"}, "sk-1"),
        ({"authorization": "bearer  sk-1 "}, "sk-1"),
        ({"authorization": "Basic sk-1"}, None),
        ({"authorization": "Bearer "}, None),
        (
            {"sec-websocket-protocol": "realtime, openai-insecure-api-key.ek_1, openai-beta.realtime-v1"},
            "ek_1",
        ),
        ({"sec-websocket-protocol": "realtime"}, None),
        ({"sec-websocket-protocol": "openai-insecure-api-key."}, None),
        ({"authorization": "Bearer sk-1", "sec-websocket-protocol": "openai-insecure-api-key.ek_2"}, "sk-1"),
        ({}, None),
    ],
)
def test_credential_is_in_the_header_or_in_the_subprotocols(headers: dict[str, str], key: str | None) -> None:
    """Programs send a bearer key, browsers can only name it among the subprotocols."""
    assert credential(headers) == key


def test_offered_subprotocols_come_in_order() -> None:
    """Spaces and empty entries do not matter."""
    assert offered_subprotocols({"sec-websocket-protocol": " realtime,, a.b "}) == ["realtime", "a.b"]
