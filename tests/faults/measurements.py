# SPDX-License-Identifier: Apache-2.0
"""Measurements of fault tests: seconds until a node answers again, and durations of refusals."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

from tests.nodes.wire import WireAnswer


def timed(work: Callable[[], WireAnswer]) -> tuple[WireAnswer, float]:
    """Return an answer and its duration."""
    began = time.monotonic()
    return work(), time.monotonic() - began


def note(**seconds: float) -> None:
    """Record a measurement for the run's output."""
    if path := os.environ.get("LIMNOS_TEST_FIGURES"):
        with Path(path).open("a") as file:
            file.writelines(json.dumps([name, round(value, 2)]) + "\n" for name, value in seconds.items())
