"""Builds the dashboard (configs/grafana/chorale.json) and the table of metrics in docs/telemetry.md: `make dashboard`.

Both come from the one list of names, so that neither shows a metric that is not served.
"""

import json
import re
import sys
from pathlib import Path
from typing import Any

from orchestrator.observability import names
from orchestrator.observability.names import MetricKind, MetricSpec, every_metric

ROOT = Path(__file__).parent.parent.parent
DASHBOARD = ROOT / "configs" / "grafana" / "chorale.json"
PAGE = ROOT / "docs" / "telemetry.md"

_HERE = '{instance=~"$instance"}'
_WIDTH, _HEIGHT, _COLUMNS = 8, 7, 3
_PLACE = re.compile(r"(<!-- table of metrics -->\n)(?P<table>.*?)(<!-- end of table -->)", re.DOTALL)


def rate(spec: MetricSpec, *by: str) -> str:
    """Returns the expression for how often a counter moves, or how often a histogram is written."""
    series = spec.series[0] if spec.kind is MetricKind.COUNTER else spec.family + "_count"
    return f"sum by ({', '.join(_label(one) for one in by)}) (rate({series}{_HERE}[$__rate_interval]))"


def quantile(share: float, spec: MetricSpec, *by: str) -> str:
    """Returns the expression for a quantile of a histogram."""
    labels = ", ".join(["le", *(_label(one) for one in by)])
    inner = f"sum by ({labels}) (rate({spec.family}_bucket{_HERE}[$__rate_interval]))"
    return f"histogram_quantile({share}, {inner})"


def now(spec: MetricSpec, *by: str) -> str:
    """Returns the expression for what a gauge says."""
    return f"sum by ({', '.join(_label(one) for one in by)}) ({spec.family}{_HERE})"


def share_of(part: MetricSpec, whole: MetricSpec, by: str) -> str:
    """Returns the expression for how full something is, where it has a bound."""
    return f"max by ({_label(by)}) ({part.family}{_HERE} / ({whole.family}{_HERE} > 0))"


def _label(attribute: str) -> str:
    return attribute.replace(".", "_")


