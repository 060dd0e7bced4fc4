# SPDX-License-Identifier: Apache-2.0
"""The report of the demo: terminal and page."""

from __future__ import annotations

import io
from pathlib import Path

from rich.console import Console

from examples.demo.access import AccessAnswer, AccessTrial
from examples.demo.graph import DrawnEdge
from examples.demo.plots import AirlineDelays, HourlyDelays, airline_plot, hourly_plot
from examples.demo.progress import Step
from examples.demo.report import Delivery, DemoSummary, TableCommitLine, TableLine, commands, print_report, render_page

PNG = b"\x89PNG\r\n\x1a\n"


def summary(directory: Path) -> DemoSummary:
    """A small summary with text that must be escaped."""
    return DemoSummary(
        directory=directory,
        tables=[TableLine(name="main.raw.nyc.flights", rows=336_776, source_rows=336_776, done="kept [all]")],
        deliveries=[
            Delivery("first", rows={"raw.nyc.flights": 5}, expectations=["a <rule>: 0 of 5 rows"], seen="3 looks")
        ],
        graph=[DrawnEdge("flights.csv", "raw.nyc.flights", 336_776)],
        commits=[TableCommitLine(at="2026-01-01 00:00:00", operation="overwrite", rows=336_776)],
        trials=[
            AccessTrial(
                table="main.a.t",
                way="PyIceberg",
                server="second server",
                change="revoked",
                answer=AccessAnswer(allowed=False, text="needs <SELECT>"),
            ),
            AccessTrial(
                table="lance.a.v",
                way="Lance REST",
                server="second server",
                change="granted",
                answer=AccessAnswer(allowed=True, text="'x' is near y"),
            ),
        ],
        steps=[Step("load", note="5 rows", elapsed_s=1.25)],
        total_s=61.4,
    )


def test_terminal_report_is_complete(tmp_path: Path) -> None:
    """The terminal report has tables, answers, time, directory and every command, with brackets intact."""
    out = io.StringIO()

    print_report(summary(tmp_path), console=Console(file=out, width=200))

    text = out.getvalue()
    for part in (
        "336,776",
        "kept [all]",
        "refused",
        "as ana reads it: needs <SELECT>",
        "ana asks for main.a.t",
        "ana asks for lance.a.v",
        "allowed, 'x' is near y",
        "61 s",
        str(tmp_path),
        "report.html",
    ):
        assert part in text
    for _, command in commands(summary(tmp_path)):
        assert command in text
    assert "limnos console" in text


def test_page_is_self_contained_and_escaped(tmp_path: Path) -> None:
    """The page embeds its plots, loads nothing from elsewhere, and escapes external text."""
    page = render_page(summary(tmp_path), plots=[("one", PNG), ("two", PNG)])

    assert page.count("data:image/png;base64,") == 2
    assert "http" not in page
    assert "needs &lt;SELECT&gt;" in page
    assert "a &lt;rule&gt;" in page
    assert "<svg" in page
    assert "3 looks" in page


def test_plots_are_png_images() -> None:
    """Both plots come out as PNG bytes without a display."""
    hourly = hourly_plot(HourlyDelays({"JFK": [(6, 1.5), (7, 3.0)], "LGA": [(6, 0.5)]}))
    airline = airline_plot(AirlineDelays([("United", 1000, 0.2, 0.01), ("Delta", 900, 0.1, 0.02)]))

    assert hourly.startswith(PNG)
    assert airline.startswith(PNG)
