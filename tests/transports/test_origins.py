"""Which web pages and which names may talk to the server."""

import pytest

from orchestrator.transports.origins import allows, check_entry, host_name, is_loopback


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST", "a.localhost", "127.0.0.1", "127.9.9.9", "::1", "[::1]"]
)
def test_is_loopback_knows_this_machine(host: str) -> None:
    """Every way to name this machine alone counts."""
    assert is_loopback(host)


@pytest.mark.parametrize(
    "host", ["0.0.0.0", "::", "10.0.0.1", "localhost.evil.com", "127.0.0.1.evil.com", "evillocalhost", ""]
)
def test_is_loopback_refuses_names_that_only_look_like_it(host: str) -> None:
    """A name that an attacker can register never counts as this machine."""
    assert not is_loopback(host)


@pytest.mark.parametrize(
    ("header", "name"),
    [
        ("localhost:8080", "localhost"),
        ("[::1]:8080", "::1"),
        ("127.0.0.1", "127.0.0.1"),
        ("evil.com:80", "evil.com"),
        ("a/b", None),
        ("user@localhost", None),
        ("localhost:port", None),
        ("", None),
        (None, None),
    ],
)
def test_host_name_takes_port_and_brackets_off(header: str | None, name: str | None) -> None:
    """What is no plain host is no name at all."""
    assert host_name(header) == name


@pytest.mark.parametrize(
    ("entry", "canonical"),
    [
        ("https://App.Example.com:443", "https://app.example.com"),
        ("http://[::1]:3000", "http://[::1]:3000"),
        ("loopback", "loopback"),
        ("*", "*"),
        ("null", "null"),
    ],
)
def test_check_entry_writes_origins_one_way(entry: str, canonical: str) -> None:
    """Case and default ports make no difference."""
    assert check_entry(entry) == canonical


@pytest.mark.parametrize(
    "entry", ["example.com", "https://a.b/path", "ftp://a.b", "https://", "https://a b", "https://u@a.b"]
)
def test_check_entry_refuses_what_is_no_origin(entry: str) -> None:
    """A typo in the list is a fault, not an entry that never matches."""
    with pytest.raises(ValueError):
        check_entry(entry)


@pytest.mark.parametrize(
    ("entries", "origin", "host", "allowed"),
    [
        (["loopback"], None, "localhost", True),
        (["loopback"], "http://localhost:5173", "127.0.0.1:8080", True),
        (["loopback"], "https://127.0.0.1", "x", True),
        (["loopback"], "http://evil.com", "127.0.0.1:8080", False),
        (["loopback"], "http://localhost.evil.com", "127.0.0.1:8080", False),
        (["loopback"], "null", "127.0.0.1:8080", False),
        (["loopback"], "http://localhost/path", "x", False),
        ([], "http://localhost:5173", "127.0.0.1:8080", False),
        ([], "https://talk.example.com", "talk.example.com", True),
        ([], "https://talk.example.com", "talk.example.com:443", True),
        ([], "https://talk.example.com:8443", "talk.example.com", False),
        ([], "https://talk.example.com", None, False),
        (["https://app.example.com"], "https://app.example.com", "x", True),
        (["https://app.example.com"], "https://APP.example.com:443", "x", True),
        (["https://app.example.com"], "http://app.example.com", "x", False),
        (["https://app.example.com"], "https://app.example.com.evil.com", "x", False),
        (["null"], "null", "x", True),
        (["*"], "http://anything.example", "x", True),
    ],
)
def test_allows_pages_that_are_listed_or_our_own(
    entries: list[str], origin: str | None, host: str | None, allowed: bool
) -> None:
    """Programs (no origin), listed origins and pages that this server delivered may ask; others may not."""
    assert allows(entries, origin, host) is allowed
