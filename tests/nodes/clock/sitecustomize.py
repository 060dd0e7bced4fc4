# SPDX-License-Identifier: Apache-2.0
"""Imported by the Python of a node with this folder on its path: shifts the node's wall clock."""

import os
import time

AHEAD_S = int(os.environ.get("LIMNOS_TEST_AHEAD_S", "0"))
_time, _time_ns = time.time, time.time_ns


def _shifted() -> float:
    return _time() + AHEAD_S


def _shifted_ns() -> int:
    return _time_ns() + AHEAD_S * 1_000_000_000


time.time, time.time_ns = _shifted, _shifted_ns
