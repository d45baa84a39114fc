"""Follows a client to an address that it did not announce (RFC 8445 §7.3.1.3): its router gave its packets another
port, or a phone went from one network to the next and its client did not tell ICE.

aioice 0.13 takes what comes from anywhere, but goes on sending to the address that was chosen until its questions have
not been answered for half a minute. Here a client has moved when it gives an authentic sign of itself from somewhere
else (sound that decrypts and is no replay, or a check with the right key) while its old address is silent. Whether it
is reached there is checked as always before anything is sent there. `tests/transports/test_aiortc_moves.py` pins the
parts of aioice.
"""

from typing import Any

from aioice import ice, stun
from aioice.candidate import candidate_priority

from orchestrator.clock import US_PER_MS, US_PER_S, Clock

SOUND_ELSEWHERE_US = 500 * US_PER_MS
CHECK_ELSEWHERE_US = 3 * US_PER_S
"""How long the chosen address must have been silent: sound never comes by two ways at once, checks of a client with
several networks do. Of a client that only listens, reports and answers come at least so often."""

MAX_LEARNT = 16
"""Addresses of a call that were learnt from packets and are remembered; beyond, the oldest is forgotten."""

Address = tuple[str, int]


class Whereabouts:
    """Where a connected client is heard from. Looks at each datagram of one `aioice.Connection`."""

    def __init__(self, connection: Any, clock: Clock) -> None:
        self._connection = connection
        self._clock = clock
        self._chosen: Any = None
        self._heard_us = 0
        self._source: tuple[Address, Any] | None = None
        self._check_incoming = connection.check_incoming
        connection.check_incoming = self._checked
        for protocol in connection._protocols:
            self._listen(protocol)

    def authentic(self) -> None:
        """What arrived last came from the client itself."""
        if self._source is not None and self._is_elsewhere(*self._source, SOUND_ELSEWHERE_US):
            sign = stun.Message(stun.Method.BINDING, stun.Class.REQUEST)
            self._check(sign, *self._source, chosen=True)

    def _checked(self, message: stun.Message, address: Address, protocol: Any) -> None:
        """Takes a check whose key was right."""
        self._check(message, address, protocol, self._is_elsewhere(address, protocol, CHECK_ELSEWHERE_US))

    def _check(self, message: stun.Message, address: Address, protocol: Any, chosen: bool) -> None:
        """Asks back, as ICE does; if that is answered and the address is `chosen`, it is where we send from then on."""
        if not self._is_known(address) and not self._make_room():
            return
        priority = candidate_priority(protocol.local_candidate.component, "prflx")
        message.attributes.setdefault("PRIORITY", priority)
        if chosen:
            message.attributes["USE-CANDIDATE"] = None
            self._ask_anew(address, protocol)
        self._check_incoming(message, address, protocol)

    def _ask_anew(self, address: Address, protocol: Any) -> None:
        """Has an address asked that answered before: whoever is there now need not be who was there then, and a check
        that comes from there may be a copy of an old one."""
        for pair in self._connection._check_list:
            succeeded = pair.state is ice.CandidatePair.State.SUCCEEDED
            if succeeded and pair.protocol is protocol and pair.remote_addr == address:
                self._connection.check_state(pair, ice.CandidatePair.State.WAITING)

    def _listen(self, protocol: Any) -> None:
        usual = protocol.datagram_received

        def datagram_received(data: bytes, address: Any) -> None:
            self._source = (address[0], address[1]), protocol
            chosen = self._chosen_for(protocol)
            if chosen is not None and self._is(chosen, *self._source):
                self._heard_us = self._clock.now_us()
            usual(data, address)

        protocol.datagram_received = datagram_received

    def _chosen_for(self, protocol: Any) -> Any:
        """Returns the pair that is sent by; None before there is one: which is the first, ICE alone decides. One that
        was chosen since counts as heard then."""
        chosen = self._connection._nominated.get(protocol.local_candidate.component)
        if chosen is not self._chosen:
            self._chosen, self._heard_us = chosen, self._clock.now_us()
        return chosen

    def _is(self, pair: Any, address: Address, protocol: Any) -> bool:
        return pair.protocol is protocol and bool(pair.remote_addr == address)

    def _is_elsewhere(self, address: Address, protocol: Any, silent_us: int) -> bool:
        chosen = self._chosen_for(protocol)
        if chosen is None or self._is(chosen, address, protocol):
            return False
        return self._clock.now_us() - self._heard_us >= silent_us

    def _is_known(self, address: Address) -> bool:
        return any((one._network_host, one.port) == address for one in self._connection._remote_candidates)

    def _make_room(self) -> bool:
        """Forgets the oldest learnt addresses but those in use; tells whether there is room for another."""
        connection = self._connection
        learnt = [one for one in connection._remote_candidates if one.type == "prflx"]
        in_use = {id(pair.remote_candidate) for pair in connection._nominated.values()}
        in_use |= {id(pair.remote_candidate) for pair in connection._check_list if pair.task is not None}
        too_many = max(0, len(learnt) + 1 - MAX_LEARNT)
        for candidate in [one for one in learnt if id(one) not in in_use][:too_many]:
            connection._remote_candidates.remove(candidate)
            for pair in [one for one in connection._check_list if one.remote_candidate is candidate]:
                connection._check_list.remove(pair)
            learnt.remove(candidate)
        return len(learnt) < MAX_LEARNT
