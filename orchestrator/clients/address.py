"""Where a Realtime server is, how to show the key, and how its refusals read."""

import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar
from urllib.parse import urlencode, urlsplit, urlunsplit

import httpx

from orchestrator.errors import ChoraleError

Event = dict[str, Any]
"""A JSON object of the protocol: what it holds is up to its `type`."""

_WEB_SOCKET_SCHEMES = {"http": "ws", "https": "wss", "ws": "ws", "wss": "wss"}
_HTTP_SCHEMES = {"ws": "http", "wss": "https", "http": "http", "https": "https"}


class ServerAway(ChoraleError):
    """Nobody answers at the address."""

    code: ClassVar[str] = "server_away"
    retryable: ClassVar[bool] = True

    def __init__(self, url: str, why: str) -> None:
        super().__init__(f"no server answers at {url} ({why}). Start one with: chorale serve")


class ServerUntrusted(ChoraleError):
    """Somebody answers at the address, with a certificate that this machine has no reason to believe."""

    code: ClassVar[str] = "server_untrusted"

    def __init__(self, url: str, why: str) -> None:
        super().__init__(
            f"the certificate of {url} is not trusted ({why}). Where it is your own, name its file in SSL_CERT_FILE"
        )


def retry_after_s(headers: Mapping[str, str]) -> float:
    """Returns for how long a server asks to be left alone: whole seconds, a minute at most; 0 where it says nothing."""
    text = headers.get("Retry-After", "")
    return min(60.0, float(text)) if text.isascii() and text.isdigit() else 0.0


class ServerRefused(ChoraleError):
    """The server answers, and says no. `retry_after_s`: before that it wants to hear nothing."""

    code: ClassVar[str] = "server_refused"

    def __init__(self, status: int, message: str, retry_after_s: float = 0.0) -> None:
        hint = ". Give a key with --key or CHORALE_API_KEY" if status == 401 else ""
        super().__init__(f"the server refuses ({status}): {message.rstrip('.')}{hint}")
        self.status = status
        self.retry_after_s = retry_after_s


class CallFailed(ChoraleError):
    """The connection could not be made, or broke."""

    code: ClassVar[str] = "call_failed"
    retryable: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class Address:
    """A server's base URL, with or without ``/v1``, and the key to show. Raises `ValueError` on what is no URL."""

    url: str
    key: str | None = None

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme not in _HTTP_SCHEMES or not parts.netloc:
            raise ValueError(
                f"{self.url!r} is not a server's URL; expected for example http://127.0.0.1:8080"
            )

    @property
    def headers(self) -> dict[str, str]:
        """What every request carries."""
        return {"Authorization": f"Bearer {self.key}"} if self.key else {}

    @property
    def calls(self) -> str:
        """Where offers are posted."""
        return self._at("/calls", _HTTP_SCHEMES)

    @property
    def trust(self) -> ssl.SSLContext | bool:
        """Which certificates are believed over HTTPS: those of the system, or of ``SSL_CERT_FILE``."""
        is_secure = _HTTP_SCHEMES[urlsplit(self.url).scheme] == "https"
        return ssl.create_default_context() if is_secure else True

    def socket(
        self, model: str | None = None, call_id: str | None = None, place: Mapping[str, str] | None = None
    ) -> str:
        """Where WebSockets connect: a session of their own, a sideband of a call, or a `place` in a session."""
        asked = place or ({"call_id": call_id} if call_id else {"model": model} if model else {})
        return self._at("", _WEB_SOCKET_SCHEMES) + (f"?{urlencode(asked)}" if asked else "")

    def _at(self, path: str, schemes: dict[str, str]) -> str:
        parts = urlsplit(self.url)
        base = parts.path.rstrip("/").removesuffix("/realtime").removesuffix("/v1")
        return urlunsplit((schemes[parts.scheme], parts.netloc, f"{base}/v1/realtime{path}", "", ""))


def unreachable(url: str, error: BaseException, why: str | None = None) -> ServerAway | ServerUntrusted:
    """Returns what a failed connection means: the certificate's fault, or nobody there, for `why` or in the error's
    own words."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return ServerUntrusted(url, cause.verify_message.rstrip("."))
        cause = cause.__cause__ or cause.__context__
    return ServerAway(url, why or str(error) or type(error).__name__)


def refusal(response: httpx.Response) -> ServerRefused:
    """Returns what an HTTP refusal says, in the protocol's form or any other."""
    try:
        message = response.json()["error"]["message"]
    except (ValueError, KeyError, TypeError):
        is_page = "html" in response.headers.get("content-type", "")
        message = "" if is_page else response.text.strip()[:200]
        message = message or response.reason_phrase or "no reason given"
    return ServerRefused(response.status_code, str(message), retry_after_s(response.headers))
