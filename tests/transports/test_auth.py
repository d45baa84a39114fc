"""Keys, client secrets, and where a request carries them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.clock import US_PER_S
from orchestrator.errors import Overloaded, Unauthorized
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
    assert RING.find("sk-acme") is ACME
    assert RING.find("sk-lab") is LAB
    assert RING.find("sk-acm") is None
    assert RING.origins == {"https://app.example.com"}


def test_key_ring_compares_every_key_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hit at the first key looks at all others too, and all comparisons are `hmac.compare_digest`."""
    compared = []

    def compare(one: bytes, other: bytes) -> bool:
        compared.append(other)
        return one == other

    monkeypatch.setattr("orchestrator.transports.auth.hmac.compare_digest", compare)
    assert RING.find("sk-acme") is ACME
    assert len(compared) == len(RING)


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
    secret = gate.secrets.make(ACME, b"{}", 60, 5)
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


def test_secret_book_refuses_a_tenant_over_its_share_and_says_when_to_come_back() -> None:
    """One tenant cannot fill the book for the others."""
    book = SecretBook(8)
    for _ in range(2):
        book.make(ACME, None, 30, 0)
    with pytest.raises(Overloaded) as caught:
        book.make(ACME, None, 30, 10 * US_PER_S)
    assert caught.value.retry_after_s == 20
    assert book.refused == 1
    book.make(LAB, None, 30, 10 * US_PER_S)
    book.make(ACME, None, 30, 30 * US_PER_S)


@given(st.lists(st.tuples(st.sampled_from("abcdefgh"), st.integers(1, 50), st.integers(0, 20)), max_size=60))
def test_secret_book_never_holds_more_than_its_capacity(makes: list[tuple[str, int, int]]) -> None:
    """Whatever is asked for, in whatever order, the bound holds and no living secret is dropped."""
    book = SecretBook(8)
    now_us = 0
    living: dict[str, int] = {}
    waits_s: list[float] = []
    for tenant, lifetime_s, pause_s in makes:
        now_us += pause_s * US_PER_S
        try:
            secret = book.make(Principal(tenant, Tier.GOLD), None, lifetime_s, now_us)
        except Overloaded as refusal:
            waits_s.append(refusal.retry_after_s)
        else:
            living[secret.value] = secret.expires_us
        assert len(book) <= 8
        for value, expires_us in living.items():
            assert (book.find(value, now_us) is not None) == (expires_us > now_us)
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
