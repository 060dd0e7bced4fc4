# SPDX-License-Identifier: Apache-2.0
"""Sources of files: CSV, JSON, Parquet, ORC and text, with malformed rows separated.

Opens exactly the files that a run reads. An undeclared schema is inferred once and recorded with the run; a later
change of the files' schema is an error. Malformed rows are found by Spark's permissive mode with every column parsed,
because Spark does not notice errors in columns that a query does not need. Must not know tables.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TypeVar

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, DataFrameReader, Observation
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming.readwriter import DataStreamReader
from pyspark.sql.types import StringType, StructType

from limnos.names.columns import case_twins
from limnos.pipeline.engine.naming import BAD, FILE
from limnos.pipeline.engine.sources.fingerprints import (
    FilesFingerprint,
    NewFiles,
    SourceFileState,
    are_missing,
    is_same,
    new_since,
    read,
    take_fingerprint,
)
from limnos.pipeline.engine.sources.listing import (
    base_path,
    content_digest,
    list_files,
    locate_path,
    path_without_credentials,
    paths_of,
    root_of,
)
from limnos.pipeline.engine.sources.malformed import counts, malformed_rows
from limnos.pipeline.engine.sources.values import (
    MalformedRows,
    SourceFailed,
    SourceRead,
    SourceReadRequest,
    first_line,
)
from limnos.pipeline.outcomes import ReadPin
from limnos.pipeline.reader_options import LISTING_OPTIONS, option_problem
from limnos.pipeline.source_declarations import Files, Stream

_Reader = TypeVar("_Reader", "DataFrameReader", "DataStreamReader")

FORMATS = ("csv", "json", "parquet", "orc", "text")
_MISSING = "files of source {} that it has read are gone"
_TEXTUAL = ("csv", "json")
"""The formats that may have malformed rows."""
_NOT_OF_HEADERS = ("header", "nullvalue", "emptyvalue", "inferschema", "samplingratio")
"""Options that do not concern the text of a header."""


def files_frame(request: SourceReadRequest, files: Files) -> SourceRead:
    """Open the files of a source.

    Raises SourceFailed: no files, files changed during the run, another schema, or options that this module sets
    itself.
    """
    _check(request, files)
    path = locate_path(request, files.path)
    states = _pinned_files(request, list_files(request, files, path=path))
    former_fingerprint = read(request.before.fingerprint) if request.before else None
    content = content_digest(states)
    new = _new_files(request, states, former=former_fingerprint, content=content)
    chosen_fingerprint = read(request.pinned.fingerprint) if request.pinned else former_fingerprint
    has_schema = chosen_fingerprint is not None and chosen_fingerprint.schema is not None
    inspected = new.files if has_schema else new.files or states
    schema, inferred = _schema(request, files, states=inspected, path=path, fingerprint=chosen_fingerprint)
    stored_schema = schema.json() if inferred else None
    print_ = take_fingerprint(states, schema=stored_schema, content=content, before=former_fingerprint)
    pin = ReadPin(name=request.source.name, fingerprint=print_.text(), whole_because=new.whole_because)
    among = new.files if request.only is None else tuple(file for file in new.files if file.path == request.only)
    frame, malformed = _rows(request, files, among=among, schema=schema, path=path)
    return SourceRead(
        frame=frame,
        pin=pin,
        root=root_of(path),
        files=tuple(file.path for file in sorted(new.files, key=lambda file: (file.changed_ms, file.path))),
        missing=_MISSING.format(request.source.name) if are_missing(states, former_fingerprint) else None,
        malformed=malformed,
    )


def _new_files(
    request: SourceReadRequest,
    states: tuple[SourceFileState, ...],
    *,
    former: FilesFingerprint | None,
    content: str | None,
) -> NewFiles:
    """Return the files to read: all of them, or in an increment those that the last fingerprint lacks."""
    if not request.incremental:
        return NewFiles(files=states)
    present = take_fingerprint(states, content=content, before=former)
    if former and former.digest == present.digest and not is_same(former, present):
        return NewFiles(files=states, whole_because="the content of a file was changed since it was read")
    return new_since(states, former, rereads=request.rereads)


def _rows(
    request: SourceReadRequest, files: Files, *, among: Sequence[SourceFileState], schema: StructType, path: str
) -> tuple[DataFrame, MalformedRows | None]:
    """Return the rows of some files, and those that are malformed if the format can have them."""
    if not among:
        return request.spark.createDataFrame([], schema), None
    reader = _reader(request, files, among=among, path=path)
    if files.format not in _TEXTUAL:
        return reader.schema(schema).load(paths_of(among)), None
    _check_headers(request, files, schema=schema, among=among)
    return _split_malformed(request, files, reader=reader, schema=schema, paths=paths_of(among))


def have_files_changed(request: SourceReadRequest, files: Files) -> bool:
    """Return whether files were changed, added or removed since `request.pinned` was taken; True if that is unknown."""
    former_fingerprint = read(request.pinned.fingerprint) if request.pinned else None
    if former_fingerprint is None:
        return True
    try:
        states = list_files(request, files, path=locate_path(request, files.path))
    except SourceFailed:
        return True
    content = None if former_fingerprint.content is None else content_digest(states)
    return not is_same(former_fingerprint, take_fingerprint(states, content=content))


def _check(request: SourceReadRequest, files: Files) -> None:
    if files.format not in FORMATS:
        raise request.failed(f"there is no format {files.format!r}: write one of {', '.join(FORMATS)}.")
    stream = isinstance(request.source.kind, Stream)
    for name in files.options:
        if (problem := option_problem(files.format, name, stream=stream)) is not None:
            raise request.failed(problem)


def _pinned_files(request: SourceReadRequest, states: tuple[SourceFileState, ...]) -> tuple[SourceFileState, ...]:
    """Return the files that this run has already read, else all files. Later files are read by the next run. Raises
    SourceFailed if files were changed or removed during the run.
    """
    pinned = read(request.pinned.fingerprint) if request.pinned else None
    if pinned is None:
        return states
    same = tuple(file for file in states if file.changed_ms <= pinned.newest_ms)
    for result in (states, same):
        if take_fingerprint(result).digest == pinned.digest:
            return result
    raise request.failed("its files were changed or removed during the run: run again.")


def _reader(
    request: SourceReadRequest, files: Files, *, among: Sequence[SourceFileState], path: str
) -> DataFrameReader:
    selecting = {option.lower() for option in LISTING_OPTIONS}
    options = {name: value for name, value in files.options.items() if name.lower() not in selecting}
    root = base_path(among, path)
    if root is not None:
        options["basePath"] = root
    return request.spark.read.format(files.format).options(**options)


# ------------------------------------------------------------------------------------------------ schema


def _schema(
    request: SourceReadRequest,
    files: Files,
    *,
    states: Sequence[SourceFileState],
    path: str,
    fingerprint: FilesFingerprint | None,
) -> tuple[StructType, bool]:
    """Return the schema for the read, and whether it was inferred, so that the fingerprint must record it."""
    if files.format == "text":
        return StructType().add("value", StringType()), False
    if files.schema is not None:
        return request.declared(files.schema), False
    pinned = (
        None
        if fingerprint is None or fingerprint.schema is None
        else StructType.fromJson(json.loads(fingerprint.schema))
    )
    if pinned is not None and (files.format == "csv" or not states):
        return pinned, True  # the header is compared below; values that do not fit make malformed rows
    if not states:
        raise request.failed("its files are empty, so no schema can be inferred from them: write `schema`.")
    struct_type = _infer_schema(request, files, states=states, path=path)
    if pinned is not None:
        _refuse_change(request, pinned=pinned, actual=struct_type)
    return pinned or struct_type, True


def _infer_schema(
    request: SourceReadRequest, files: Files, *, states: Sequence[SourceFileState], path: str
) -> StructType:
    reader = _reader(request, files, among=states, path=path)
    infer = {"csv": ("inferSchema", True), "parquet": ("mergeSchema", True), "orc": ("mergeSchema", True)}
    if files.format in infer and not _has_option(files, infer[files.format][0]):
        reader = reader.option(*infer[files.format])
    try:
        schema = reader.option("columnNameOfCorruptRecord", BAD).load(paths_of(states)).schema
    except (PySparkException, Py4JJavaError) as error:
        raise request.failed(
            f"no schema can be inferred from {path_without_credentials(path)}: {first_line(error)} Write `schema`."
        ) from error
    schema = StructType([field for field in schema.fields if field.name != BAD])
    if not schema.fields:
        raise request.failed(
            f"no schema can be inferred from {path_without_credentials(path)}: no column was found. Write `schema`."
        )
    return schema


def _refuse_change(request: SourceReadRequest, *, pinned: StructType, actual: StructType) -> None:
    """Raise SourceFailed if the files' columns or types differ from `pinned`, the schema that the last run recorded."""
    pinned_types = {field.name: field.dataType for field in pinned.fields}
    texts = [f"{field.name} is new" for field in actual.fields if field.name not in pinned_types]
    texts += [
        f"{field.name} is {field.dataType.simpleString()}, and was {pinned_types[field.name].simpleString()}"
        for field in actual.fields
        if field.name in pinned_types and field.dataType != pinned_types[field.name]
    ]
    if texts:
        raise request.failed(_schema_change_message("; ".join(texts)))


