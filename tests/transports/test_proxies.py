"""Who asks: the connection's other end, or, where that is a proxy of ours, whom it names."""

import pytest
from starlette.datastructures import Headers

from orchestrator.transports.auth import LOCAL
from orchestrator.transports.proxies import UNKNOWN, Caller, Proxies, caller, calling

PROXIES = Proxies(("10.0.0.0/8", "2001:db8::/32", "127.0.0.1"))


def headers(*forwarded: str, **others: str) -> Headers:
    raw = [(b"x-forwarded-for", one.encode("latin-1")) for one in forwarded]
    raw += [(name.replace("_", "-").encode(), value.encode()) for name, value in others.items()]
    return Headers(raw=raw)


@pytest.mark.parametrize(
    ("peer", "forwarded", "address"),
    [
        ("10.0.0.1", ("203.0.113.7",), "203.0.113.7"),
        ("10.0.0.1", ("6.6.6.6, 203.0.113.7",), "203.0.113.7"),
        ("10.0.0.1", ("6.6.6.6", "203.0.113.7"), "203.0.113.7"),
        ("10.0.0.1", ("6.6.6.6, 203.0.113.7, 10.2.3.4",), "203.0.113.7"),
        ("10.0.0.1", ("203.0.113.7:4711",), "203.0.113.7"),
        ("10.0.0.1", ("[2003::7]:80",), "2003::7"),
        ("10.0.0.1", ("2003::7",), "2003::7"),
        ("10.0.0.1", ("::ffff:203.0.113.7",), "203.0.113.7"),
        ("::ffff:10.0.0.1", ("203.0.113.7",), "203.0.113.7"),
        ("2001:db8::9", ("203.0.113.7",), "203.0.113.7"),
        ("10.0.0.1", ("203.0.113.7, unknown, 10.2.3.4",), "10.2.3.4"),
        ("10.0.0.1", ("203.0.113.7,",), "10.0.0.1"),
        ("10.0.0.1", ("10.0.0.3, 10.0.0.2",), "10.0.0.3"),
        ("10.0.0.1", (), "10.0.0.1"),
        ("10.0.0.1", ("x" * 60_000,), "10.0.0.1"),
        ("10.0.0.1", ("6.6.6.6, " + "10.0.0.2, " * 40 + "10.0.0.2",), "10.0.0.2"),
        ("10.0.0.1", ("203.0.113.7\xb2",), "10.0.0.1"),
    ],
)
def test_a_known_proxy_names_who_asks(peer: str, forwarded: tuple[str, ...], address: str) -> None:
    """The chain is read from the right and no further than known proxies wrote it; what is no address ends it."""
    found = PROXIES.caller_of(peer, headers(*forwarded))
    unnamed = not address.startswith("20") and "10.0.0.2" not in "".join(forwarded)
    assert found == Caller(address, by_proxy=True, unnamed=unnamed, hidden=unnamed and bool(forwarded))


def test_a_known_proxy_that_does_not_say_who_asks_hides_somebody() -> None:
    """On a server without keys everybody would be local through it. One that passes on what this machine asks says so,
    and who asks this machine directly has no such headers."""
    assert not PROXIES.caller_of("127.0.0.1", headers(via="1.1 front")).is_local
    assert not PROXIES.caller_of("127.0.0.1", headers("unknown")).is_local
    assert PROXIES.caller_of("127.0.0.1", headers("127.0.0.1", via="1.1 front")).is_local
    assert PROXIES.caller_of("127.0.0.1", headers()).is_local


@pytest.mark.parametrize(
    "name",
    ["x-forwarded-for", "forwarded", "x-real-ip", "x-forwarded-proto", "x-forwarded-host", "via"],
)
def test_nobody_else_is_believed(name: str) -> None:
    """Who writes the header himself stays who he is, and is known to hide somebody."""
    found = PROXIES.caller_of("203.0.113.9", Headers({name: "127.0.0.1"}))
    assert found == Caller("203.0.113.9", hidden=True)
    assert Proxies().caller_of("127.0.0.1", Headers({name: "127.0.0.1"})).hidden


@pytest.mark.parametrize(
    ("found", "is_local", "is_one_of_many"),
    [
        (Caller("127.0.0.1"), True, False),
        (Caller("::1"), True, False),
        (UNKNOWN, True, False),
        (Caller("127.0.0.1", hidden=True), False, False),
        (Caller("203.0.113.7"), False, True),
        (Caller("203.0.113.7", hidden=True), False, True),
        (Caller("203.0.113.7", by_proxy=True), False, True),
        (Caller("127.0.0.1", by_proxy=True), True, False),
        (Caller("10.0.0.1", by_proxy=True, unnamed=True), False, False),
    ],
)
def test_caller_is_of_this_machine_or_one_of_many(
    found: Caller, is_local: bool, is_one_of_many: bool
) -> None:
    """Whom an unknown proxy hides is not local; an address of this machine may be everybody's."""
    assert (found.is_local, found.is_one_of_many) == (is_local, is_one_of_many)


@pytest.mark.parametrize(
    ("peer", "says", "own", "scheme"),
    [
        ("10.0.0.1", "https", "http", "https"),
        ("10.0.0.1", "https", "ws", "wss"),
        ("10.0.0.1", " HTTPS ", "http", "https"),
        ("10.0.0.1", "gopher", "http", "http"),
        ("203.0.113.9", "https", "http", "http"),
    ],
)
def test_a_known_proxy_names_the_scheme(peer: str, says: str, own: str, scheme: str) -> None:
    """Only one of two, and only from a proxy of ours."""
    assert PROXIES.scheme_of(peer, headers(x_forwarded_proto=says), own) == scheme


def test_caller_is_known_while_a_request_is_answered() -> None:
    """And nobody outside of it."""
    assert caller() is UNKNOWN
    with calling(Caller("203.0.113.7")):
        assert caller().address == "203.0.113.7"
    assert caller() is UNKNOWN


def test_proxies_are_addresses_or_networks() -> None:
    """A name is none."""
    with pytest.raises(ValueError, match="example"):
        Proxies(("proxy.example.com",))


@pytest.mark.parametrize(
    ("peer", "wanted", "session_id"),
    [
        ("10.0.0.1", "0a" * 16, "sess_" + "0a" * 16),
        ("203.0.113.9", "0a" * 16, None),
        ("10.0.0.1", "0a" * 15, None),
        ("10.0.0.1", "0A" * 16, None),
        ("10.0.0.1", "0a" * 16 + "\n", None),
        ("10.0.0.1", "../" + "0a" * 15, None),
    ],
)
def test_a_known_proxy_may_name_the_session_that_is_opened(
    peer: str, wanted: str, session_id: str | None
) -> None:
    """32 hexadecimal digits from a proxy of ours, and from nobody else; anything else is passed over."""
    found = PROXIES.caller_of(peer, headers(chorale_new_session=wanted))
    assert found.session_id == session_id


def test_principal_opens_sessions_under_the_name_that_the_proxy_wants() -> None:
    """Whatever door it came by."""
    with calling(Caller("203.0.113.7", by_proxy=True, session_id="sess_x")):
        assert LOCAL.request(None, None).session_id == "sess_x"
    assert LOCAL.request(None, None).session_id is None
