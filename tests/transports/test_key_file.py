"""The key file is read whole, or refused with everything that is wrong with it and without showing a key."""

import hashlib
from datetime import UTC, datetime
from pathlib import Path

import pytest

from orchestrator.clock import US_PER_S
from orchestrator.errors import ConfigError
from orchestrator.flow.tenants import BOUNDLESS
from orchestrator.flow.token_limiter import Quota, Resource
from orchestrator.scheduling.job import Tier
from orchestrator.transports.auth import KeyRing
from orchestrator.transports.key_file import read_key_file, read_signing_key

ROOT = Path(__file__).parents[2]
KEY = "sk-0123456789abcdef"


def read(text: str, folder: Path) -> KeyRing:
    file = folder / "keys.yaml"
    file.write_text(text)
    return read_key_file(file)


def refused(text: str, folder: Path) -> str:
    with pytest.raises(ConfigError) as caught:
        read(text, folder)
    return str(caught.value)


def test_read_key_file_takes_keys_in_clear_and_as_hash(tmp_path: Path) -> None:
    """Both forms let the same key in."""
    digest = hashlib.sha256(b"sk-other-0123456789").hexdigest()
    ring = read(
        f"keys:\n- {{key: {KEY}, tenant: acme, tier: platinum, origins: ['https://A.b:443']}}\n"
        f"- {{sha256: '{digest}', tenant: lab}}\n",
        tmp_path,
    )
    acme, lab = ring.find(KEY), ring.find("sk-other-0123456789")
    assert acme is not None
    assert lab is not None
    assert (acme.tenant, acme.tier, acme.origins) == ("acme", Tier.PLATINUM, ("https://a.b",))
    assert (lab.tenant, lab.tier, lab.origins) == ("lab", Tier.GOLD, None)


def test_read_key_file_takes_limits_of_a_tenant(tmp_path: Path) -> None:
    """A tenant's own limits hold for all its keys, `{}` takes those of its tier away; who names none is not listed."""
    other = KEY[:-1]
    ring = read(
        "keys:\n"
        f"- {{key: {KEY}1, tenant: acme, limits: {{llm_tokens: 900, audio_s: 1.5, window_s: 30, burst: 0.5}}}}\n"
        f"- {{key: {KEY}2, tenant: acme}}\n"
        f"- {{key: {KEY}3, tenant: lab, limits: {{}}}}\n"
        f"- {{key: {other}4, tenant: shop}}\n",
        tmp_path,
    )
    window_us = 30_000_000
    assert ring.quotas == {
        "acme": {
            Resource.LLM_TOKENS: Quota(900, window_us, 450),
            Resource.AUDIO_MS: Quota(1_500, window_us, 750),
        },
        "lab": {},
    }


def test_read_key_file_names_faults_of_limits(tmp_path: Path) -> None:
    """A number that is none, one out of range, an unknown word, and a tenant whose keys disagree."""
    text = refused(
        "keys:\n"
        f"- {{key: {KEY}1, tenant: a, limits: {{llm_tokens: many, audio_s: 0, requests: 1.5, burst: 2, tokens: 5}}}}\n"
        f"- {{key: {KEY}2, tenant: b, limits: 7}}\n"
        f"- {{key: {KEY}3, tenant: c, limits: {{requests: true}}}}\n"
        f"- {{key: {KEY}4, tenant: d, limits: {{requests: 1}}}}\n"
        f"- {{key: {KEY}5, tenant: d, limits: {{requests: 2}}}}\n",
        tmp_path,
    )
    for fault in (
        "keys.0.limits.llm_tokens: expected a whole number from 1",
        "keys.0.limits.audio_s: expected a number from 0.001",
        "keys.0.limits.requests: expected a whole number",
        "keys.0.limits.burst: expected a number from 0.001 to 1",
        "keys.0.limits.tokens: there is no such key",
        "keys.1.limits: expected a mapping",
        "keys.2.limits.requests: expected a whole number",
        "the limits of d are not the same",
    ):
        assert fault in text


