# SPDX-License-Identifier: Apache-2.0
"""Flink 2.1 with Iceberg's runtime: like Flink 1.20, with other archives."""

from __future__ import annotations

from conformance.engines.archives import FLINK_2
from conformance.engines.drivers.flink_driver import Engine as Flink


class Engine(Flink):
    """Flink 2."""

    line = FLINK_2
    title = "Flink 2.1.1"