def rows() -> list[tuple[str, list[tuple[str, str, list[tuple[str, str]]]]]]:
    """Returns the dashboard's rows: panels of a title, a unit, and expressions with their legends."""
    tier, kind, buffer, stage = "chorale.tier", "chorale.kind", "chorale.buffer", "chorale.stage"
    return [
        (
            "Turns",
            [
                ("Turns by outcome", "ops", [(rate(names.TURNS, "chorale.outcome"), "{{chorale_outcome}}")]),
                ("Turn, 95 %", "s", [(quantile(0.95, names.TURN_DURATION, tier), "{{chorale_tier}}")]),
                ("Stages, 95 %", "s", [(quantile(0.95, names.STAGE_DURATION, stage), "{{chorale_stage}}")]),
                ("Sessions", "short", [(now(names.SESSIONS), "sessions")]),
                ("Links", "short", [(now(names.LINKS, "chorale.link.kind"), "{{chorale_link_kind}}")]),
                ("Passed over by the voice detector", "ops", [(rate(names.WINDOWS_DROPPED), "windows")]),
            ],
        ),
        (
            "Work",
            [
                ("Jobs by outcome", "ops", [(rate(names.JOBS, "chorale.outcome"), "{{chorale_outcome}}")]),
                (
                    "Refused or failed, by reason",
                    "ops",
                    [(rate(names.JOBS, kind, "chorale.reason"), "{{chorale_kind}} {{chorale_reason}}")],
                ),
                ("Wait, 95 %", "s", [(quantile(0.95, names.JOB_WAIT, tier), "{{chorale_tier}}")]),
                ("Work, median", "s", [(quantile(0.5, names.JOB_WORK, kind), "{{chorale_kind}}")]),
                ("Waiting", "short", [(now(names.QUEUED, kind), "{{chorale_kind}}")]),
                (
                    "Waiting, by level",
                    "short",
                    [(now(names.LEVELS, "chorale.level"), "level {{chorale_level}}")],
                ),
                ("May wait", "short", [(now(names.QUEUE_MARK, kind), "{{chorale_kind}}")]),
                (
                    "Pressure, and what is left out",
                    "short",
                    [
                        (now(names.PRESSURE), "pressure"),
                        (now(names.SERVICE_LEVEL), "level"),
                        (now(names.SERVICE_DEGRADED), "degraded"),
                    ],
                ),
                (
                    "Left out",
                    "ops",
                    [(rate(names.SHED, "chorale.shed.what"), "{{chorale_shed_what}}")],
                ),
                (
                    "Weights of the order",
                    "percentunit",
                    [(now(names.WEIGHT, tier, "chorale.weight"), "{{chorale_tier}} {{chorale_weight}}")],
                ),
                ("Running", "short", [(now(names.RUNNING, kind), "{{chorale_kind}}")]),
                ("Batch, mean", "short", [(_mean(names.JOB_BATCH, kind), "{{chorale_kind}}")]),
                (
                    "Limits of workers",
                    "short",
                    [
                        (now(names.LIMIT, "chorale.worker"), "{{chorale_worker}}"),
                        (now(names.LIMIT_IN_FLIGHT, "chorale.worker"), "{{chorale_worker}} has"),
                    ],
                ),
                (
                    "Quotas of tenants",
                    "ops",
                    [
                        (
                            rate(names.QUOTA_USE, "chorale.resource", "chorale.outcome"),
                            "{{chorale_resource}} {{chorale_outcome}}",
                        )
                    ],
                ),
                ("Tenants with an account", "short", [(now(names.QUOTA_TENANTS), "tenants")]),
                ("No room for a tenant", "ops", [(rate(names.QUOTA_TURNED_AWAY), "turned away")]),
                ("Reports too late", "ops", [(rate(names.LATE_REPORTS), "reports")]),
            ],
        ),
        (
            "Language model",
            [
                (
                    "First token",
                    "s",
                    [(quantile(0.5, names.FIRST_TOKEN), "50 %"), (quantile(0.95, names.FIRST_TOKEN), "95 %")],
                ),
                ("Per token, median", "s", [(quantile(0.5, names.PER_TOKEN), "s a token")]),
                ("Reply, 95 %", "s", [(quantile(0.95, names.REPLY_DURATION), "95 %")]),
                (
                    "Tokens",
                    "ops",
                    [
                        (rate(names.INPUT_TOKENS), "of prompts"),
                        (rate(names.CACHED_TOKENS), "of those cached"),
                        (rate(names.OUTPUT_TOKENS), "of replies"),
                    ],
                ),
                (
                    "Tokens of one reply, 95 %",
                    "short",
                    [(quantile(0.95, names.TOKEN_USAGE, "gen_ai.token.type"), "{{gen_ai_token_type}}")],
                ),
            ],
        ),
        (
            "Server",
            [
                (
                    "Event loop late",
                    "s",
                    [(quantile(0.5, names.LOOP_LAG), "50 %"), (quantile(0.99, names.LOOP_LAG), "99 %")],
                ),
                (
                    "Processor",
                    "percentunit",
                    [
                        (rate(names.CPU), "server"),
                        (rate(names.WORKER_CPU, "chorale.worker"), "{{chorale_worker}}"),
                    ],
                ),
                (
                    "Memory",
                    "bytes",
                    [
                        (now(names.MEMORY), "server"),
                        (now(names.WORKER_MEMORY, "chorale.worker"), "{{chorale_worker}}"),
                    ],
                ),
                (
                    "Memory in use, share",
                    "percentunit",
                    [(now(names.WORKER_MEMORY_SHARE, "chorale.worker"), "{{chorale_worker}}")],
                ),
                ("Workers ready", "short", [(now(names.WORKER_UP, "chorale.worker"), "{{chorale_worker}}")]),
                (
                    "Workers started again",
                    "ops",
                    [(rate(names.WORKER_RESTARTS, "chorale.worker"), "{{chorale_worker}}")],
                ),
                ("Tasks", "short", [(now(names.TASKS), "tasks")]),
                ("Faults of loops", "ops", [(rate(names.LOOP_FAULTS, "chorale.loop"), "{{chorale_loop}}")]),
                (
                    "Garbage collection",
                    "ops",
                    [(rate(names.GC, "cpython.gc.generation"), "generation {{cpython_gc_generation}}")],
                ),
                (
                    "HTTP requests",
                    "reqps",
                    [
                        (
                            rate(names.HTTP_DURATION, "http.route", "http.response.status_code"),
                            "{{http_route}} {{http_response_status_code}}",
                        )
                    ],
                ),
                ("HTTP, being answered", "short", [(now(names.HTTP_ACTIVE), "requests")]),
            ],
        ),
        (
            "Buffers",
            [
                (
                    "Full, in items",
                    "percentunit",
                    [(share_of(names.BUFFER_ITEMS, names.BUFFER_ITEM_LIMIT, buffer), "{{chorale_buffer}}")],
                ),
                (
                    "Full, in bytes",
                    "percentunit",
                    [(share_of(names.BUFFER_SIZE, names.BUFFER_LIMIT, buffer), "{{chorale_buffer}}")],
                ),
                ("Dropped or refused", "ops", [(rate(names.BUFFER_DROPPED, buffer), "{{chorale_buffer}}")]),
                (
                    "Telemetry dropped",
                    "ops",
                    [(rate(names.TELEMETRY_DROPPED, "chorale.signal"), "{{chorale_signal}}")],
                ),
            ],
        ),
    ]


