"""URLs in every form that people have them, and refusals in words."""

import httpx
import pytest

from orchestrator.clients.address import Address, ServerAway, ServerRefused, refusal


@pytest.mark.parametrize(
    "url", ["http://h:8", "http://h:8/", "http://h:8/v1", "http://h:8/v1/", "ws://h:8/v1/realtime"]
)
def test_a_base_url_may_end_anywhere(url: str) -> None:
    """With or without ``/v1`` and ``/realtime``, of either scheme."""
    address = Address(url)
    assert address.calls == "http://h:8/v1/realtime/calls"
    assert address.socket() == "ws://h:8/v1/realtime"


def test_tls_and_a_path_in_front_are_kept() -> None:
    """Behind a proxy the server may lie below a path."""
    address = Address("https://example.com/voice/v1", key="sk-1")
    assert address.calls == "https://example.com/voice/v1/realtime/calls"
    assert address.socket(model="a b") == "wss://example.com/voice/v1/realtime?model=a+b"
    assert address.socket(model="m", call_id="rtc_1") == "wss://example.com/voice/v1/realtime?call_id=rtc_1"
    assert address.headers == {"Authorization": "Bearer sk-1"}
    assert Address("http://h").headers == {}


@pytest.mark.parametrize("url", ["", "h:8", "ftp://h", "http://"])
def test_what_is_no_url_is_refused(url: str) -> None:
    """With an example of one."""
    with pytest.raises(ValueError, match="http://127"):
        Address(url)


def test_a_refusal_says_what_the_server_said() -> None:
    """In the protocol's form, as text, or by its status alone; 401 says what to do."""
    said = refusal(httpx.Response(400, json={"error": {"message": "bad offer"}}))
    assert "bad offer" in str(said)
    assert said.status == 400
    assert "plain words" in str(refusal(httpx.Response(500, text="plain words")))
    assert "Not Found" in str(refusal(httpx.Response(404)))
    assert str(refusal(httpx.Response(501, html="<html>a page</html>"))).endswith("(501): Not Implemented")
    assert "CHORALE_API_KEY" in str(ServerRefused(401, "no key"))


def test_an_absent_server_is_named_with_the_command_that_starts_one() -> None:
    """The sentence is all that a user sees."""
    assert "chorale serve" in str(ServerAway("http://h", "refused"))
