# SPDX-License-Identifier: Apache-2.0
"""Values as texts of a terminal."""

from __future__ import annotations

from limnos.cli.output import cell


def test_maps_within_maps_are_one_line() -> None:
    """A map is one pair per line, and a map within it stays in its line."""
    assert cell({"states": {"a": "done", "b": "failed"}, "attempt": 1}) == "states = a = done, b = failed\nattempt = 1"
