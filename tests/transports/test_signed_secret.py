"""What a client secret says can be read by everybody and written by nobody else."""

import base64
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.transports.signed_secret import (
    CONFIG_BYTES,
    NONCE_BYTES,
    SECRET_PREFIX,
    Claims,
    Seal,
    config_digest,
)

KEY = bytes(range(32))
CLAIMS = Claims(1_900_000_000_000_000, "0123456789ab", bytes(CONFIG_BYTES), bytes(NONCE_BYTES), 3)


@given(
    st.builds(
        Claims,
        expires_us=st.integers(0, 2**64 - 1),
        key_id=st.binary(min_size=6, max_size=6).filter(any).map(bytes.hex) | st.just(""),
        config=st.binary(min_size=CONFIG_BYTES, max_size=CONFIG_BYTES),
        nonce=st.binary(min_size=NONCE_BYTES, max_size=NONCE_BYTES),
        uses=st.integers(0, 255),
    )
)
def test_seal_opens_what_it_closed(claims: Claims) -> None:
    """All of it comes back, and the secret fits a subprotocol and a URL."""
    secret = Seal(KEY).close(claims)
    assert Seal(KEY).open(secret) == claims
    assert secret.startswith(SECRET_PREFIX)
    assert secret.replace("-", "").replace("_", "").isalnum()
    assert len(secret) == 107


@given(st.integers(0, 77), st.integers(1, 255))
def test_seal_opens_nothing_of_which_a_byte_was_changed(position: int, change: int) -> None:
    """Every byte is signed, the version and the signature too."""
    signed = bytearray(base64.urlsafe_b64decode(Seal(KEY).close(CLAIMS)[3:]))
    signed[position] ^= change
    assert Seal(KEY).open(SECRET_PREFIX + base64.urlsafe_b64encode(signed).decode()) is None


@pytest.mark.parametrize(
    "change",
    [
        lambda secret: secret[:-1],
        lambda secret: secret + "A",
        lambda secret: secret + "=",
        lambda secret: secret[:-4],
        lambda secret: secret[:50] + "\n" + secret[51:],
        lambda secret: secret[:50] + "." + secret[51:],
        lambda secret: secret[:50] + "²" + secret[51:],
        lambda secret: secret[:50] + "\udcff" + secret[51:],
        lambda secret: " " + secret,
        lambda secret: secret[3:],
        lambda secret: "",
        lambda secret: "ek_",
    ],
)
def test_seal_opens_no_other_spelling(change: Callable[[str], str]) -> None:
    """Cut, prolonged, padded, or with letters that a decoder might pass over: it is another, and worth nothing."""
    secret = Seal(KEY).close(CLAIMS)
    assert Seal(KEY).open(change(secret)) is None


def test_seal_opens_nothing_of_another_key() -> None:
    """Another server's secrets are unknown."""
    assert Seal(bytes(32)).open(Seal(KEY).close(CLAIMS)) is None


def test_seal_compares_the_signature_in_constant_time_and_looks_at_nothing_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One `compare_digest` for a right and for a forged one, over the whole signature."""
    compared: list[tuple[int, int]] = []

    def compare(one: bytes, other: bytes) -> bool:
        compared.append((len(one), len(other)))
        return one == other

    monkeypatch.setattr("orchestrator.transports.signed_secret.hmac.compare_digest", compare)
    secret = Seal(KEY).close(CLAIMS)
    assert Seal(KEY).open(secret) == CLAIMS
    assert Seal(KEY).open(SECRET_PREFIX + "A" * 104) is None
    assert compared == [(32, 32), (32, 32)]


def test_seal_needs_a_key_that_nobody_can_guess() -> None:
    """31 bytes are refused."""
    with pytest.raises(ValueError, match="32"):
        Seal(bytes(31))


def test_config_digest_tells_tenants_and_sessions_apart() -> None:
    """Also where a tenant's name ends as another's session begins."""
    digests = {
        config_digest(*both) for both in (("a", b"b"), ("ab", b""), ("a", b"c"), ("b", b"b"), ("", b"ab"))
    }
    assert len(digests) == 5
