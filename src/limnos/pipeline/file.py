# SPDX-License-Identifier: Apache-2.0
"""Reads a pipeline's file, YAML or Python, into a declaration.

Provides `load`, and the JSON Schema of the file. Must not know Spark or servers. Each error has its file, line and
column.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib.resources
import json
from collections.abc import Mapping
from pathlib import Path

from limnos.pipeline import python
from limnos.pipeline.declaration import LoopRows, Pipeline
from limnos.pipeline.declared_values import SourcePosition
from limnos.pipeline.directory import PipelineDirectory
from limnos.pipeline.keys import FILE
from limnos.pipeline.node_schemas import InvalidNode, ProblemNotes, Schema
from limnos.pipeline.problems import InvalidPipeline, Problem
from limnos.pipeline.readable_file import ReadableFile, read_readable
from limnos.pipeline.shipped import shipped_declaration, shipped_reference
from limnos.pipeline.yaml import BYTES_MAX, parse

SCHEMA_URL = "https://json-schema.org/draft/2020-12/schema"


def load(path: str | Path) -> Pipeline:
    """Read a pipeline from its file, or one that comes with the product, as `shipped:NAME`. Raises InvalidPipeline
    with all problems of the file, BadRequest for an unknown name.
    """
    shipped = shipped_reference(str(path))
    if shipped is not None:
        return read(shipped_declaration(*shipped), file=str(path), directory=Path())
    path = Path(path)
    if path.suffix in {".yaml", ".yml"}:
        return read(_text(path), file=str(path), directory=path.parent)
    if path.suffix == ".py":
        _text(path)
        return python.load(path)
    raise InvalidPipeline(
        [Problem(f"'{path}' is not a pipeline: name a file that ends in .yaml or .py, or shipped:NAME")]
    )


def read(text: str, *, file: str, directory: Path, loop_rows: Mapping[str, LoopRows] | None = None) -> Pipeline:
    """Read a declaration from text. `file` is used in positions; relative paths start at `directory`. `loop_rows` are
    the rows of loops over queries, whose steps are left out without them. Raises InvalidPipeline.
    """
    notes = ProblemNotes(PipelineDirectory(directory), loop_rows=loop_rows)
    pipeline = None
    with contextlib.suppress(InvalidNode):
        pipeline = FILE.read(parse(text, file=file), notes)
    if notes.problems or not isinstance(pipeline, Pipeline):
        raise InvalidPipeline(dict.fromkeys(notes.problems))  # steps of a loop have the same mistakes at one place
    if not pipeline.loops:
        return pipeline
    return dataclasses.replace(pipeline, expand=lambda rows: read(text, file=file, directory=directory, loop_rows=rows))


def load_readable(path: str | Path) -> ReadableFile | None:
    """Read what can be read of an invalid file; None if that is too little, or if the file is Python."""
    path = Path(path)
    if path.suffix not in {".yaml", ".yml"}:
        return None
    try:
        text = _text(path)
    except InvalidPipeline:
        return None
    return read_readable(text, file=str(path), directory=path.parent)


def schema() -> Schema:
    """Build the file's JSON Schema from the definitions of its keys."""
    return {
        "$schema": SCHEMA_URL,
        "title": "A pipeline of Limnos",
        "description": "Steps that write tables, run on branches and published by one commit.",
        **FILE.schema(),
    }


def schema_text() -> str:
    """Return the JSON text of the schema that the package contains (`schema.json`)."""
    return importlib.resources.files("limnos.pipeline").joinpath("schema.json").read_text(encoding="utf-8")


def build_schema_text() -> str:
    """Build the JSON text that `schema.json` must have."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


def _text(path: Path) -> str:
    at = SourcePosition(str(path), 1, 1)
    try:
        if path.stat().st_size > BYTES_MAX * 4:
            raise InvalidPipeline([Problem(f"more than {BYTES_MAX:,} characters: divide the pipeline", at)])
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidPipeline([Problem(f"not UTF-8 text: byte {error.start} can't be read", at)]) from None
    except OSError as error:
        raise InvalidPipeline([Problem(f"'{path}' can't be read: {error.strerror}")]) from None
