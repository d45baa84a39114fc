"""Quotas of the configuration in the words of flow control."""

from orchestrator.flow.tenants import Quotas, quotas
from orchestrator.settings.schema import Quota


def quotas_of(quota: Quota) -> Quotas:
    """Returns what one tenant may use."""
    return quotas(quota.llm_tokens, quota.audio_s, quota.requests, quota.window_s, quota.burst)
