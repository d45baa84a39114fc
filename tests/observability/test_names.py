"""The list of metrics: names by convention, each once, with what a histogram needs."""

import re

import pytest

from orchestrator.observability.names import MetricKind, MetricSpec, every_metric

SPECS = list(every_metric())


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
def test_a_metric_is_named_by_convention(spec: MetricSpec) -> None:
    """Words and dots; our own under our own name; a sentence for readers; buckets upwards where it is distributed."""
    assert re.fullmatch(r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)+", spec.name)
    assert spec.name.partition(".")[0] in {"chorale", "http", "gen_ai", "process", "cpython"}
    assert spec.about.endswith(".")
    assert bool(spec.buckets) is (spec.kind is MetricKind.HISTOGRAM)
    assert list(spec.buckets) == sorted(set(spec.buckets))
    assert not {"tenant", "session.id", "user"} & set(spec.attributes)


def test_metrics_have_names_of_their_own() -> None:
    """Also as Prometheus shows them."""
    assert len(SPECS) > 30
    shown = [series for spec in SPECS for series in spec.series]
    assert len(set(shown)) == len(shown)


def test_a_metrics_name_in_prometheus_has_its_unit_once() -> None:
    """Seconds and bytes are said; counters end in total; what has said its unit does not say it again."""
    assert MetricSpec("a.b", MetricKind.COUNTER, "s", "").series == ("a_b_seconds_total",)
    assert MetricSpec("a.bytes", MetricKind.GAUGE, "By", "").series == ("a_bytes",)
    assert MetricSpec("a.b", MetricKind.HISTOGRAM, "{x}", "").series == ("a_b_bucket", "a_b_sum", "a_b_count")
