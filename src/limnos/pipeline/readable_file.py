# SPDX-License-Identifier: Apache-2.0
"""The readable part of a file with mistakes, so that one check also reports the mistakes in its queries.

A step or source that cannot be read is replaced by one whose columns are unknown; its name stays known to the others.
Must not know Spark or servers.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path

from limnos.pipeline.compound_schemas import MapOf, RecordKey
from limnos.pipeline.declaration import Pipeline
from limnos.pipeline.declared_values import Parts
from limnos.pipeline.directory import PipelineDirectory
from limnos.pipeline.keys import FILE
from limnos.pipeline.keys.loops import expand_loops, query_loops
from limnos.pipeline.node_schemas import InvalidNode, NodeSchema, ProblemNotes
from limnos.pipeline.problems import InvalidPipeline, Problem
from limnos.pipeline.yaml import MapNode, ScalarNode, YamlNode, parse

_REQUIRED = ("pipeline", "catalog", "steps")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadableFile:
    """A pipeline of the readable parts of a file, with the names whose declarations cannot be read."""

    pipeline: Pipeline
    unreadable: frozenset[Parts]
    """Tables of steps, and sources by one part."""
    problems: tuple[Problem, ...]
    """Problems beyond those of single keys, which the reader of the whole file reports."""


def read_readable(text: str, *, file: str, directory: Path) -> ReadableFile | None:
    """Return the readable parts of a YAML file; None if its name, its catalog or all of its steps cannot be read."""
    try:
        root = parse(text, file=file)
    except InvalidPipeline:
        return None
    if not isinstance(root, MapNode):
        return None
    beside = PipelineDirectory(directory)
    unreadable: set[str] = set()
    entries: list[tuple[ScalarNode, YamlNode]] = []
    for key, value in root.entries:
        key_schema = FILE.keys.get(key.text)
        if key_schema is None:
            continue
        readable = (
            value
            if _is_valid(key_schema.value_schema, value, beside=beside)
            else _prune_mapping(key.text, key_schema, value=value, beside=beside, unreadable=unreadable)
        )
        if readable is not None:
            entries.append((key, readable))
    written_keys = {key.text for key, _ in entries}
    if any(name not in written_keys for name in _REQUIRED):
        return None
    notes = ProblemNotes(beside)
    pipeline = None
    with contextlib.suppress(InvalidNode):
        pipeline = FILE.read(MapNode(at=root.at, entries=entries), notes)
    if not isinstance(pipeline, Pipeline):
        return None
    names = {step.name: step.table for step in pipeline.steps} | {one.name: (one.name,) for one in pipeline.sources}
    return ReadableFile(
        pipeline=pipeline,
        unreadable=frozenset(table for name, table in names.items() if name in unreadable),
        problems=tuple(notes.problems),
    )


def _is_valid(schema: NodeSchema, node: YamlNode, *, beside: PipelineDirectory) -> bool:
    notes = ProblemNotes(beside)
    try:
        schema.read(node, notes)
    except InvalidNode:
        return False
    return not notes.problems


def _prune_mapping(
    name: str, known: RecordKey, *, value: YamlNode, beside: PipelineDirectory, unreadable: set[str]
) -> YamlNode | None:
    """Return a mapping of sources, steps or parameters with its readable entries; None for other keys."""
    placeholder = _PLACEHOLDERS.get(name)
    schema = known.value_schema
    if placeholder is None or not isinstance(schema, MapOf) or not isinstance(value, MapNode):
        return None
    entries: list[tuple[ScalarNode, YamlNode]] = []
    expanded = expand_loops(value, ProblemNotes(beside)) if name == "steps" else value
    for key, each in expanded.entries if isinstance(expanded, MapNode) else ():
        text = ScalarNode(at=key.at, text=key.text, value=key.text, text_at=key.text_at)
        if not _is_valid(schema.key, text, beside=beside):
            continue
        if _is_valid(schema.value, each, beside=beside):
            entries.append((key, each))
        else:
            unreadable.add(key.text)
            entries.append((key, _node(placeholder, each)))
    if name == "steps":
        loops = {key.text for key, _ in query_loops(value)}
        single = [(key, each) for key, each in value.entries if key.text in loops]
        entries += [one for one in single if _is_valid(schema, MapNode(at=value.at, entries=[one]), beside=beside)]
    return MapNode(at=value.at, entries=entries) if entries else None


_PLACEHOLDERS = {
    "sources": ("files", "unreadable.csv"),
    "steps": ("sql", "SELECT 1 AS x"),
    "parameters": ("type", "string"),
}


def _node(placeholder: tuple[str, str], instead_of: YamlNode) -> MapNode:
    key, value = (ScalarNode(at=instead_of.at, text=text, value=text, text_at=instead_of.at) for text in placeholder)
    return MapNode(at=instead_of.at, entries=[(key, value)])