def _schema_change_message(what: str) -> str:
    return (
        f"its files have another schema than when it was inferred: {what}. Write `schema` to choose one, or run with "
        "--full to infer it again."
    )


def _check_headers(
    request: SourceReadRequest, files: Files, *, schema: StructType, among: Sequence[SourceFileState]
) -> None:
    """Raise SourceFailed if the header of the oldest or the newest CSV file differs from the schema. Spark checks the
    headers of other files while reading.
    """
    if files.format != "csv" or not _has_header(files):
        return
    inside = [file.path.rpartition("/")[0].split("/") for file in among]
    partitions = {part.partition("=")[0] for parts in inside for part in parts if "=" in part}
    requested_names = [field.name for field in schema.fields if field.name not in partitions]
    by_age = sorted(among, key=lambda file: file.changed_ms)
    for file in {file.path: file for file in (by_age[0], by_age[-1])}.values():
        header = _header(request, files, file=file)
        _check_header_names(request, file, header=header)
        if header and [name.lower() for name in header] != [name.lower() for name in requested_names]:
            what = (
                f"{path_without_credentials(file.path)} begins with {', '.join(header)}, and"
                f" {', '.join(requested_names)} was expected"
            )
            raise request.failed(
                _schema_change_message(what) if files.schema is None else f"{what}: correct `schema`, or the file."
            )


