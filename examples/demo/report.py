# SPDX-License-Identifier: Apache-2.0
"""The report at the end of the demo: a short one on the terminal and one self-contained HTML page.

Job: render a `DemoSummary`. May import rich, the demo's values and drawing, and the steps' times. It must not start
anything or send requests.
"""

from __future__ import annotations

import base64
import html
import shlex
import shutil
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from rich.markup import escape
from rich.table import Table

from examples.demo.graph import drawing

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rich.console import Console

    from examples.demo.access import AccessTrial
    from examples.demo.graph import DrawnEdge
    from examples.demo.progress import Step
    from limnos.pipeline.run.events import RunEvent


@dataclass(frozen=True, slots=True)
class TableLine:
    """A filled table: its number of rows, that of its source (None: it has none of its own), and the operation."""

    name: str
    rows: int
    source_rows: int | None
    done: str


@dataclass(frozen=True, slots=True)
class TableCommitLine:
    """One snapshot of the delays table: when, which operation, and the rows after it."""

    at: str
    operation: str
    rows: int


@dataclass(slots=True)
class Delivery:
    """One run of the pipeline: rows by step, expectations with their findings, and the reader's result."""

    name: str
    rows: dict[str, int] = field(default_factory=dict)
    expectations: list[str] = field(default_factory=list)
    seen: str = ""

    def hear(self, event: RunEvent) -> None:
        """Record the result of a step."""
        if event.step is not None and event.state == "done":
            self.rows[event.step] = event.rows or 0
            self.expectations += [f"{event.step}: {finding['message']}" for finding in event.findings]


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoSummary:
    """The content of the report. `directory` has the server's data and the page."""

    directory: Path
    tables: Sequence[TableLine]
    deliveries: Sequence[Delivery]
    graph: Sequence[DrawnEdge]
    commits: Sequence[TableCommitLine]
    trials: Sequence[AccessTrial]
    steps: Sequence[Step]
    total_s: float

    @property
    def data(self) -> Path:
        """The server's data directory."""
        return self.directory / "server"

    @property
    def expectations(self) -> list[str]:
        """Return the expectations of all deliveries, with their findings."""
        return [line for delivery in self.deliveries for line in delivery.expectations]

    @property
    def page(self) -> Path:
        """The HTML page."""
        return self.directory / "report.html"


def commands(summary: DemoSummary) -> tuple[tuple[str, str], ...]:
    """Return commands that show the result, each with a description; they work from the directory in which the demo
    ran.
    """
    limnos = shlex.quote(_command_path("limnos"))
    python = shlex.quote(_command_path("python"))
    data = shlex.quote(str(summary.data))
    return (
        ("serve it again (leave it running)", f"{limnos} server start --data {data}"),
        ("in another terminal, be its administrator", f"export LIMNOS_TOKEN_FILE={data}/admin.token"),
        ("see the lake in a browser, signed in", f"{limnos} console"),
        ("see the tree, and one table", f"{limnos} ls main.raw.nyc && {limnos} describe main.curated.nyc.delays"),
        ("ask why ana may not read it", f"{limnos} access explain table_load main.curated.nyc.delays --for ana"),
        ("query it with Spark", f"{python} -c {_double_quoted(_QUERY.format(token=summary.data / 'admin.token'))}"),
    )


def print_report(summary: DemoSummary, *, console: Console) -> None:
    """Print the created tables, access answers, times, and the commands that show the result."""
    console.print()
    console.print(_tables_table(summary.tables))
    for trials in _by_table(summary.trials):
        console.print(_trials_table(trials))
        refusal = next((trial.answer.text for trial in trials if not trial.answer.allowed), None)
        if refusal is not None:
            console.print(f"The reason, as ana reads it: {escape(refusal)}\n", highlight=False, soft_wrap=True)
    console.print(
        f"{len(summary.expectations)} data expectations met; every count equals the source's.", highlight=False
    )
    console.print(
        f"Done in {summary.total_s:.0f} s. All of it is in {escape(str(summary.directory))}\n", highlight=False
    )
    console.print("[bold]How to look at it[/]")
    for purpose, command in commands(summary):
        console.print(f"  # {purpose}", style="dim", highlight=False)
        console.print(f"  {escape(command)}", highlight=False, soft_wrap=True)
    console.print("  # the page with two plots", style="dim", highlight=False)
    console.print(f"  {escape(summary.page.absolute().as_uri())}", highlight=False, soft_wrap=True)


def write_page(summary: DemoSummary, *, plots: Iterable[tuple[str, bytes]]) -> None:
    """Write the page; `plots` are (description, PNG bytes), embedded, so that the file is self-contained."""
    summary.page.write_text(render_page(summary, plots=plots), encoding="utf-8")


