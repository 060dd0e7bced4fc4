# SPDX-License-Identifier: Apache-2.0
"""Steps that have changed since they were last published: their text, the inputs they declare, or columns of tables.

A run records a digest of each step. `modified_steps` compares them with the declaration of now, and the columns of the
input tables with those at the snapshots that the published run read. Reads only; must not know Spark.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from pathlib import Path

from limnos.client import Client
from limnos.client.activity.runs import Run
from limnos.client.errors import ClientError, DeniedError, NotFoundError
from limnos.client.values import Json
from limnos.names import display
from limnos.pipeline.declaration import EmbeddingDeclaration, Pipeline, PythonStep, StepDeclaration
from limnos.pipeline.declaration_json import plain
from limnos.pipeline.declared_values import Parts
from limnos.pipeline.definitions import digests
from limnos.pipeline.modules import code_of, code_of_file
from limnos.pipeline.selection import NEW
from limnos.pipeline.side_tables import names_source
from limnos.pipeline.source_declarations import DeclaredSource, PythonSource

RUNS_MAX = 100
"""The number of published runs, newest first, in which a step is looked for."""
_PARTS = ("its text", "its Python code", "a source that it reads")


def step_states(pipeline: Pipeline) -> dict[str, str]:
    """Return for each step the digests of its text, its Python code and its sources, joined by dots.

    Tags do not count, because they do not affect a step's table.
    """
    if pipeline.environment is not None:  # its states are compared with those of production
        pipeline = pipeline.environment.production
    directory = None if pipeline.at is None else Path(pipeline.at.file).parent
    return {step.name: _state(pipeline, step, directory=directory) for step in pipeline.steps}


def modified_steps(client: Client, pipeline: Pipeline, *, reads: Mapping[str, frozenset[Parts]]) -> dict[str, str]:
    """Return the steps that differ from their last published run, with the reasons.

    `reads` has the tables that each step reads, catalog first. Steps of runs that the caller may not see count as never
    published. Raises the client's errors.
    """
    states = step_states(pipeline)
    published = dict(published_runs(client, pipeline))
    if pipeline.environment is not None:  # what the environment never published counts by production's runs
        published = dict(published_runs(client, pipeline.environment.production)) | published
    lookup = _SchemaComparison(client)
    reasons: dict[str, str] = {}
    for name, state in states.items():
        run = published.get(name)
        reason = NEW if run is None else state_difference(run, name=name, state=state)
        if reason is None and run is not None:
            reason = lookup.find_changed_table(run, reads.get(name, frozenset()))
        if reason is not None:
            reasons[name] = reason
    return reasons


def published_runs(client: Client, pipeline: Pipeline) -> Iterator[tuple[str, Run]]:
    """Yield each step with the newest published run that executed it, among those that the caller may see."""
    missing = {step.name for step in pipeline.steps}
    try:
        runs = client.runs.list(pipeline=pipeline.name, state="published", limit=RUNS_MAX)
    except (DeniedError, NotFoundError):  # the pipeline was never run, or its runs are not visible
        return
    for listed in runs:
        run = client.runs.load(listed.id)  # a list has no options
        states = run.options.get("states")
        for name in sorted(missing & frozenset(states if isinstance(states, dict) else ())):
            missing.discard(name)
            yield name, run
        if not missing:
            return


def state_difference(run: Run, *, name: str, state: str) -> str | None:
    """Return the differences between a step's state, from `step_states`, and that of a run; None without one.

    The state is that of the attempt which finished the step: a run may be resumed with another declaration.
    """
    states = run.options.get("states")
    first = states.get(name, "") if isinstance(states, dict) else ""
    finished = next((step.outputs[0].get("state") for step in run.steps if step.name == name and step.outputs), None)
    former_state = str(finished or first).split(".")
    now = state.split(".")
    if len(former_state) != len(now):
        return "its state was recorded in another form"
    changed_parts = [part for part, old, new in zip(_PARTS, former_state, now, strict=True) if old != new]
    return f"{' and '.join(changed_parts)} changed" if changed_parts else None


def _state(pipeline: Pipeline, step: StepDeclaration, *, directory: Path | None) -> str:
    sources = [source for source in pipeline.sources if names_source(step, source.name)]
    owners = [step.body, *(source.kind for source in sources), *([] if step.embed is None else [step.embed])]
    parts = {
        "text": plain(dataclasses.replace(step, tags=())),
        "code": [_code(owner, directory) for owner in owners],
        "sources": [_source_text(source) for source in sources],
    }
    return ".".join(digests(parts).values())


def _source_text(source: DeclaredSource) -> object:
    return [source.name, plain(source.kind)]


def _code(owner: object, directory: Path | None) -> str | None:
    if not isinstance(owner, (PythonStep, PythonSource, EmbeddingDeclaration)):
        return None
    module = owner.function.partition(":")[0]
    text = None if directory is None else code_of_file(module, directory)
    if text is not None:  # without an import, so that a check and a run compare the same text
        return text
    return None if owner.callable is None else code_of(owner.callable)


class _SchemaComparison:
    """Compares columns of tables, and loads each table once."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._metadata: dict[Parts, Json | None] = {}

    def find_changed_table(self, run: Run, tables: frozenset[Parts]) -> str | None:
        """Return which of the tables that the run pinned has other columns now; None if none has."""
        pins = run.options.get("pins")
        for pin in pins if isinstance(pins, list) else ():
            table = tuple(map(str, pin.get("table") or ()))
            snapshot = pin.get("snapshot")
            if table not in tables or snapshot is None:
                continue
            reason = self._lance_reason(table, snapshot) if "lance" in pin else self._reason(table, snapshot)
            if reason:
                return reason
        return None

    def _lance_reason(self, table: Parts, version: object) -> str | None:
        name = display.render(table)
        lance = self._client.lance
        try:
            now = lance.load(table).table_schema
        except (DeniedError, NotFoundError):
            return f"{name}, which it reads, is gone or not visible"
        try:
            then = lance.load(table, version=version).table_schema if isinstance(version, int) else None
        except ClientError:
            then = None
        if then is None:
            return f"the version of {name} that it read no longer exists, so that its columns cannot be compared"
        return None if then.get("fields") == now.get("fields") else f"columns of {name}, which it reads, changed"

    def _reason(self, table: Parts, snapshot: object) -> str | None:
        name = display.render(table)
        metadata = self._load(table)
        if metadata is None:
            return f"{name}, which it reads, is gone or not visible"
        snapshots = _list(metadata.get("snapshots"))
        schema_id = next((one.get("schema-id") for one in snapshots if one.get("snapshot-id") == snapshot), None)
        if schema_id is None:
            return f"the snapshot of {name} that it read has expired, so that its columns cannot be compared"
        schemas = {one.get("schema-id"): one.get("fields") for one in _list(metadata.get("schemas"))}
        if schemas.get(schema_id) == schemas.get(metadata.get("current-schema-id")):
            return None
        return f"columns of {name}, which it reads, changed"

    def _load(self, table: Parts) -> Json | None:
        if table not in self._metadata:
            try:
                self._metadata[table] = self._client.tables.load(table).metadata
            except (DeniedError, NotFoundError):
                self._metadata[table] = None
        return self._metadata[table]


def _list(value: object) -> list[dict[str, object]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
