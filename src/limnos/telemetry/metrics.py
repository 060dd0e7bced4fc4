# SPDX-License-Identifier: Apache-2.0
"""Metrics: counters, gauges and histograms, rendered in Prometheus' text format. An update costs one dictionary
increment.

Must not know the metrics. Label by operation, never by a raw path or a name that callers choose: every combination of
labels lives as long as the process.

    requests[("iceberg", "load-table", 200)] += 1
    request_seconds.observe(("iceberg", "load-table"), 0.0004)

Counts are exact with one thread, as in the event loop. Threads that share a metric may rarely lose an increment.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from itertools import accumulate
from typing import TYPE_CHECKING, Final

from limnos.telemetry import worker

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from prometheus_client import ProcessCollector
    from prometheus_client.metrics_core import Metric as Family

LabelValues = tuple[str | int, ...]
"""Values of a metric's labels, in the order of the labels."""

SECONDS: Final = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper bounds of latencies, from 100 µs to 10 s."""

_NAME: Final = re.compile(r"limnos_[a-z0-9]+(?:_[a-z0-9]+)*")


class MetricRegistry:
    """The metrics of a process, by name. Tests create their own."""

    def __init__(self) -> None:
        self._metrics: dict[str, Counter | Gauge | Histogram] = {}

    def add(self, metric: Counter | Gauge | Histogram) -> None:
        """Register a metric. Raises ValueError for an illegal or duplicate name."""
        if _NAME.fullmatch(metric.name) is None or metric.name in self._metrics:
            raise ValueError(f"Metric {metric.name!r}: names begin with limnos_, are lower case, and are used once.")
        self._metrics[metric.name] = metric

    def all(self) -> tuple[Counter | Gauge | Histogram, ...]:
        """Return every metric, sorted by name."""
        return tuple(self._metrics[name] for name in sorted(self._metrics))

    def collect(self) -> Iterator[Family]:
        """Yield every metric as a metric family of prometheus-client."""
        for metric in self.all():
            yield _label_worker(metric.family())


def _label_worker(family: Family) -> Family:
    """Add the label `worker` if the server has several worker processes."""
    if worker.number is not None:
        mine = {"worker": str(worker.number)}
        family.samples = [sample._replace(labels={**sample.labels, **mine}) for sample in family.samples]
    return family


REGISTRY: Final = MetricRegistry()


class Counter(dict[LabelValues, float]):
    """Counts per combination of labels; the name ends in `_total`. Use `counter[key] += 1`; a new key starts at 0."""

    def __init__(
        self, name: str, help: str, labels: Sequence[str] = (), *, registry: MetricRegistry = REGISTRY
    ) -> None:
        super().__init__()
        if not name.endswith("_total"):
            raise ValueError(f"Counter {name!r}: the name of a counter ends in _total.")
        self.name = name
        self.help = help
        self.labels = tuple(labels)
        registry.add(self)

    def __missing__(self, key: LabelValues) -> float:
        return 0

    def family(self) -> Family:
        """Return the counts as a metric family of prometheus-client."""
        from prometheus_client.core import CounterMetricFamily

        family = CounterMetricFamily(self.name, self.help, labels=self.labels)
        for key, value in sorted(self.items(), key=_label_text):
            family.add_metric(_texts(key), value)
        return family


class Gauge(dict[LabelValues, float]):
    """Current values per combination of labels. Use `gauge[key] = 3`."""

    def __init__(
        self, name: str, help: str, labels: Sequence[str] = (), *, registry: MetricRegistry = REGISTRY
    ) -> None:
        super().__init__()
        self.name = name
        self.help = help
        self.labels = tuple(labels)
        registry.add(self)

    def family(self) -> Family:
        """Return the values as a metric family of prometheus-client."""
        from prometheus_client.core import GaugeMetricFamily

        family = GaugeMetricFamily(self.name, self.help, labels=self.labels)
        for key, value in sorted(self.items(), key=_label_text):
            family.add_metric(_texts(key), value)
        return family


class Histogram:
    """Observations per combination of labels, counted in buckets with fixed upper bounds (inclusive)."""

    def __init__(
        self,
        name: str,
        help: str,
        labels: Sequence[str] = (),
        *,
        bounds: Sequence[float] = SECONDS,
        registry: MetricRegistry = REGISTRY,
    ) -> None:
        self.name = name
        self.help = help
        self.labels = tuple(labels)
        self.bounds = tuple(sorted(map(float, bounds)))
        self.rows: dict[LabelValues, list[float]] = {}
        registry.add(self)

    def observe(self, key: LabelValues, value: float) -> None:
        """Add `value`, in the histogram's unit, to its bucket and to the sum."""
        row = self.rows.get(key)
        if row is None:  # one count per bound, one for larger values, then the sum
            row = self.rows.setdefault(key, [0] * (len(self.bounds) + 2))
        row[bisect_left(self.bounds, value)] += 1
        row[-1] += value

    def family(self) -> Family:
        """Return the cumulative buckets as a metric family of prometheus-client."""
        from prometheus_client.core import HistogramMetricFamily

        family = HistogramMetricFamily(self.name, self.help, labels=self.labels)
        bounds = [*map(str, self.bounds), "+Inf"]
        for key, row in sorted(self.rows.items(), key=_label_text):
            family.add_metric(_texts(key), list(zip(bounds, accumulate(row[:-1]), strict=True)), row[-1])
        return family


def all_metrics() -> tuple[Counter | Gauge | Histogram, ...]:
    """Return every metric of the process, sorted by name."""
    return REGISTRY.all()


def render(registry: MetricRegistry = REGISTRY) -> bytes:
    """Render every metric in Prometheus' text format (version 0.0.4, UTF-8)."""
    from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest

    collectors = CollectorRegistry(auto_describe=False)
    collectors.register(registry)
    if registry is REGISTRY:
        collectors.register(_ProcessMetrics(ProcessCollector(registry=None)))
    return generate_latest(collectors)


class _ProcessMetrics:
    """Metrics of the process from the operating system (`process_resident_memory_bytes` and others)."""

    def __init__(self, collector: ProcessCollector) -> None:
        self._collector = collector

    def collect(self) -> Iterator[Family]:
        """Yield every metric as a metric family of prometheus-client; none on systems without /proc."""
        for family in self._collector.collect():
            yield _label_worker(family)


def _texts(key: Iterable[str | int]) -> list[str]:
    return [str(value) for value in key]


def _label_text(item: tuple[LabelValues, object]) -> list[str]:
    return _texts(item[0])


requests: Final = Counter(
    "limnos_requests_total",
    "Completed requests, by protocol, operation and HTTP status.",
    ("protocol", "operation", "status"),
)
request_seconds: Final = Histogram(
    "limnos_request_seconds",
    "Time from a request's head to the end of its response, in seconds.",
    ("protocol", "operation"),
)
