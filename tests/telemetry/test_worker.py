# SPDX-License-Identifier: Apache-2.0
"""The number of a worker is in its log lines and metrics. A single process has none."""

from __future__ import annotations

import io
import json

import pytest

from limnos.telemetry import worker
from limnos.telemetry.logs import configure, get_logger
from limnos.telemetry.metrics import Counter, MetricRegistry, render


@pytest.mark.parametrize("number", [None, 3])
def test_worker_number_is_in_its_logs_and_metrics(monkeypatch: pytest.MonkeyPatch, number: int | None) -> None:
    """The log lines and series of a worker have its number. Those of a single process do not."""
    monkeypatch.setattr(worker, "number", number)
    registry, stream = MetricRegistry(), io.StringIO()
    Counter("limnos_things_total", "Things.", ("kind",), registry=registry)["a",] += 1

    configure("info", "json", stream=stream)
    get_logger("limnos.test").info("said")
    text = render(registry).decode()

    assert json.loads(stream.getvalue()).get("worker") == number
    assert ('worker="3"' in text) is (number is not None)
    assert 'kind="a"' in text