def test_read_key_file_shows_no_key_that_stands_where_a_name_belongs(tmp_path: Path) -> None:
    """Written as a mapping, by its own pattern or none."""
    text = refused(
        "keys:\n- {sk-0123456789abcdef: acme, our-own-kind-of-key: acme}\n"
        "- {key: sk-0123456789abcdeg, tenant: a, limits: {sk-0123456789abcdef: 1}}\nour-own-kind-of-key: {}\n",
        tmp_path,
    )
    assert "keys.0.(a name of 19 characters): there is no such key" in text
    assert "sk-" not in text
    assert "our-own" not in text


def test_read_key_file_names_every_fault_and_no_key(tmp_path: Path) -> None:
    """All faults come at once; neither keys nor hashes are shown."""
    text = refused(
        "keys:\n"
        "- {key: short-secret, tenant: a}\n"
        "- {key: sk-0123456789abcdef, sha256: abc, tenant: b}\n"
        "- {sha256: zz, tenant: c, tier: bronze}\n"
        f"- {{key: {KEY}, tenat: d, origins: [nonsense]}}\n"
        "- {key: ek_0123456789abcdef, tenant: e}\n"
        "- 7\n",
        tmp_path,
    )
    for fault in (
        "keys.0.key: expected at least 16 characters",
        "keys.1: expected either key or sha256",
        "keys.2.sha256: expected 64 hexadecimal digits",
        "keys.2.tier: expected platinum, gold, silver",
        "keys.3.tenat: there is no such key",
        "keys.3.tenant: expected a name",
        "keys.3.origins.0: expected an origin",
        "keys.4.key: ek_ is kept for client secrets",
        "keys.5: expected a mapping",
    ):
        assert fault in text
    assert "short-secret" not in text
    assert "0123456789abcdef" not in text


@pytest.mark.parametrize("text", ["", "keys: []", "keys: {}", "[1]", "keys: [", "a: b"])
def test_read_key_file_needs_at_least_one_key(text: str, tmp_path: Path) -> None:
    """A file that would let nobody in, or is no YAML, is refused by name."""
    assert "keys.yaml" in refused(text, tmp_path)


@pytest.mark.parametrize(
    ("entry", "count"), [("tier: best", "1 fault in "), ("tier: best, tenat: b", "2 faults in ")]
)
def test_read_key_file_counts_its_faults_in_words(entry: str, count: str, tmp_path: Path) -> None:
    """One is a fault, more are faults."""
    assert refused(f"keys: [{{key: {KEY}, tenant: a, {entry}}}]", tmp_path).startswith(count)


@pytest.mark.parametrize(
    ("text", "line", "name"),
    [
        ("keys:\n- key: {key}\n  tenant: a\n  tenant: b\n", 4, "tenant"),
        ("keys:\n- key: {key}\n  tenant: a\n  limits:\n    requests: 1\n    requests: 9\n", 6, "requests"),
        ("keys:\n- {{key: {key}, tenant: a}}\nkeys: []\n", 3, "keys"),
        ("keys:\n- tenant: a\n  {key}: 1\n  {key}: 2\n", 4, "(a name of 19 characters)"),
    ],
)
def test_read_key_file_refuses_a_name_twice_in_one_place(
    text: str, line: int, name: str, tmp_path: Path
) -> None:
    """Neither of them wins silently: the limit that was meant to hold might be the other one. No key is shown."""
    said = refused(text.format(key=KEY), tmp_path)
    assert f"line {line}: {name} stands twice" in said
    assert KEY not in said


def test_read_key_file_refuses_a_key_twice(tmp_path: Path) -> None:
    """Two tenants with one key would be one tenant."""
    assert "twice" in refused(f"keys: [{{key: {KEY}, tenant: a}}, {{key: {KEY}, tenant: b}}]", tmp_path)


def test_read_key_file_refuses_the_shipped_example() -> None:
    """The example shows both forms; nothing is wrong with it but that everyone knows its keys."""
    with pytest.raises(ConfigError) as caught:
        read_key_file(ROOT / "configs/keys.example.yaml")
    lines = str(caught.value).splitlines()
    assert len(lines) == 3
    assert all("key of the example file" in line for line in lines[1:])


def test_read_key_file_names_a_missing_file(tmp_path: Path) -> None:
    """A path that leads nowhere is said as such."""
    with pytest.raises(ConfigError, match="cannot be read"):
        read_key_file(tmp_path / "keys.yaml")


