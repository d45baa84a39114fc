"""Each part of the server gets its settings in its own words and units."""

from pathlib import Path

from orchestrator.clock import MonotonicClock
from orchestrator.flow.policies import LimitSettings
from orchestrator.flow.token_limiter import Quota, Resource
from orchestrator.scheduling.dispatcher import Dispatcher
from orchestrator.scheduling.job import Tier
from orchestrator.settings import load
from orchestrator.settings.parts import (
    call_settings,
    limit_settings,
    openai,
    rate,
    registry_settings,
    server_options,
    tenant_limits,
    url_of,
)
from orchestrator.transports.auth import Principal
from orchestrator.transports.openai_door import HttpLimits
from orchestrator.transports.pace import Rate
from tests.fakes.workers import FakeWorkers


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


def test_limit_settings_are_bounded_by_the_places_of_a_worker() -> None:
    """Where no base is named it is the worker's places; milliseconds become what the limit counts in."""
    given = load(
        None,
        {
            "CHORALE_WORKERS__LLM__PARALLEL": "6",
            "CHORALE_WORKERS__LLM__LIMIT__POLICY": "reference",
            "CHORALE_WORKERS__LLM__LIMIT__P95_MS": "450",
            "CHORALE_WORKERS__ASR__PARALLEL": "8",
            "CHORALE_WORKERS__ASR__LIMIT__BASE": "3",
        },
    )
    limits = limit_settings(given)
    assert limits["llm"] == LimitSettings("reference", 6, 6, 450_000, 1_000_000)
    assert (limits["asr"].policy, limits["asr"].base, limits["asr"].most) == ("fixed", 3, 8)
    assert set(limits) == set(given.workers.by_role())


def test_tenant_limits_are_none_where_nothing_is_bounded() -> None:
    """Without quotas no account is kept, also where a key file takes them away from somebody."""
    assert tenant_limits(load(None, {}), {}) is None
    assert tenant_limits(load(None, {}), {"lab": {}}) is None


def test_tenant_limits_are_those_of_the_tier_or_the_tenants_own() -> None:
    """Seconds of sound become milliseconds, and who has limits of its own has only these."""
    given = load(
        None,
        {
            "CHORALE_LIMITS__SILVER": "{llm_tokens: 500, audio_s: 2, window_s: 10, burst: 0.1}",
            "CHORALE_LIMITS__MAX_TENANTS": "3",
            "CHORALE_LIMITS__DEFAULT_OUTPUT_TOKENS": "40",
        },
    )
    own = {"lab": {Resource.REQUESTS: Quota(7)}}
    limits = tenant_limits(given, own)
    assert limits is not None
    assert limits.quotas_of("acme", Tier.SILVER) == {
        Resource.LLM_TOKENS: Quota(500, 10_000_000, 50),
        Resource.AUDIO_MS: Quota(2_000, 10_000_000, 200),
    }
    assert limits.quotas_of("acme", Tier.GOLD) == {}
    assert limits.quotas_of("lab", Tier.SILVER) == own["lab"]


def test_inbound_settings_reach_every_door_and_the_session() -> None:
    """One rate for links of every kind, and how much a conversation keeps; images as the language model says."""
    given = load(
        None,
        {
            "CHORALE_INBOUND__EVENTS_PER_S": "7",
            "CHORALE_INBOUND__BYTES_PER_S": "1000",
            "CHORALE_INBOUND__BURST_BYTES": "5000",
            "CHORALE_INBOUND__EXCESS_S": "3",
            "CHORALE_INBOUND__SESSION_BYTES": "77000",
            "CHORALE_WORKERS__LLM__IMAGES": "true",
        },
    )
    assert rate(given) == call_settings(given).rate == Rate(7, 1_000, 5_000, 3)
    rules = registry_settings(given).rules
    assert (rules.item_bytes, rules.images) == (77_000, True)
    assert not registry_settings(load(None, {})).rules.images


def test_openai_names_the_models_and_lowers_the_tier_of_requests() -> None:
    """By what the configuration calls them, without the place where they lie; a role that is not there is not named."""
    given = load(
        None,
        {
            "CHORALE_WORKERS__LLM__MODEL": "/srv/models/big.gguf",
            "CHORALE_WORKERS__ASR__MODEL": "org/whisper",
            "CHORALE_WORKERS__SPEECH": "null",
            "CHORALE_SERVER__BATCH_TIER": "silver",
            "CHORALE_HTTP__MAX_AUDIO_S": "60",
        },
    )
    clock = MonotonicClock()
    dispatcher = Dispatcher(FakeWorkers(), clock)
    made = openai(given, dispatcher, clock)
    assert made.models == {"asr": "org/whisper", "understand": "minilm_onnx", "llm": "big.gguf"}
    assert made.limits == HttpLimits(26_214_400, 60.0)
    with made.errands.open(Principal("acme", Tier.PLATINUM)) as errand:
        assert errand.tier is Tier.SILVER
    made.close()
