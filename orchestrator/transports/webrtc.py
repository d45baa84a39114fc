"""The WebRTC door: SDP offers in, answers out, and the calls that came of them."""

import asyncio
import contextlib
from collections.abc import Iterator

from orchestrator.clock import Clock, MonotonicClock
from orchestrator.errors import Overloaded
from orchestrator.sessions.links import SessionDirectory, SessionPort, SessionRequest
from orchestrator.transports.call import Call, CallSettings
from orchestrator.transports.entrance import KEY_WITHDRAWN
from orchestrator.transports.offers import Offer, read_offer
from orchestrator.transports.rejoining import Back

_RETRY_AFTER_S = 2.0
RETURN_AFTER_S = 1.0
"""When a second call to one session may be tried, while the first is being answered."""


class CallDoor:
    """Opens a session for each offer and holds the calls until they are gone.

    A session whose first call never connected is ended at once; one whose call was cut off lives on for its grace time,
    and another call may come back to it.
    """

    def __init__(
        self, directory: SessionDirectory, settings: CallSettings | None = None, clock: Clock | None = None
    ) -> None:
        self._directory = directory
        self._settings = settings or CallSettings()
        self._clock = clock or MonotonicClock()
        self._calls: dict[str, Call] = {}
        self._callers: dict[str, SessionRequest] = {}  # who asked for each call
        self._returning: set[str] = set()

    @property
    def calls(self) -> int:
        """Calls that are not gone, connected or not."""
        return len(self._calls)

    def unread(self) -> tuple[int, int, int]:
        """Returns the events of all calls that nobody has read yet: how many, and their bytes; none is dropped."""
        sizes = [call.unread for call in self._calls.values()]
        return sum(count for count, _ in sizes), sum(size for _, size in sizes), 0

    def find(self, call_id: str) -> Call | None:
        """Returns a call that is not gone."""
        return self._calls.get(call_id)

    def session_of(self, call_id: str) -> SessionPort | None:
        """Returns the session of a call that is not gone."""
        call = self._calls.get(call_id)
        return None if call is None else call.session

    async def answer(
        self, offer_sdp: str, request: SessionRequest, back: Back | None = None
    ) -> tuple[str, str]:
        """Opens a call, to a session of its own or `back` to one: returns its id and the answer. Raises `WireError` on
        a bad offer, `Overloaded`, `SessionClosed`; then, and when cancelled, nothing of the call is left."""
        offer = read_offer(offer_sdp)
        self._check_room(request)
        with self._one_return(back):
            return await self._answer(offer, request, back)

    async def _answer(self, offer: Offer, request: SessionRequest, back: Back | None) -> tuple[str, str]:
        call_id, session = self._directory.open_call(request, None if back is None else back.session)
        call = Call(call_id, session, offer, self._settings, self._clock, self._gone, back, self._settle)
        self._calls[call_id] = call
        self._callers[call_id] = request
        try:
            return call_id, await call.answer()
        except BaseException:
            await call.close("it was not answered")
            raise

    async def hang_up(self, call_id: str, tenant: str) -> None:
        """Ends a call and its session. Raises `SessionClosed` where that tenant has no such call."""
        session = self._directory.by_call(call_id, tenant)
        self._directory.end(session, "the call was hung up")
        call = self._calls.get(call_id)
        if call is not None:
            await call.close("it was hung up")

    def withdraw(self, key_ids: frozenset[str]) -> None:
        """Ends the calls that came back to a session by one of these keys; those that opened one end with it."""
        for call_id, call in self._calls.items():
            if self._callers[call_id].key_id in key_ids and not call.opened_session:
                call.end(KEY_WITHDRAWN)

    async def close(self) -> None:
        """Ends every call; returns when they are gone."""
        await asyncio.gather(*(call.close("the server is closing") for call in tuple(self._calls.values())))

    def _check_room(self, request: SessionRequest) -> None:
        """Raises `Overloaded` where too many calls are being connected, each of which has sockets and a session. A
        tenant may take a quarter of the places; without keys all are one tenant, and it may take all."""
        most = self._settings.max_connecting
        if most is None:
            return
        connecting = [self._callers[id].tenant for id, call in self._calls.items() if not call.was_connected]
        if len(connecting) >= most:
            raise Overloaded("too many calls are being connected", _RETRY_AFTER_S)
        mine = connecting.count(request.tenant)
        if request.key_id and mine >= max(1, most // 4):
            raise Overloaded("too many calls of this key's tenant are being connected", _RETRY_AFTER_S, True)

    @contextlib.contextmanager
    def _one_return(self, back: Back | None) -> Iterator[None]:
        """One at a time: a call that comes back takes none of the places that are counted, until it has taken over from
        the one before. Raises `Overloaded`."""
        if back is None:
            yield
            return
        if back.session.id in self._returning:
            raise Overloaded("another call is coming back to this session already", RETURN_AFTER_S)
        self._returning.add(back.session.id)
        try:
            yield
        finally:
            self._returning.discard(back.session.id)

    def _settle(self, session: SessionPort) -> None:
        for call in self._calls.values():
            if call.session is session:
                call.settle()

    def _gone(self, call: Call) -> None:
        self._calls.pop(call.id, None)
        self._callers.pop(call.id, None)
        if not call.was_connected and call.opened_session:
            self._directory.end(call.session, "the call never connected")