def _header(request: SourceReadRequest, files: Files, *, file: SourceFileState) -> list[str]:
    """Return the names in a file's header as Spark reads them; empty if the file has no line."""
    options = {name: value for name, value in files.options.items() if name.lower() not in _NOT_OF_HEADERS}
    row = request.spark.read.format("csv").options(**options, header="false").load(paths_of([file])).first()
    return [] if row is None else ["" if name is None else str(name) for name in row]


def _check_header_names(request: SourceReadRequest, file: SourceFileState, *, header: Sequence[str]) -> None:
    """Raise SourceFailed for names that are equal, differ by case alone, or are empty: Spark reads no such file."""
    place = f"the header of {path_without_credentials(file.path)}"
    twin = next(case_twins(header), None)
    if twin is not None:
        raise request.failed(f"{place} has the column {twin[0]!r} and the column {twin[1]!r}: rename one in the file.")
    if "" in header:
        raise request.failed(f"{place} has no name for column {header.index('') + 1}: write one into the file.")


def _has_option(files: Files, option: str) -> bool:
    return option.lower() in {name.lower() for name in files.options}


def _has_header(files: Files) -> bool:
    return any(name.lower() == "header" and value.lower() == "true" for name, value in files.options.items())


# ---------------------------------------------------------------------------------------- malformed rows


def _split_malformed(
    request: SourceReadRequest, files: Files, *, reader: DataFrameReader, schema: StructType, paths: list[str]
) -> tuple[DataFrame, MalformedRows]:
    """Split the rows into valid rows, which fit the schema, and malformed rows, with their text and file."""
    parsed = permissive(files, reader, schema=schema).load(paths)
    parsed = with_file(parsed)
    observation = Observation()
    whole = parsed.observe(observation, *counts(parsed))
    good = whole.where(F.col(BAD).isNull()).drop(BAD, FILE)
    return good, malformed_rows(request, files.malformed, parsed=parsed, observation=observation)


def with_file(frame: DataFrame) -> DataFrame:
    """Add the path of each row's file as the column `FILE`. The files may have a column `_metadata` of their own."""
    return frame.select("*", frame.metadataColumn("_metadata").getField("file_path").alias(FILE))


def permissive(files: Files, reader: _Reader, *, schema: StructType) -> _Reader:
    """Configure a reader to put malformed rows into the column `BAD`, if the format can have them."""
    if files.format not in _TEXTUAL:
        return reader.schema(schema)
    reader = reader.option("mode", "PERMISSIVE").option("columnNameOfCorruptRecord", BAD)
    if files.format == "csv":
        # Otherwise a header in another order would silently be read by position.
        reader = reader.option("enforceSchema", "false")
    return reader.schema(StructType([*schema.fields]).add(BAD, StringType()))


def stream_schema(
    request: SourceReadRequest, files: Files, *, path: str, stored_schema: object
) -> tuple[StructType, bool]:
    """Return the schema of a stream of files, and whether it was inferred.

    It is inferred once, from the first files.
    """
    _check(request, files)
    if files.schema is not None or files.format == "text":
        return _schema(request, files, states=(), path=path, fingerprint=None)
    if isinstance(stored_schema, dict):
        return StructType.fromJson(stored_schema), True
    return _schema(request, files, states=list_files(request, files, path=path), path=path, fingerprint=None)
