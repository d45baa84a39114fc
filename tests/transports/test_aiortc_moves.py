"""Clients that come from elsewhere, and what of aioice is relied on for following them."""

import asyncio
import inspect
from dataclasses import dataclass
from typing import Any

import pytest
from aioice import Candidate, ice, stun

from orchestrator.transports.aiortc_moves import (
    CHECK_ELSEWHERE_US,
    MAX_LEARNT,
    SOUND_ELSEWHERE_US,
    Address,
    Whereabouts,
)

HOME, AWAY = ("192.0.2.1", 4_000), ("198.51.100.7", 5_000)


@dataclass
class Watch:
    """A clock that is set."""

    at_us: int = 0

    def now_us(self) -> int:
        return self.at_us


class Socket:
    """What of a `StunProtocol` is looked at."""

    def __init__(self) -> None:
        self.local_candidate = Candidate("a", 1, "udp", 1, "203.0.113.1", 9, "host")
        self.datagrams: list[bytes] = []

    def datagram_received(self, data: bytes, addr: Address) -> None:
        self.datagrams.append(data)


class Line:
    """A connection whose client is at `HOME`; checks that come to ICE are kept, and not carried out."""

    def __init__(self) -> None:
        self.clock = Watch()
        self.socket: Any = Socket()
        self.connection: Any = as_it_is(ice.Connection(ice_controlling=False))
        self.connection._early_checks_done = True
        self.connection._protocols = [self.socket]
        self.checks: list[tuple[Address, bool]] = []
        self.connection.check_incoming = self._check
        self.pair = self.learn(HOME)
        self.connection._nominated[1] = self.pair
        self.whereabouts = Whereabouts(self.connection, self.clock)

    def learn(self, address: Address) -> ice.CandidatePair:
        candidate = Candidate("x", 1, "udp", 1, address[0], address[1], "prflx")
        candidate._network_host = address[0]
        self.connection._remote_candidates.append(candidate)
        pair = ice.CandidatePair(self.socket, candidate)
        self.connection._check_list.append(pair)
        return pair

    def _check(self, message: stun.Message, address: Address, protocol: object) -> None:
        assert "PRIORITY" in message.attributes
        self.checks.append((address, "USE-CANDIDATE" in message.attributes))
        if address not in [pair.remote_addr for pair in self.connection._check_list]:
            self.learn(address)

    def sound(self, address: Address) -> None:
        self.socket.datagram_received(b"\x80sound", address)
        self.whereabouts.authentic()

    def check(self, address: Address) -> None:
        self.connection.check_incoming(
            stun.Message(stun.Method.BINDING, stun.Class.REQUEST), address, self.socket
        )


def as_it_is(part: object) -> Any:
    """Returns it as something whose inside may be changed."""
    return part


def on_a_line(test: Any) -> None:
    async def main() -> None:
        test(Line())

    asyncio.run(main())


def test_sound_from_elsewhere_is_asked_back_once_the_old_address_is_silent() -> None:
    """Not before: what was under way longest comes last, and moves nobody."""

    def test(line: Line) -> None:
        line.sound(HOME)
        line.clock.at_us += SOUND_ELSEWHERE_US - 1
        line.sound(AWAY)
        assert line.checks == []
        line.clock.at_us += 1
        line.sound(AWAY)
        assert line.checks == [(AWAY, True)]
        assert len(line.socket.datagrams) == 3, "every datagram goes its usual way"

    on_a_line(test)


def test_sound_from_where_it_is_expected_asks_nothing() -> None:
    """However long the silence before."""

    def test(line: Line) -> None:
        line.clock.at_us += 100 * SOUND_ELSEWHERE_US
        line.sound(HOME)
        assert line.checks == []

    on_a_line(test)


def test_a_check_from_elsewhere_chooses_only_where_the_old_address_is_silent() -> None:
    """A client with two networks checks both all the time; it stays on the one that it chose."""

    def test(line: Line) -> None:
        line.clock.at_us += CHECK_ELSEWHERE_US - 1
        line.check(AWAY)
        line.sound(HOME)
        line.clock.at_us += CHECK_ELSEWHERE_US - 1
        line.check(AWAY)
        line.clock.at_us += 1
        line.check(AWAY)
        assert line.checks == [(AWAY, False), (AWAY, False), (AWAY, True)]

    on_a_line(test)


