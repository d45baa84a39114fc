"""The one check at the entrance of every door: the name asked for, the page that asks, the key it brings."""

from collections.abc import Mapping, Sequence

from orchestrator.clock import Clock
from orchestrator.transports import origins
from orchestrator.transports.auth import Gate, Principal, credential
from orchestrator.transports.refusals import Refusal, ShuttingDown


class Entrance:
    """Decides who may come in. `headers` are lower-case names to values throughout."""

    def __init__(
        self, gate: Gate, allowed_origins: Sequence[str], hosts: Sequence[str], clock: Clock
    ) -> None:
        """`allowed_origins` are checked entries (`origins.check_entry`); `hosts` further names of a keyless server."""
        self.gate = gate
        self._origins = tuple(allowed_origins)
        self._hosts = frozenset(host.lower() for host in hosts)
        self._clock = clock
        self._closed = False

    def close(self) -> None:
        """Lets nobody in from now on (a server that drains)."""
        self._closed = True

    @property
    def is_closed(self) -> bool:
        return self._closed

    def check_host(self, headers: Mapping[str, str]) -> None:
        """Raises `Refusal` (421) where a keyless server is asked for under a name that is not its own."""
        if self.gate.needs_key:
            return
        name = origins.host_name(headers.get("host"))
        if name is None or not (origins.is_loopback(name) or name in self._hosts):
            raise Refusal(
                421,
                "host_not_allowed",
                "This server answers to localhost only. Name further hosts in server.hosts, or set server.key_file.",
            )

    def check_page(self, headers: Mapping[str, str]) -> str | None:
        """Returns the origin of the page that asks, None for a program. Raises `Refusal` (403) on a page that neither
        the server nor any of its keys allows: all that a preflight can be told."""
        origin = headers.get("origin")
        if not origins.allows((*self._origins, *self.gate.origins), origin, headers.get("host")):
            raise _page_refused()
        return origin

    def admit(self, headers: Mapping[str, str]) -> Principal:
        """Returns who asks. Raises `Unauthorized` and `Refusal` (403: this key may not be used on that page)."""
        principal = self.gate.admit(credential(headers), self._clock.now_us())
        allowed = self._origins if principal.origins is None else principal.origins
        if not origins.allows(allowed, headers.get("origin"), headers.get("host")):
            raise _page_refused()
        return principal

    def admit_new(self, headers: Mapping[str, str]) -> Principal:
        """As `admit`, for what starts something new. Raises `ShuttingDown` too."""
        principal = self.admit(headers)
        if self._closed:
            raise ShuttingDown
        return principal


def _page_refused() -> Refusal:
    return Refusal(
        403, "origin_not_allowed", "Web pages of this origin may not use this server (see server.origins)."
    )
