# SPDX-License-Identifier: Apache-2.0
"""Pages about a pipeline: its graph, and a page for each table with columns, lineage, expectations and last runs.

The pages are files that need no server. They have what the caller may see at the time of writing. Must not know Spark.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from limnos.client import Client
from limnos.client.activity.runs import Run
from limnos.client.errors import DeniedError, NotFoundError
from limnos.client.values import Json
from limnos.model.errors import BadRequest
from limnos.names import display
from limnos.pipeline.declaration import Pipeline, RuleKind, Sql, StepDeclaration
from limnos.pipeline.declared_values import Parts
from limnos.pipeline.drawing import svg
from limnos.pipeline.drawn_graph import graph_of
from limnos.pipeline.engine.plan_columns import ColumnOrigin
from limnos.pipeline.graph_pages import neighbourhood, picture
from limnos.pipeline.lineage import LineageSource, QueryLineage, decode_lineage
from limnos.pipeline.markup import escape, link, page, table
from limnos.pipeline.reads import StepReads
from limnos.pipeline.table_lineage import PipelineColumns, TableLineage, origin_kind

RUNS_MAX: Final = 10
"""The number of runs that the pages have, newest first."""
MARKER: Final = ".limnos-pipeline-docs"
"""The file by which a directory is known to have pages."""
_UNSAFE = re.compile(r"[^A-Za-z0-9_]+")
_NAME_MAX = 80
_INDEX: Final = "index.html"


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteFacts:
    """The facts from the server: metadata of tables, and the newest runs with their steps."""

    metadata: Mapping[Parts, Json] = field(default_factory=dict)
    runs: tuple[Run, ...] = ()
    columns: PipelineColumns = field(default_factory=PipelineColumns)
    """The columns that a check has found."""


def recent_runs(client: Client, pipeline: Pipeline) -> tuple[Run, ...]:
    """Return the newest runs that the caller may see, with steps; none for a pipeline that was never run."""
    try:
        listed = client.runs.list(pipeline=pipeline.name, limit=RUNS_MAX)
        return tuple(client.runs.load(one.id) for one in listed)
    except (DeniedError, NotFoundError):
        return ()


def write_site(pipeline: Pipeline, reads: Mapping[str, StepReads], *, facts: SiteFacts, directory: Path) -> int:
    """Write the pages to a directory, which is made. Returns the number of pages.

    Raises BadRequest for a directory that has other files than earlier pages.
    """
    if directory.exists() and (
        not directory.is_dir() or (any(directory.iterdir()) and not (directory / MARKER).exists())
    ):
        raise BadRequest(f"'{directory}' has other files: name a new or an empty directory")
    pages = _Site(pipeline, reads, facts=facts).pages()
    directory.mkdir(parents=True, exist_ok=True)
    (directory / MARKER).touch()
    for name, text in pages.items():
        path = directory / name
        if path.is_symlink():
            path.unlink()
        path.write_text(text, encoding="utf-8")
    return len(pages)


class _Site:
    """The pages of one pipeline."""

    def __init__(self, pipeline: Pipeline, reads: Mapping[str, StepReads], *, facts: SiteFacts) -> None:
        self._pipeline = pipeline
        self._reads = reads
        self._facts = facts
        self._files = page_names([step.table for step in pipeline.steps])
        self._columns_graph = graph_of(pipeline, reads, hrefs=self._files, columns=facts.columns)
        self._readers: dict[Parts, list[StepDeclaration]] = {}
        for step in pipeline.steps:
            for parts in sorted(reads[step.name].tables) if step.name in reads else ():
                self._readers.setdefault(parts, []).append(step)

    def pages(self) -> dict[str, str]:
        """Return the text of each page by its file's name."""
        pages = {_INDEX: self._index()}
        return pages | {self._files[step.table]: self._page(step) for step in self._pipeline.steps}

    def _index(self) -> str:
        comment = [] if self._pipeline.comment is None else [f"<p>{escape(self._pipeline.comment)}</p>"]
        newest = self._facts.runs[0] if self._facts.runs else None
        graph = graph_of(self._pipeline, self._reads, hrefs=self._files, run=newest)
        runs = [
            [
                escape(run.id),
                escape(run.state),
                escape(run.started_at or ""),
                escape(run.user),
                escape(run.message or ""),
            ]
            for run in self._facts.runs
        ]
        return page(
            graph.title,
            [
                *comment,
                *picture(graph),
                *_section("Last runs", table(("run", "state", "started", "user", ""), runs), rows=runs),
            ],
        )

    def _page(self, step: StepDeclaration) -> str:
        body = [f"<p>{link('Pipeline ' + self._pipeline.name, _INDEX)}</p>"]
        body += [] if step.comment is None else [f"<p>{escape(step.comment)}</p>"]
        tags = "" if not step.tags else f", tags {', '.join(step.tags)}"
        body.append(f"<p>{escape(f'Written by {step.write.mode.value}{tags}')}</p>")
        if isinstance(step.body, Sql):
            body.append(f"<pre>{escape(step.body.text)}</pre>")
        body += ['<div class="picture">', svg(neighbourhood(self._columns_graph, step.table)), "</div>"]
        columns = self._columns(step)
        body += _section("Columns", table(("column", "type", "comment", "comes from"), columns), rows=columns)
        body += self._neighbours(step)
        rules = [
            [escape(rule.name), escape(_rule(rule.kind, rule.condition)), escape(rule.action.value)]
            for rule in step.expectations
        ]
        body += _section("Expectations", table(("rule", "", "action"), rules), rows=rules)
        runs = self._runs(step)
        return page(
            display.render(step.table),
            [*body, *_section("Last runs", table(("run", "state", "rows", "ended", "broken"), runs), rows=runs)],
        )

    def _columns(self, step: StepDeclaration) -> list[list[str]]:
        comments = {column.name.lower(): column.comment or "" for column in step.columns}
        lineage = self._lineage(step)
        fields = _fields(self._facts.metadata.get(step.table))
        fields_by_name = {str(one.get("name")): one for one in fields}
        checked_lineage = self._facts.columns.tables.get(step.table, TableLineage())
        types = {one.name: one.type.lower() for one in checked_lineage.columns}
        names = list(fields_by_name) or list(types) or [column.name for column in step.columns]
        origins = (
            {} if lineage else {one.name: list(self._checked_origins(one.origins)) for one in checked_lineage.columns}
        )
        return [
            [
                escape(name),
                escape(_type(fields_by_name[name].get("type", "")) if name in fields_by_name else types.get(name, "")),
                escape(fields_by_name.get(name, {}).get("doc") or comments.get(name.lower(), "")),
                ", ".join(origins.get(name) or self._origins(lineage, name)),
            ]
            for name in names
        ]

    def _checked_origins(self, origins: Iterable[ColumnOrigin]) -> Iterable[str]:
        """Yield links to the origins that a check has found, for a table that no run has published."""
        for origin in origins:
            parts = origin.source if isinstance(origin.source, tuple) else ()
            text = link(f"{display.render(parts)}: {origin.column}", self._files.get(parts, ""))
            yield f"{text} ({escape(origin_kind(origin))})"

    def _origins(self, lineage: QueryLineage | None, column: str) -> Iterable[str]:
        for origin in dict.fromkeys(
            (one.source, one.column) for one in (lineage.columns.get(column, ()) if lineage else ())
        ):
            source, name = origin
            if isinstance(source, LineageSource):
                href = self._files.get(source.table, "") if source.table is not None else ""
                yield link(f"{source.name}: {name}", href)

    def _lineage(self, step: StepDeclaration) -> QueryLineage | None:
        for run in self._facts.runs:
            for one in run.steps:
                record = one.outputs[0].get("lineage") if one.name == step.name and one.outputs else None
                if run.state == "published" and isinstance(record, dict):
                    return decode_lineage(record)
        return None

    def _neighbours(self, step: StepDeclaration) -> list[str]:
        one = self._reads.get(step.name)
        read = [] if one is None else [*((name,) for name in sorted(one.sources)), *sorted(one.tables | one.past)]
        inputs = [[link(display.render(parts), self._files.get(parts, ""))] for parts in read]
        readers = [
            [link(display.render(each.table), self._files[each.table])] for each in self._readers.get(step.table, ())
        ]
        return [
            *_section("Reads", table(("name",), inputs), rows=inputs),
            *_section("Read by", table(("name",), readers), rows=readers),
        ]

    def _runs(self, step: StepDeclaration) -> list[list[str]]:
        rows = []
        for run in self._facts.runs:
            for one in run.steps:
                if one.name == step.name:
                    broken = [each.rule for each in run.findings if each.step == step.name and not each.held]
                    cells = (
                        run.id,
                        f"{one.state}, run {run.state}",
                        one.rows if one.rows is not None else "",
                        one.ended_at or "",
                    )
                    rows.append([*map(escape, cells), escape(", ".join(broken))])
        return rows


