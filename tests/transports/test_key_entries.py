"""Editing a key file keeps what people wrote in it, or refuses."""

from pathlib import Path

import pytest
import yaml

from orchestrator.errors import ConfigError
from orchestrator.transports.auth import digest_of
from orchestrator.transports.key_entries import with_entry, without_clear_keys, without_entry
from orchestrator.transports.key_file import parse_keys

PATH = Path("keys.yaml")
ONE, TWO, THREE = (digest_of(f"sk-number-{number}-0123456789").hex() for number in (1, 2, 3))
FILE = f"""\
# The keys of the house.
keys:
  - sha256: "{ONE}"   # made in spring
    tenant: acme
    origins:
      - https://a.b   # the shop

  # For the lab:
  -
    sha256: "{TWO}"
    tenant: lab
    limits: {{requests: 5}}
# The end.
"""


def entry(digest: str) -> dict[str, object]:
    return {"sha256": digest, "tenant": "new: one", "tier": "gold", "origins": ["https://c.d"], "links": 3}


def test_with_entry_writes_a_file_that_is_not_there() -> None:
    """One entry under a heading, and it is a key file."""
    ring = parse_keys(with_entry("", entry(ONE), PATH), PATH)
    assert [key.principal.tenant for key in ring.keys] == ["new: one"]


def test_with_entry_adds_behind_the_others_and_keeps_comments() -> None:
    """All that was there is still there, line by line."""
    text = with_entry(FILE, entry(THREE), PATH)
    assert [key.id for key in parse_keys(text, PATH).keys] == [ONE[:12], TWO[:12], THREE[:12]]
    kept = iter(text.splitlines())
    assert all(line in kept for line in FILE.splitlines())


@pytest.mark.parametrize(("gone", "stays"), [(ONE, TWO), (TWO, ONE)])
def test_without_entry_takes_one_out_and_keeps_the_rest(gone: str, stays: str) -> None:
    """First or last, with its dash on a line of its own or not."""
    text = without_entry(FILE, gone[:12], PATH)
    assert [key.id for key in parse_keys(text, PATH).keys] == [stays[:12]]
    assert gone not in text
    for comment in ("# The keys of the house.", "# For the lab:", "# The end."):
        assert comment in text


def test_without_entry_refuses_an_unknown_and_the_last_key() -> None:
    """A server without keys would not start."""
    with pytest.raises(ConfigError, match="there is no key"):
        without_entry(FILE, "0" * 12, PATH)
    left = without_entry(FILE, ONE[:12], PATH)
    with pytest.raises(ConfigError, match="the last key"):
        without_entry(left, TWO[:12], PATH)


def test_without_clear_keys_puts_hashes_in_their_place() -> None:
    """The same keys are valid after it, none stands there, and comments stay."""
    clear = "sk-clear-0123456789abcdef"
    text = (
        f"keys:\n- {{key: {clear}, tenant: a}}   # one\n- key: '{clear}2'\n  tenant: b\n"
        f"- {{sha256: {ONE}, tenant: c}}\n"
    )
    hidden = without_clear_keys(text, PATH)
    ring = parse_keys(hidden, PATH)
    assert ring.in_clear == 0
    assert clear not in hidden
    found = ring.find(clear), ring.find(clear + "2")
    assert [one and one.tenant for one in found] == ["a", "b"]
    assert "# one" in hidden
    assert without_clear_keys(hidden, PATH) == hidden


@pytest.mark.parametrize(
    "text",
    [
        f"keys: [{{sha256: '{ONE}', tenant: a}}]",
        f"x: &one {{sha256: '{ONE}', tenant: a}}\nkeys:\n- *one",
        "keys:\n- {tenant: a}",
        "keys: 7",
    ],
)
def test_with_entry_refuses_what_it_cannot_edit(text: str) -> None:
    """A file that is wrong, or written in a way that has no place for a line more, is left to its owner."""
    with pytest.raises(ConfigError):
        with_entry(text, entry(THREE), PATH)


def test_with_entry_refuses_an_entry_that_would_be_wrong() -> None:
    """The text that comes out is a key file, always: the same key twice is none."""
    with pytest.raises(ConfigError, match="twice"):
        with_entry(FILE, entry(TWO), PATH)
    with pytest.raises(ConfigError, match="tier"):
        with_entry(FILE, {**entry(THREE), "tier": "tin"}, PATH)
    assert yaml.safe_load(FILE)["keys"][0]["sha256"] == ONE