def render_page(summary: DemoSummary, *, plots: Iterable[tuple[str, bytes]]) -> str:
    """Return the page as HTML; all external text is escaped."""
    figures = "".join(_figure(title, png) for title, png in plots)
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Limnos demo</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><style>{_STYLE}</style></head><body>
<h1>New York's flights of 2013, in Limnos</h1>
<p>Raw tables in <code>main.raw.nyc</code>, joined into <code>main.curated.nyc.delays</code> (one partition per month),
a late day merged in. {summary.total_s:.0f} seconds in all.</p>
{figures}
<h2>The pipeline</h2>
<p>Declared in <code>pipeline/pipeline.yaml</code>; on each edge the rows that both runs took along it.</p>
{drawing(summary.graph, notes={line.name.removeprefix("main."): line.done for line in summary.tables})}
<h2>Runs</h2>
{_html_table(("delivery", "while it ran, a reader saw"), [(one.name, one.seen) for one in summary.deliveries])}
<h2>Tables</h2>{_html_table(("table", "rows", "rows of its source", "this run"), _table_rows(summary.tables))}
<h2>Commits of main.curated.nyc.delays</h2>
{_html_table(("when (UTC)", "operation", "rows after it"), [(c.at, c.operation, f"{c.rows:,}") for c in summary.commits])}
<h2>Who may read it</h2>
<p>The user ana asks; the administrator's changes are all made at the first server. <code>lance.nyc.airports</code> is a Lance table: names as vectors of
their groups of letters, made by Spark, searched by what is spelled alike and by words.</p>
{_html_table(("for", "through", "asked", "after", "answer"), [_trial_row(trial) for trials in _by_table(summary.trials) for trial in trials])}
<h2>Expectations met</h2><ul>{"".join(f"<li>{html.escape(line)}</li>" for line in summary.expectations)}</ul>
<h2>Steps</h2>
{_html_table(("step", "seconds", ""), [(s.title, f"{s.elapsed_s:.1f}", s.note) for s in summary.steps])}
</body></html>
"""


def _tables_table(lines: Sequence[TableLine]) -> Table:
    table = Table(title="Tables", title_justify="left")
    table.add_column("table")
    table.add_column("rows", justify="right")
    table.add_column("source", justify="right")
    table.add_column("this run")
    for row in _table_rows(lines):
        table.add_row(*(escape(cell) for cell in row))
    return table


def _trials_table(trials: Sequence[AccessTrial]) -> Table:
    table = Table(title=f"ana asks for {trials[0].table}, through {trials[0].way}", title_justify="left")
    for heading in ("at", "after", "answer"):
        table.add_column(heading)
    for trial in trials:
        answer = f"allowed, {trial.answer.text}" if trial.answer.allowed else "refused"
        table.add_row(trial.server, trial.change, escape(answer))
    return table


def _by_table(trials: Sequence[AccessTrial]) -> list[list[AccessTrial]]:
    """Group the trials by table, in the order of their first request."""
    return [
        [trial for trial in trials if trial.table == table] for table in dict.fromkeys(each.table for each in trials)
    ]


def _table_rows(lines: Sequence[TableLine]) -> list[tuple[str, str, str, str]]:
    return [
        (line.name, f"{line.rows:,}", "" if line.source_rows is None else f"{line.source_rows:,}", line.done)
        for line in lines
    ]


def _trial_row(trial: AccessTrial) -> tuple[str, ...]:
    word = "allowed" if trial.answer.allowed else "refused"
    return trial.table, trial.way, trial.server, trial.change, f"{word}: {trial.answer.text}"


def _html_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    head = "".join(f"<th>{html.escape(heading)}</th>" for heading in headings)
    body = "".join(f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _figure(title: str, png: bytes) -> str:
    data = base64.b64encode(png).decode()
    text = html.escape(title)
    return f'<figure><img alt="{text}" src="data:image/png;base64,{data}"><figcaption>{text}</figcaption></figure>'


def _double_quoted(text: str) -> str:
    """Quote a word for a shell with double quotes, which are easier to read than single quotes within the text."""
    return f'"{text}"' if not set(text) & set('"$`\\!') else shlex.quote(text)


def _command_path(name: str) -> str:
    """Return how to call a command of this environment: by name if it is on PATH, else by its path next to this
    Python.
    """
    beside = Path(sys.executable).parent / name
    if not beside.is_file() or shutil.which(name) == str(beside):
        return name
    try:
        return str(beside.relative_to(Path.cwd()))
    except ValueError:
        return str(beside)


_QUERY = (
    "from limnos.spark import session; spark = session(token=open('{token}').read().strip()); "
    "spark.sql('SELECT airline, avg(arr_delay) FROM main.curated.nyc.delays GROUP BY 1 ORDER BY 2').show()"
)

_STYLE = """
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#1c2430}
table{border-collapse:collapse;width:100%;font-size:.9rem}th,td{text-align:left;padding:.3rem .6rem;
border-bottom:1px solid #dde3ea;vertical-align:top}th{background:#f3f6f9}figure{margin:1.5rem 0}img{max-width:100%}
svg.graph{width:100%}svg rect{fill:#f3f6f9;stroke:#9fb3c8}svg path{fill:none;stroke:#9fb3c8;stroke-width:1.5}
svg text{font-size:13px;fill:#1c2430}svg .note,svg .rows{font-size:11px;fill:#5a6675}
figcaption{color:#5a6675;font-size:.9rem}code{background:#f3f6f9;padding:0 .25rem}
"""
