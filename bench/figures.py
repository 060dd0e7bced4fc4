"""A measured figure beside its aim.

Imports the standard library only.
"""

from __future__ import annotations

from typing import NamedTuple


class Figure(NamedTuple):
    """A measured figure, its unit, and its aim."""

    name: str
    value: float
    unit: str
    aim: float

    @property
    def is_met(self) -> bool:
        """Whether the figure meets its aim."""
        return self.value <= self.aim

    @property
    def line(self) -> str:
        """The figure as a line, with whether it meets its aim."""
        verdict = "meets" if self.is_met else "MISSES"
        return f"{self.name:62} {self.value:10.3f} {self.unit:11} aim {self.aim:g}: {verdict}"