def _mean(spec: MetricSpec, by: str) -> str:
    label = _label(by)
    total, count = (
        f"sum by ({label}) (rate({spec.family}_{end}{_HERE}[$__rate_interval]))" for end in ("sum", "count")
    )
    return f"{total} / {count}"


def dashboard() -> dict[str, Any]:
    """Returns the dashboard as Grafana reads it."""
    panels: list[dict[str, Any]] = []
    y = 0
    for title, members in rows():
        panels.append(
            {"type": "row", "title": title, "collapsed": False, "panels": [], "id": len(panels) + 1,
             "gridPos": {"x": 0, "y": y, "w": 24, "h": 1}}
        )  # fmt: skip
        y += 1
        for place, (name, unit, lines) in enumerate(members):
            x, down = place % _COLUMNS * _WIDTH, place // _COLUMNS * _HEIGHT
            panels.append(_panel(len(panels) + 1, name, unit, lines, x, y + down))
        y += (len(members) + _COLUMNS - 1) // _COLUMNS * _HEIGHT
    source = {"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus"}
    instance = {
        "name": "instance", "label": "Server", "type": "query", "datasource": _DATASOURCE,
        "query": {"query": f"label_values({names.SESSIONS.family}, instance)", "refId": "instance"},
        "includeAll": True, "multi": True, "refresh": 2, "current": {"text": "All", "value": "$__all"},
    }  # fmt: skip
    return {
        "uid": "chorale",
        "title": "Chorale",
        "tags": ["chorale"],
        "schemaVersion": 39,
        "editable": True,
        "timezone": "browser",
        "refresh": "15s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {"list": [source, instance]},
        "panels": panels,
    }


_DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}


def _panel(
    number: int, title: str, unit: str, lines: list[tuple[str, str]], x: int, y: int
) -> dict[str, Any]:
    return {
        "id": number,
        "type": "timeseries",
        "title": title,
        "datasource": _DATASOURCE,
        "gridPos": {"x": x, "y": y, "w": _WIDTH, "h": _HEIGHT},
        "fieldConfig": {"defaults": {"unit": unit, "min": 0}, "overrides": []},
        "targets": [
            {"refId": chr(ord("A") + place), "datasource": _DATASOURCE, "expr": expr, "legendFormat": legend}
            for place, (expr, legend) in enumerate(lines)
        ],
    }


def written() -> str:
    """Returns the dashboard's file."""
    return json.dumps(dashboard(), indent=1) + "\n"


def table() -> str:
    """Returns the metrics as a table for readers."""
    lines = ["| metric | in Prometheus | unit | what it says | told apart by |", "|---|---|---|---|---|"]
    for spec in every_metric():
        shown = spec.series[0].removesuffix("_bucket") + ("_…" if spec.kind is MetricKind.HISTOGRAM else "")
        apart = ", ".join(f"`{one}`" for one in spec.attributes) or "–"
        lines.append(f"| `{spec.name}` | `{shown}` | {spec.unit} | {spec.about} | {apart} |")
    return "\n".join([*lines, ""])


def rewritten(page: str) -> str:
    """Returns the page with the table as it is now."""
    return _PLACE.sub(lambda found: found[1] + table() + found[3], page)


def main() -> int:
    """Writes both files."""
    DASHBOARD.write_text(written())
    PAGE.write_text(rewritten(PAGE.read_text()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
