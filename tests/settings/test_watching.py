"""What telemetry is told by the configuration, and what is no configuration for it."""

import pytest

from orchestrator.errors import ConfigError
from orchestrator.settings import load
from orchestrator.settings.watching import telemetry_settings


@pytest.mark.parametrize(
    ("model", "label"),
    [
        ("gpt-4.1-mini", "gpt-4.1-mini"),
        ("Qwen/Qwen2.5-0.5B-Instruct", "Qwen2.5-0.5B-Instruct"),
        ("/models/qwen2.5-0.5b-q4_k_m.gguf", "qwen2.5-0.5b-q4_k_m"),
        ("llama3.2:1b", "llama3.2:1b"),
    ],
)
def test_telemetry_settings_label_a_model_by_its_whole_name(model: str, label: str) -> None:
    """A point in a name is part of the version; of a path only the last part is told, without the file's kind."""
    settings = load(None, {"CHORALE_WORKERS__LLM__MODEL": model}, {})
    assert telemetry_settings(settings).model.model == label


@pytest.mark.parametrize(
    ("variable", "value", "key"),
    [
        ("CHORALE_TELEMETRY__EXPORT_EVERY_S", ".inf", "telemetry.export_every_s"),
        ("CHORALE_TELEMETRY__OTLP_ENDPOINT", "localhost:4318", "telemetry.otlp_endpoint"),
        ("CHORALE_WORKERS__LLM__LIMIT", "{policy: aimd, p95_ms: .inf}", "workers.llm.limit.p95_ms"),
        (
            "CHORALE_WORKERS__LLM__LIMIT",
            "{policy: reference, slope_ms: 0.0001}",
            "workers.llm.limit.slope_ms",
        ),
        ("CHORALE_TELEMETRY__OTLP_ENDPOINT", "http://", "telemetry.otlp_endpoint"),
        ("CHORALE_TELEMETRY__OTLP_ENDPOINT", "http://[", "telemetry.otlp_endpoint"),
        ("CHORALE_TELEMETRY__OTLP_ENDPOINT", "http://collector:99999", "telemetry.otlp_endpoint"),
        ("CHORALE_TELEMETRY__OTLP_ENDPOINT", "http://two words", "telemetry.otlp_endpoint"),
        ("CHORALE_WORKERS__LLM__PARALLEL", "257", "workers.llm.parallel"),
        ("CHORALE_WORKERS__LLM__MEMORY_MB", "1000000000000000000", "workers.llm.memory_mb"),
        ("CHORALE_FLOW__TARGET_WAIT_MS", "0.0001", "flow.target_wait_ms"),
        ("CHORALE_FLOW__TARGET_WAIT_MS", ".inf", "flow.target_wait_ms"),
        ("CHORALE_FLOW__MAX_JOBS", "1", "flow.max_jobs"),
        ("CHORALE_SERVER__PING_S", "0.001", "server.ping_s"),
        ("CHORALE_FLOW__ABANDONED_S", ".inf", "flow.abandoned_s"),
        ("CHORALE_SESSIONS__GRACE_S", ".inf", "sessions.grace_s"),
        ("CHORALE_SESSIONS__TEXT_GRACE_MS", ".inf", "sessions.text_grace_ms"),
        ("CHORALE_SESSIONS__ALIGN__WINDOW_MS", ".inf", "sessions.align.window_ms"),
        ("CHORALE_SERVER__DRAIN_S", ".inf", "server.drain_s"),
        ("CHORALE_CONSISTENCY__DEADLINE_MS", ".inf", "consistency.deadline_ms"),
    ],
)
def test_settings_that_a_running_server_could_not_keep_are_refused(
    variable: str, value: str, key: str
) -> None:
    """The key is named before anything starts, not when a thread or a plan falls over it."""
    with pytest.raises(ConfigError, match=key):
        load(None, {variable: value}, {})
