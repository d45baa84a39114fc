"""The configurations beside the server: each is read by the tool that will read it, and names only what is served."""

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import promql_parser
import pytest
import yaml

from orchestrator.flow.limiter import RefusalReason
from orchestrator.flow.shedding import Sheddable
from orchestrator.flow.token_limiter import Resource
from orchestrator.observability import names
from orchestrator.observability.instrument import Ending
from orchestrator.observability.names import MetricKind, every_metric
from orchestrator.scheduling.kinds import KINDS
from orchestrator.scheduling.refusals import SPECULATIVE
from orchestrator.telemetry.meters import TIERS
from tests.configs import dashboard
from tests.configs.scraped import labels_in, scraped, series_in

CONFIGS = Path(__file__).parent.parent.parent / "configs"
RULES = CONFIGS / "prometheus" / "rules.yaml"
_OF_PROMETHEUS = {"up"}
_LABELS_OF_PROMETHEUS = {"job", "instance", "__name__"}


def promtool(*arguments: str) -> str:
    """Runs promtool; fails with what it says."""
    done = subprocess.run(
        ["promtool", *arguments], cwd=CONFIGS, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def rules() -> list[dict[str, Any]]:
    groups = yaml.safe_load(RULES.read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def expressions() -> dict[str, str]:
    """Returns every expression of rules and dashboard, by where it stands; Grafana's variables have values."""
    found = {f"rule {rule['alert']}": rule["expr"] for rule in rules()}
    for panel in json.loads(dashboard.DASHBOARD.read_text())["panels"]:
        for target in panel.get("targets", ()):
            expr = target["expr"].replace("$__rate_interval", "1m").replace("$instance", ".+")
            found[f"panel {panel['title']} {target['refId']}"] = expr
    return found


def selectors(node: Any) -> Iterator[Any]:
    """Yields the series that an expression selects."""
    if isinstance(node, promql_parser.VectorSelector):
        yield node
        return
    for name in ("expr", "lhs", "rhs", "vector_selector", "args", "param"):
        inside = getattr(node, name, None)
        for one in inside if isinstance(inside, list) else () if inside is None else (inside,):
            yield from selectors(one)


EXPRESSIONS = expressions()


@pytest.mark.needs("promtool")
def test_prometheus_takes_the_configuration() -> None:
    """`promtool check config`, which reads the rules too."""
    assert "is valid" in promtool("check", "config", "prometheus/prometheus.yaml")


@pytest.mark.needs("promtool")
def test_every_alert_is_raised_by_what_it_is_for() -> None:
    """`promtool test rules`; and no alert is without such a test."""
    promtool("test", "rules", "prometheus/rules_test.yaml")
    tests = yaml.safe_load((CONFIGS / "prometheus" / "rules_test.yaml").read_text())["tests"]
    raised = {one["alertname"] for test in tests for one in test["alert_rule_test"] if one.get("exp_alerts")}
    assert raised == {rule["alert"] for rule in rules()}


@pytest.mark.parametrize("where", EXPRESSIONS)
def test_an_expression_names_only_series_that_a_server_serves(where: str) -> None:
    """Parsed, and held against a real scrape after a conversation: series, and the labels that it selects by."""
    served = labels_in(scraped())
    found = list(selectors(promql_parser.parse(EXPRESSIONS[where])))
    assert found, "an expression without a series"
    for one in found:
        if one.name not in _OF_PROMETHEUS:
            assert one.name in served
            asked = {matcher.name for matcher in one.matchers.matchers}
            assert asked - _LABELS_OF_PROMETHEUS <= served[one.name]


def test_selectors_are_found_wherever_they_stand() -> None:
    """The reading itself: in functions, sums, products, brackets and behind `or`."""
    tree = promql_parser.parse(
        "(histogram_quantile(0.9, sum by (le) (rate(a_bucket[5m])))) > 2 or b / (c > 0) * -d"
    )
    assert sorted(one.name for one in selectors(tree)) == ["a_bucket", "b", "c", "d"]


def test_every_metric_in_the_list_is_served_and_every_one_served_is_in_it() -> None:
    """The list of names is neither a wish nor incomplete."""
    listed = {series for spec in every_metric() for series in spec.series}
    assert series_in(scraped()) - {"target_info"} == listed


def test_every_metric_is_on_the_dashboard() -> None:
    """What is measured can be looked at."""
    shown = {
        one.name
        for where, expr in EXPRESSIONS.items()
        if where.startswith("panel")
        for one in selectors(promql_parser.parse(expr))
    }
    assert not {spec.name for spec in every_metric() if not shown & set(spec.series)}


def test_what_is_no_amount_is_not_summed_over_servers() -> None:
    """A level, a share or a weight of two servers together is none of either; how many are ready is an amount."""
    shares = {
        spec.family for spec in every_metric() if spec.unit == "1" and spec.kind is MetricKind.GAUGE
    } - {names.WORKER_UP.family}
    assert names.SERVICE_LEVEL.family in shares
    summed = {
        one.name
        for where, expr in EXPRESSIONS.items()
        if where.startswith("panel") and expr.startswith("sum")
        for one in selectors(promql_parser.parse(expr))
    }
    assert names.SESSIONS.family in summed
    assert not shares & summed


def test_a_panel_of_quotas_shows_one_unit() -> None:
    """Tokens, ms of sound and requests have no axis in common: each resource has a panel, and no panel has two."""
    shown = [
        re.findall(r'chorale_resource="(\w+)"', expr)
        for expr in EXPRESSIONS.values()
        if names.QUOTA_USE.series[0] in expr
    ]
    assert sorted(shown) == sorted([resource.value] for resource in Resource)


def test_jobs_by_reason_are_those_that_have_one() -> None:
    """What was completed or taken back has no reason, and would be the tallest line of the panel."""
    (expr,) = [expr for where, expr in EXPRESSIONS.items() if where.startswith("panel Refused or failed")]
    assert 'chorale_outcome=~"refused|failed"' in expr
    assert "by (chorale_kind, chorale_tier, chorale_reason)" in expr


def test_labels_are_those_of_the_list() -> None:
    """Nothing is told apart by what the list does not name: no tenant, no session, no path."""
    served = labels_in(scraped())
    for spec in every_metric():
        allowed = {one.replace(".", "_") for one in spec.attributes} | {"le"}
        for series in spec.series:
            assert served[series] <= allowed, series


def test_the_dashboard_is_as_its_script_builds_it() -> None:
    """`make dashboard` has been run."""
    assert dashboard.DASHBOARD.read_text() == dashboard.written()


def test_the_page_lists_every_metric() -> None:
    """The table of docs/telemetry.md is as its script writes it."""
    page = dashboard.PAGE.read_text()
    assert dashboard.rewritten(page) == page
    assert all(f"`{spec.name}`" in page for spec in every_metric())


def test_the_page_says_what_labels_say() -> None:
    """Every kind, tier, outcome, resource and reason of refusal that a scrape may hold is on the page by its word."""
    said = dashboard.PAGE.read_text().partition("What labels say:")[2].partition("\n## ")[0]
    words = {
        *KINDS,
        *TIERS.values(),
        *(one.value for one in (*Ending, *Resource)),
        *(one.value for one in (RefusalReason.FULL, RefusalReason.TENANT, RefusalReason.SHED)),
        *(one.name.lower() for one in Sheddable),
        SPECULATIVE,
    }
    assert not {word for word in words if f"`{word}`" not in said}


def test_every_alert_is_explained() -> None:
    """docs/telemetry.md says of each what to look at."""
    page = dashboard.PAGE.read_text()
    assert not [rule["alert"] for rule in rules() if f"`{rule['alert']}`" not in page]


_TEXT = {"type": "string", "minLength": 1}
_GRID = {
    "type": "object",
    "required": ["x", "y", "w", "h"],
    "properties": {
        "x": {"type": "integer", "minimum": 0, "maximum": 23},
        "w": {"type": "integer", "minimum": 1, "maximum": 24},
    },
}
DASHBOARD_SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["uid", "title", "schemaVersion", "panels", "templating", "time"],
    "properties": {
        "uid": {"type": "string", "pattern": "^[a-zA-Z0-9_-]{1,40}$"},
        "schemaVersion": {"type": "integer", "minimum": 36},
        "panels": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "required": ["id", "type", "title", "gridPos"],
                "properties": {"title": _TEXT, "gridPos": _GRID, "type": {"enum": ["row", "timeseries"]}},
                "if": {"properties": {"type": {"const": "timeseries"}}},
                "then": {
                    "required": ["targets", "datasource", "fieldConfig"],
                    "properties": {
                        "targets": {
                            "type": "array",
                            "minItems": 1,
                            "items": {
                                "type": "object",
                                "required": ["refId", "expr", "datasource"],
                                "properties": {
                                    "expr": _TEXT,
                                    "refId": {"type": "string", "pattern": "^[A-Z]$"},
                                },
                            },
                        }
                    },
                },
            },
        },
    },
}
"""What Grafana needs of a dashboard to show it: the part of its model that ours uses."""


