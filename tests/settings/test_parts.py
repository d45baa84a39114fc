"""Each part of the server gets its settings in its own words and units."""

from pathlib import Path

from orchestrator.settings import load
from orchestrator.settings.parts import call_settings, registry_settings, server_options, url_of


def test_registry_settings_carry_every_rule_in_microseconds() -> None:
    """Milliseconds and seconds of the file become what the session's heart counts in."""
    given = load(
        None,
        {
            "CHORALE_SERVER__MAX_SESSIONS": "7",
            "CHORALE_SESSIONS": "null",
            "CHORALE_SESSIONS__INSTRUCTIONS": "be brief",
            "CHORALE_SESSIONS__GRACE_S": "2.5",
            "CHORALE_SESSIONS__MAX_S": "60",
            "CHORALE_SESSIONS__LOG_EVENTS": "100",
            "CHORALE_SESSIONS__LOG_BYTES": "2000000",
            "CHORALE_SESSIONS__ALIGN__WINDOW_MS": "900",
            "CHORALE_SESSIONS__TEXT_GRACE_MS": "200",
            "CHORALE_SESSIONS__MAX_UTTERANCE_S": "30",
            "CHORALE_SESSIONS__DRAFT_EVERY_MS": "500",
            "CHORALE_SESSIONS__BUFFER_S": "90",
        },
    )
    registry = registry_settings(given)
    rules = registry.rules
    assert (registry.max_sessions, registry.log_events, registry.log_bytes) == (7, 100, 2_000_000)
    assert (rules.instructions, registry.defaults.instructions) == ("be brief", "be brief")
    assert (rules.grace_us, rules.max_session_us) == (2_500_000, 60_000_000)
    assert (rules.window_us, rules.text_grace_us, rules.draft_every_us) == (900_000, 200_000, 500_000)
    assert (rules.max_utterance_s, rules.buffer_s) == (30, 90)
    assert rules.speech_output
    assert registry.defaults.output_modalities == ("audio",)


def test_registry_settings_of_a_server_without_a_voice_answer_in_text() -> None:
    """`workers.speech: null` makes text the default of every session."""
    registry = registry_settings(load(None, {"CHORALE_WORKERS__SPEECH": "null"}))
    assert registry.defaults.output_modalities == ("text",)
    assert not registry.rules.speech_output


def test_call_settings_take_one_or_several_urls_per_ice_server() -> None:
    """Both forms that browsers know are read."""
    given = load(
        None,
        {
            "CHORALE_CALLS__ICE_SERVERS": "[{urls: 'stun:a'}, {urls: [turn:b, turn:c], username: u, credential: p}]",
            "CHORALE_CALLS__ICE_TIMEOUT_S": "9",
            "CHORALE_CALLS__PUBLIC_ADDRESSES": "[192.0.2.1]",
        },
    )
    calls = call_settings(given)
    assert [one.urls for one in calls.ice_servers] == [("stun:a",), ("turn:b", "turn:c")]
    assert (calls.ice_servers[1].username, calls.ice_servers[1].credential) == ("u", "p")
    assert (calls.ice_timeout_s, calls.public_addresses) == (9, ("192.0.2.1",))


def test_server_options_carry_certificate_and_keepalive() -> None:
    """TLS, compression and pings reach the server as set."""
    given = load(
        None,
        {
            "CHORALE_SERVER__TLS": "{cert: /c.pem, key: /k.pem}",
            "CHORALE_SERVER__COMPRESSION": "false",
            "CHORALE_SERVER__PING_S": "7",
        },
    ).server
    options = server_options(given)
    assert (options.certificate, options.certificate_key) == (Path("/c.pem"), Path("/k.pem"))
    assert (options.compression, options.ping_s) == (False, 7)
    assert url_of(given, 443) == "https://127.0.0.1:443"


def test_url_is_one_that_a_browser_on_this_machine_can_open() -> None:
    """Everywhere is shown as this machine, IPv6 in brackets."""
    server = load(None, {}).server
    assert url_of(server, 8080) == "http://127.0.0.1:8080"
    assert url_of(server.model_copy(update={"host": "0.0.0.0"}), 1) == "http://127.0.0.1:1"
    assert url_of(server.model_copy(update={"host": "::1"}), 1) == "http://[::1]:1"
