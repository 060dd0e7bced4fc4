# SPDX-License-Identifier: Apache-2.0
"""The Grafana board and the alert rules: every query is valid PromQL over existing metrics and labels, and every alert
links to its section of the page.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import promql_parser
import pytest
import yaml

from tests.deploy.named_things import DEPLOY, ROOT

BOARD = json.loads((DEPLOY / "monitoring" / "board.json").read_text(encoding="utf-8"))
RULES = [
    rule
    for group in yaml.safe_load((DEPLOY / "monitoring" / "alerts.yaml").read_text(encoding="utf-8"))["groups"]
    for rule in group["rules"]
]
ROW = re.compile(r"^\| `(limnos_\w+)` \| (\w+) \| ([^|]*) \|", re.MULTILINE)
METRICS = {
    name: (kind, frozenset(re.findall(r"`(\w+)`", labels)))
    for name, kind, labels in ROW.findall((ROOT / "docs" / "reference" / "metrics.md").read_text(encoding="utf-8"))
}
OF_A_SCRAPE = frozenset({"job", "instance", "worker"})
"""Labels that Prometheus adds, or the server with several workers."""
OPERATIONS = ROOT / "docs" / "guides" / "operations.md"


def queries() -> Iterator[tuple[str, str]]:
    """Return every query with its origin; variables of the board are replaced."""
    for rule in RULES:
        yield rule["alert"], rule["expr"]
    for panel in BOARD["panels"]:
        for target in panel["targets"]:
            yield panel["title"], target["expr"].replace("$__rate_interval", "5m").replace("$job", "limnos")


def series(node: object) -> Iterator[promql_parser.VectorSelector]:
    """Yield the series that a query reads."""
    if isinstance(node, promql_parser.VectorSelector):
        yield node
    for name in ("expr", "lhs", "rhs", "param", "vector_selector"):
        if (inner := getattr(node, name, None)) is not None:
            yield from series(inner)
    for each in getattr(node, "args", ()):
        yield from series(each)


def labels_of(name: str) -> frozenset[str]:
    """Return the labels of a series. Raises KeyError for an unknown metric."""
    if name == "up":
        return OF_A_SCRAPE
    metric = re.sub(r"_(bucket|sum|count)$", "", name) if name not in METRICS else name
    kind, labels = METRICS[metric]
    assert (kind == "histogram") is (metric != name), f"{name}: exactly histograms are queried by their parts"
    return labels | OF_A_SCRAPE | (frozenset({"le"}) if name.endswith("_bucket") else frozenset())


def complaints(query: str) -> list[str]:
    """Return the problems of a query."""
    tree = promql_parser.parse(query)
    problems = []
    known: set[str] = set()
    for each in series(tree):
        try:
            labels = labels_of(each.name)
        except KeyError:
            return [f"no metric {each.name}"]
        known |= labels
        problems += [
            f"{each.name} has no {matcher.name}" for matcher in each.matchers.matchers if matcher.name not in labels
        ]
        if each.name.endswith("_total") and not re.search(rf"(rate|increase)\({each.name}", query):
            problems.append(f"{each.name} only grows: ask for its rate")
    grouped = {label.strip() for by in re.findall(r"\bby \(([^)]*)\)", query) for label in by.split(",")}
    return problems + [f"nothing has {label}" for label in sorted(grouped - known)]


@pytest.mark.parametrize("title,query", list(queries()), ids=lambda text: text[:40])
def test_every_query_uses_documented_metrics(title: str, query: str) -> None:
    """Metrics, matchers and groupings exist in docs/reference/metrics.md, and counters are queried by rate."""
    assert complaints(query) == [], title


@pytest.mark.parametrize(
    "query,complaint",
    [
        ("limnos_nothing > 1", "no metric limnos_nothing"),
        ('rate(limnos_requests_total{code="500"}[5m])', "limnos_requests_total has no code"),
        ("sum by (user) (rate(limnos_requests_total[5m]))", "nothing has user"),
        ("limnos_requests_total > 5", "limnos_requests_total only grows: ask for its rate"),
        ("sum(rate(limnos_batches_total[5m])) / sum(rate(limnos_no_total[5m]))", "no metric limnos_no_total"),
    ],
)
def test_invalid_queries_are_reported(query: str, complaint: str) -> None:
    """Queries of missing series, and meaningless ones, are reported at every position."""
    assert complaint in complaints(query)


def test_query_of_histograms_own_name_is_reported() -> None:
    """A query of a histogram's own name is reported, because it has no such series."""
    with pytest.raises(AssertionError, match="by their parts"):
        complaints("limnos_request_seconds > 1")


def test_board_shows_every_metric_but_listed_exceptions() -> None:
    """The board has every metric except for a few that only explain another one."""
    shown_metrics = {
        each.name.removesuffix("_bucket") for _, query in queries() for each in series(promql_parser.parse(query))
    }

    assert set(METRICS) - shown_metrics == {
        "limnos_commit_files_total",
        "limnos_held_snapshots",
        "limnos_janitor_removed_total",
        "limnos_lance_debris_total",
        "limnos_lock_requests_total",
        "limnos_metrics_reports_total",
        "limnos_repeats_total",
        "limnos_tasks_total",
        "limnos_maintenance_assessed_total",
        "limnos_maintenance_deleted_files_total",
        "limnos_maintenance_expired_snapshots_total",
        "limnos_maintenance_findings",
        "limnos_maintenance_operations_total",
        "limnos_maintenance_orphan_checks_total",
        "limnos_maintenance_rewrites_total",
        "limnos_maintenance_rewritten_bytes_total",
        "limnos_maintenance_rewritten_files_total",
        "limnos_maintenance_leases_total",
        "limnos_maintenance_executor_starts_total",
        "limnos_search_index_steps_total",
    }


def test_every_alert_has_a_summary_and_instructions() -> None:
    """Each alert has a unique name, a summary, a severity, and a heading of the page with instructions."""
    headings = re.findall(r"^#+ (.+)$", OPERATIONS.read_text(encoding="utf-8"), re.MULTILINE)
    anchors = {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}

    assert len({rule["alert"] for rule in RULES}) == len(RULES)
    for rule in RULES:
        page, _, anchor = rule["annotations"]["runbook"].partition("#")
        assert ROOT / page == OPERATIONS
        assert anchor in anchors, rule["alert"]
        assert rule["labels"]["severity"] in ("page", "ticket")
        assert rule["annotations"]["summary"]


def test_summaries_use_only_labels_of_their_query() -> None:
    """A summary uses only labels that the query keeps."""
    for rule in RULES:
        summary_labels = set(re.findall(r"\$labels\.(\w+)", rule["annotations"]["summary"]))
        grouped = re.findall(r"\bby \(([^)]*)\)", rule["expr"])
        query_labels = {label.strip() for by in grouped for label in by.split(",")} if grouped else set(OF_A_SCRAPE)

        assert summary_labels <= query_labels, rule["alert"]


def test_panels_have_unique_ids_and_do_not_overlap() -> None:
    """Panels have unique ids and do not overlap, each with the board's data source."""
    panels = BOARD["panels"]
    places = {(panel["gridPos"]["x"] // 8, panel["gridPos"]["y"] // 8) for panel in panels}

    assert len({panel["id"] for panel in panels}) == len(places) == len(panels)
    assert all(panel["datasource"]["uid"] == "${datasource}" for panel in panels)
    assert {each["name"] for each in BOARD["templating"]["list"]} == {"datasource", "job"}
