"""What telemetry is told to do, as values: of this package, the part that costs nothing to import."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class LanguageModel:
    """How replies are labelled: where they are made, ``chorale`` for in our own workers, and by which model."""

    provider: str = "chorale"
    model: str = "default"

    def attributes(self) -> dict[str, str]:
        return {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": self.provider,
            "gen_ai.request.model": self.model,
        }


@dataclass(frozen=True, slots=True)
class TelemetrySettings:
    """`endpoint` is the collector's base URL (OTLP over HTTP), None for none; it is sent `traces`, of a `share` of the
    turns, and metrics where `sends_metrics`. `metrics` are those that are scraped."""

    metrics: bool = True
    endpoint: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    traces: bool = True
    sends_metrics: bool = True
    share: float = 1.0
    every_s: float = 10.0
    service: str = "chorale"
    model: LanguageModel = field(default_factory=LanguageModel)
