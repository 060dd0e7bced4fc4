# SPDX-License-Identifier: Apache-2.0
"""Metrics: counts are rendered as Prometheus text that Prometheus' own parser accepts."""

from __future__ import annotations

import pytest
from prometheus_client.parser import text_string_to_metric_families

from limnos.telemetry import metrics
from limnos.telemetry.metrics import Counter, Histogram, MetricRegistry, all_metrics, render


def samples(registry: MetricRegistry) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """Render and parse the metrics. Returns the values by sample name and labels."""
    families = text_string_to_metric_families(render(registry).decode("utf-8"))
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in families
        for sample in family.samples
    }


def test_a_counter_counts_per_labels() -> None:
    """Each combination of labels has its own count, and numbers become text."""
    registry = MetricRegistry()
    counter = Counter("limnos_things_total", "Things.", ("kind", "status"), registry=registry)
    counter["table", 200] += 1
    counter["table", 200] += 1
    counter["view", 404] += 3

    assert samples(registry) == {
        ("limnos_things_total", frozenset({("kind", "table"), ("status", "200")})): 2,
        ("limnos_things_total", frozenset({("kind", "view"), ("status", "404")})): 3,
    }


def test_reading_an_unknown_count_does_not_create_it() -> None:
    """Reading an unknown key returns 0, and the key is not rendered."""
    registry = MetricRegistry()
    counter = Counter("limnos_things_total", "Things.", ("kind",), registry=registry)

    assert counter["table",] == 0
    assert samples(registry) == {}


def test_a_counter_without_labels_has_the_empty_key() -> None:
    """A counter without labels has one count."""
    registry = MetricRegistry()
    counter = Counter("limnos_things_total", "Things.", registry=registry)
    counter[()] += 1

    assert samples(registry) == {("limnos_things_total", frozenset()): 1}


def test_a_histogram_cumulates_its_buckets() -> None:
    """A value equal to a bound counts in that bucket, and a value above all bounds under +Inf. Count and sum are
    rendered.
    """
    registry = MetricRegistry()
    histogram = Histogram("limnos_wait_seconds", "Waiting.", ("what",), bounds=(1, 2), registry=registry)
    for value in (0.5, 1.0, 1.5, 9.0):
        histogram.observe(("lock",), value)
    metric_values = samples(registry)
    lock = ("what", "lock")

    assert metric_values == {
        ("limnos_wait_seconds_bucket", frozenset({lock, ("le", "1.0")})): 2,
        ("limnos_wait_seconds_bucket", frozenset({lock, ("le", "2.0")})): 3,
        ("limnos_wait_seconds_bucket", frozenset({lock, ("le", "+Inf")})): 4,
        ("limnos_wait_seconds_count", frozenset({lock})): 4,
        ("limnos_wait_seconds_sum", frozenset({lock})): 12.0,
    }


def test_label_values_of_any_text_are_escaped() -> None:
    """Quotes, backslashes and line ends in labels are escaped."""
    registry = MetricRegistry()
    counter = Counter("limnos_things_total", "Things.", ("kind",), registry=registry)
    counter['a"b\\c\nd',] += 1

    assert samples(registry) == {("limnos_things_total", frozenset({("kind", 'a"b\\c\nd')})): 1}


def test_metrics_of_mixed_label_types_are_rendered_in_order() -> None:
    """Labels of numbers and texts are sorted as text."""
    registry = MetricRegistry()
    counter = Counter("limnos_things_total", "Things.", ("status",), registry=registry)
    counter["unknown",] += 1
    counter[200,] += 1
    lines = [line for line in render(registry).decode().splitlines() if not line.startswith("#")]

    assert lines == ['limnos_things_total{status="200"} 1.0', 'limnos_things_total{status="unknown"} 1.0']


@pytest.mark.parametrize("name", ["things_total", "limnos_Things_total", "limnos__total", "limnos_a-b_total"])
def test_a_name_that_breaks_the_rule_is_refused(name: str) -> None:
    """A metric's name must begin with `limnos_` and be in lower case."""
    with pytest.raises(ValueError, match="names begin with limnos_"):
        Counter(name, "Things.", registry=MetricRegistry())


def test_counter_name_must_end_with_total() -> None:
    """A counter's name must end with `_total`, because Prometheus clients append it."""
    with pytest.raises(ValueError, match="ends in _total"):
        Counter("limnos_things", "Things.", registry=MetricRegistry())


def test_duplicate_metric_name_is_an_error() -> None:
    """A second metric of the same name is an error."""
    registry = MetricRegistry()
    Counter("limnos_things_total", "Things.", registry=registry)

    with pytest.raises(ValueError, match="used once"):
        Counter("limnos_things_total", "Things.", registry=registry)


def test_request_metrics_are_registered_with_help_and_labels() -> None:
    """The request metrics are registered in the process, each with a help text and its labels."""
    known = {metric.name: metric for metric in all_metrics()}

    assert known["limnos_requests_total"] is metrics.requests
    assert known["limnos_request_seconds"] is metrics.request_seconds
    assert all(metric.help.endswith(".") for metric in known.values())


def test_rendered_text_contains_all_request_metrics() -> None:
    """The rendered text of the process's registry has the request metrics, counted or not."""
    text = render().decode("utf-8")

    assert "# TYPE limnos_requests_total counter" in text
    assert "# TYPE limnos_request_seconds histogram" in text