def test_what_address_is_the_first_is_none_of_our_business() -> None:
    """A client that takes its time to call is not hurried into one of its addresses by its first checks."""

    def test(line: Line) -> None:
        line.connection._nominated.clear()
        line.clock.at_us += 2 * CHECK_ELSEWHERE_US
        line.check(AWAY)
        line.sound(AWAY)
        assert line.checks == [(AWAY, False)]

    on_a_line(test)


def test_an_address_that_was_chosen_just_now_is_not_silent() -> None:
    """However long ago the line was made, or the address before it was heard."""

    def test(line: Line) -> None:
        line.connection._nominated[1] = line.learn(AWAY)
        line.clock.at_us += 2 * CHECK_ELSEWHERE_US
        line.connection._nominated[1] = line.pair
        line.check(AWAY)
        line.clock.at_us += CHECK_ELSEWHERE_US - 1
        line.check(AWAY)
        line.clock.at_us += 1
        line.check(AWAY)
        assert line.checks == [(AWAY, False), (AWAY, False), (AWAY, True)]

    on_a_line(test)


def test_an_address_that_answered_once_has_to_answer_again() -> None:
    """Somebody else may have it by now, and the check that comes from there be a copy of an old one: until there is an
    answer nothing is sent there."""

    def test(line: Line) -> None:
        asked: list[ice.CandidatePair] = []
        line.connection.check_start_task = asked.append
        del line.connection.check_incoming
        line.whereabouts = Whereabouts(line.connection, line.clock)
        before = line.learn(AWAY)
        before.state, before.nominated = ice.CandidatePair.State.SUCCEEDED, True
        line.check(HOME)
        line.clock.at_us += CHECK_ELSEWHERE_US
        line.check(AWAY)
        assert asked[-1] is before
        assert line.connection._nominated[1] is line.pair

    on_a_line(test)


def test_addresses_without_end_are_not_remembered() -> None:
    """A caller that checks from one port after another, with the right key, has the oldest forgotten; the address in
    use stays."""

    def test(line: Line) -> None:
        for port in range(1, 10 * MAX_LEARNT):
            line.check((AWAY[0], port))
        known = [(one._network_host, one.port) for one in line.connection._remote_candidates]
        assert len(known) == MAX_LEARNT
        assert known[0] == HOME
        assert known[-1] == (AWAY[0], 10 * MAX_LEARNT - 1)
        assert len(line.connection._check_list) == MAX_LEARNT
        assert len(line.checks) == 10 * MAX_LEARNT - 1

    on_a_line(test)


def test_where_every_address_is_being_checked_further_ones_are_not() -> None:
    """What is under way is not forgotten, and its number is bounded."""

    def test(line: Line) -> None:
        for port in range(1, MAX_LEARNT):
            line.check((AWAY[0], port))
            line.connection._check_list[-1].task = "under way"
        line.check(AWAY)
        assert AWAY not in [address for address, _ in line.checks]

    on_a_line(test)


def test_aioice_has_the_parts_that_are_used() -> None:
    """Datagrams by protocol and address, checks by message, and the lists in which pairs are kept."""
    names = list(inspect.signature(ice.StunProtocol.datagram_received).parameters)
    assert names == ["self", "data", "addr"]
    names = list(inspect.signature(ice.Connection.check_incoming).parameters)
    assert names == ["self", "message", "addr", "protocol"]
    source = inspect.getsource(ice.Connection)
    assert source.count("self.check_incoming(") == 2
    assert "self._nominated[pair.component] = pair" in source
    assert '"USE-CANDIDATE" in message.attributes and not self.ice_controlling' in source
    fresh: Any = ice.Connection(ice_controlling=False)
    for name in ("_nominated", "_check_list", "_remote_candidates", "_protocols"):
        assert not getattr(fresh, name)


@pytest.mark.parametrize("address", [("::1", 5_000, 0, 0), ("192.0.2.1", 4_000)])
def test_addresses_of_both_families_are_known_again(address: Any) -> None:
    """Those of IPv6 come with two numbers more."""

    def test(line: Line) -> None:
        line.connection._nominated[1] = line.learn(address[:2])
        line.clock.at_us += SOUND_ELSEWHERE_US
        line.sound(address)
        assert line.checks == []

    on_a_line(test)
