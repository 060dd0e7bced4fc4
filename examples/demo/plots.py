# SPDX-License-Identifier: Apache-2.0
"""The two plots of the demo's page.

Job: numbers in, a PNG out, without a display. May import matplotlib; it must not know the origin of the numbers.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.figure import Figure

_COLOURS = ("#1f6f8b", "#e07a2f", "#6a4c93")
_SIZE_INCH = (8.0, 4.2)
_DPI = 110


@dataclass(frozen=True, slots=True)
class HourlyDelays:
    """Mean departure delay in minutes by scheduled hour (0 to 23), per airport."""

    by_airport: Mapping[str, Sequence[tuple[int, float]]]


@dataclass(frozen=True, slots=True)
class AirlineDelays:
    """Per airline its flights, and the shares (0 to 1) late by more than 15 minutes and cancelled."""

    rows: Sequence[tuple[str, int, float, float]]


def hourly_plot(delays: HourlyDelays) -> bytes:
    """Plot delays over the day: one line per airport. Returns PNG bytes."""
    figure = _figure()
    axes = figure.add_subplot()
    for colour, (airport, points) in zip(_COLOURS, sorted(delays.by_airport.items()), strict=False):
        hours = [hour for hour, _ in points]
        minutes = [delay for _, delay in points]
        axes.plot(hours, minutes, color=colour, marker="o", markersize=3.5, linewidth=1.8, label=airport)
    axes.set_xticks(range(5, 24, 2))
    axes.set_xlabel("scheduled hour of departure")
    axes.set_ylabel("mean departure delay, minutes")
    axes.set_title("Delays grow over the day")
    axes.legend(frameon=False)
    axes.grid(visible=True, axis="y", alpha=0.3)
    return _png(figure)


def airline_plot(delays: AirlineDelays) -> bytes:
    """Plot the share of late and cancelled flights, one bar per airline, worst at the top. Returns PNG bytes."""
    figure = _figure()
    axes = figure.add_subplot()
    ordered = sorted(delays.rows, key=lambda row: row[2] + row[3])
    names = [f"{name} ({flights:,})" for name, flights, _, _ in ordered]
    late = [100 * share for _, _, share, _ in ordered]
    cancelled = [100 * share for _, _, _, share in ordered]
    axes.barh(names, late, color=_COLOURS[0], label="arrived more than 15 minutes late")
    axes.barh(names, cancelled, left=late, color=_COLOURS[1], label="cancelled")
    axes.set_xlabel("share of the airline's flights, per cent")
    axes.set_title("Late and cancelled flights by airline (flights in brackets)")
    axes.tick_params(axis="y", labelsize=8)
    axes.legend(frameon=False, loc="lower right", fontsize=8)
    return _png(figure)


def _figure() -> Figure:
    from matplotlib.figure import Figure

    return Figure(figsize=_SIZE_INCH, dpi=_DPI, layout="constrained")


def _png(figure: Figure) -> bytes:
    out = io.BytesIO()
    figure.savefig(out, format="png")
    return out.getvalue()