def page_names(tables: Sequence[Parts]) -> dict[Parts, str]:
    """Return a file name for each table, of letters, digits, `_` and `-`, distinct also where case is ignored."""
    names: dict[Parts, str] = {}
    used_names: set[str] = set()
    for number, parts in enumerate(tables):
        name = _UNSAFE.sub("-", ".".join(parts[1:]))[:_NAME_MAX]
        if name.lower() in used_names:  # no table's own name has two '-' in a row
            name = f"{name}--{number}"
        used_names.add(name.lower())
        names[parts] = f"table-{name}.html"
    return names


def _section(title: str, body: list[str], *, rows: Sequence[object]) -> list[str]:
    return [f"<h2>{escape(title)}</h2>", *body] if rows else []


def _rule(kind: RuleKind, condition: str | None) -> str:
    return condition or kind.value


def _fields(metadata: Json | None) -> list[Json]:
    schemas, current = (metadata or {}).get("schemas"), (metadata or {}).get("current-schema-id")
    for schema in schemas if isinstance(schemas, list) else ():
        if isinstance(schema, dict) and schema.get("schema-id") == current:
            fields = schema.get("fields")
            return [one for one in fields if isinstance(one, dict)] if isinstance(fields, list) else []
    return []


def _type(kind: object) -> str:
    return str(kind.get("type", "")) if isinstance(kind, dict) else str(kind)