def test_read_key_file_takes_places_and_expiry(tmp_path: Path) -> None:
    """How many sessions and links a tenant may have, and when a key ends: a day is its beginning, in UTC."""
    ring = read(
        f"keys:\n- {{key: {KEY}1, tenant: a, sessions: 2, links: 3, expires: 2130-01-31}}\n"
        f"- {{key: {KEY}2, tenant: b, expires: 2130-01-31T02:00:00+02:00}}\n"
        f"- {{key: {KEY}3, tenant: b, expires: '2130-01-31T00:00:00Z'}}\n"
        f"- {{key: {KEY}4, tenant: c}}\n",
        tmp_path,
    )
    ends_us = int(datetime(2130, 1, 31, tzinfo=UTC).timestamp()) * US_PER_S
    assert [key.expires_us for key in ring.keys] == [ends_us, ends_us, ends_us, None]
    first = ring.find(f"{KEY}1", ends_us - 1)
    assert first is not None
    assert (first.allowance.sessions, first.allowance.links) == (2, 3)
    assert ring.find(f"{KEY}1", ends_us) is None
    assert ring.keys[3].principal.allowance == BOUNDLESS
    assert ring.in_clear == 4


def test_read_key_file_names_faults_of_places_and_expiry(tmp_path: Path) -> None:
    """Numbers that are none, times that are none, and a tenant whose keys disagree."""
    text = refused(
        f"keys:\n- {{key: {KEY}1, tenant: a, sessions: 0, links: many, expires: soon}}\n"
        f"- {{key: {KEY}2, tenant: b, sessions: true, expires: 7}}\n"
        f"- {{key: {KEY}3, tenant: c, sessions: 1}}\n"
        f"- {{key: {KEY}4, tenant: c, sessions: 2}}\n",
        tmp_path,
    )
    for fault in (
        "keys.0.sessions: expected a whole number from 1",
        "keys.0.links: expected a whole number from 1",
        "keys.0.expires: expected a day or a time",
        "keys.1.sessions: expected a whole number",
        "keys.1.expires: expected a day or a time",
        "the limits of c are not the same",
    ):
        assert fault in text


@pytest.mark.parametrize("text", ["keys:\n- {expires: 2130-13-45}", "keys: " + "[" * 5_000, "\x00"])
def test_read_key_file_refuses_what_breaks_its_reader(text: str, tmp_path: Path) -> None:
    """A day that no calendar has, or brackets without end: no YAML, and no crash."""
    assert "YAML" in refused(text, tmp_path)


def test_read_signing_key_wants_32_bytes(tmp_path: Path) -> None:
    """One that is short or not there is refused by name, and says how to make one."""
    file = tmp_path / "secret"
    with pytest.raises(ConfigError, match="cannot be read"):
        read_signing_key(file)
    file.write_bytes(bytes(31))
    with pytest.raises(ConfigError, match=r"31 bytes.*urandom"):
        read_signing_key(file)
    file.write_bytes(bytes(32))
    assert read_signing_key(file) == bytes(32)


def test_read_key_file_refuses_a_quota_that_fits_no_reply(tmp_path: Path) -> None:
    """Every reply of that tenant would be refused: the fault names the key's place and the field."""
    file = tmp_path / "keys.yaml"
    file.write_text(
        "keys:\n"
        f"- {{key: {KEY}1, tenant: a, limits: {{llm_tokens: 1024}}}}\n"
        f"- {{key: {KEY}2, tenant: b, limits: {{llm_tokens: 60000, burst: 0.01}}}}\n"
        f"- {{key: {KEY}3, tenant: c, limits: {{llm_tokens: 1025}}}}\n"
    )
    with pytest.raises(ConfigError) as caught:
        read_key_file(file, 1_024)
    assert "keys.0.limits.llm_tokens: expected at least 1025, got 1024" in str(caught.value)
    assert "keys.1.limits.burst: expected a share of at least 1025 of 60000 tokens, got 600" in str(
        caught.value
    )
    assert "keys.2" not in str(caught.value)
    assert len(read_key_file(file, 599)) == 3