def test_the_dashboard_is_one_that_grafana_reads() -> None:
    """Its model, by schema; panels have numbers of their own and do not lie over each other."""
    board = json.loads(dashboard.DASHBOARD.read_text())
    jsonschema.validate(board, DASHBOARD_SCHEMA)
    numbers = [panel["id"] for panel in board["panels"]]
    assert len(set(numbers)) == len(numbers)
    cells = [
        (x, y)
        for grid in (panel["gridPos"] for panel in board["panels"])
        for x in range(grid["x"], grid["x"] + grid["w"])
        for y in range(grid["y"], grid["y"] + grid["h"])
    ]
    assert len(set(cells)) == len(cells)
    variables = {one["name"] for one in board["templating"]["list"]}
    assert variables == {"datasource", "instance"}


_ENDPOINT = {"type": "string", "pattern": r"^(https?://)?[\w.-]+:\d+(/.*)?$"}
_NAMES = {"type": "array", "minItems": 1, "items": _TEXT}
COLLECTOR_SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["receivers", "exporters", "service"],
    "additionalProperties": False,
    "properties": {
        "receivers": {
            "type": "object",
            "additionalProperties": False,
            "properties": {
                "otlp": {
                    "type": "object",
                    "required": ["protocols"],
                    "properties": {
                        "protocols": {
                            "type": "object",
                            "additionalProperties": False,
                            "properties": {"http": {"properties": {"endpoint": _ENDPOINT}}},
                        }
                    },
                }
            },
        },
        "processors": {
            "type": "object",
            "additionalProperties": False,
            "properties": {
                "memory_limiter": {
                    "required": ["check_interval"],
                    "properties": {"limit_mib": {"type": "integer", "minimum": 1}},
                },
                "batch": {"properties": {"send_batch_size": {"type": "integer", "minimum": 1}}},
            },
        },
        "exporters": {
            "type": "object",
            "additionalProperties": False,
            "patternProperties": {
                r"^(otlp_http|prometheusremotewrite)(/\w+)?$": {
                    "type": "object",
                    "required": ["endpoint"],
                    "properties": {"endpoint": _ENDPOINT},
                }
            },
        },
        "extensions": {
            "type": "object",
            "additionalProperties": False,
            "properties": {"health_check": {"properties": {"endpoint": _ENDPOINT}}},
        },
        "service": {
            "type": "object",
            "required": ["pipelines"],
            "properties": {
                "pipelines": {
                    "type": "object",
                    "additionalProperties": False,
                    "patternProperties": {
                        r"^(traces|metrics|logs)(/\w+)?$": {
                            "type": "object",
                            "required": ["receivers", "exporters"],
                            "additionalProperties": False,
                            "properties": {"receivers": _NAMES, "processors": _NAMES, "exporters": _NAMES},
                        }
                    },
                }
            },
        },
    },
}
"""The components of the collector that ours uses, and how they are written."""


def test_the_collectors_configuration_is_wired() -> None:
    """By schema; and every component in a pipeline is defined, every defined one is used, the memory limiter first."""
    config = yaml.safe_load((CONFIGS / "otel-collector.yaml").read_text())
    jsonschema.validate(config, COLLECTOR_SCHEMA)
    pipelines = config["service"]["pipelines"].values()
    for part in ("receivers", "processors", "exporters"):
        used = {name for pipeline in pipelines for name in pipeline[part]}
        assert used == set(config[part])
    assert set(config["service"]["extensions"]) == set(config["extensions"])
    assert all(pipeline["processors"][0] == "memory_limiter" for pipeline in pipelines)
    assert {"traces", "metrics"} == set(config["service"]["pipelines"])
