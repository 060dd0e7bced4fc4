# SPDX-License-Identifier: Apache-2.0
"""A measured value with its target.

Imports the standard library only.
"""

from __future__ import annotations

from typing import NamedTuple


class Figure(NamedTuple):
    """A measured value, its unit, and its target."""

    name: str
    value: float
    unit: str
    aim: float

    @property
    def is_met(self) -> bool:
        """Return whether the value meets its target."""
        return self.value <= self.aim

    @property
    def line(self) -> str:
        """Return the value as a line, with whether it meets its target."""
        verdict = "meets" if self.is_met else "MISSES"
        return f"{self.name:62} {self.value:10.3f} {self.unit:11} aim {self.aim:g}: {verdict}"
