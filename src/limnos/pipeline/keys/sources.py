# SPDX-License-Identifier: Apache-2.0
"""Keys of a source: files, databases, topics, Python, streams, tables.

Defines a record for each kind of source, and the constraints between its keys. Must not know how a source is read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from limnos.formats.system_tables import OCCURRED_AT, SYSTEM_TABLES
from limnos.model.harvest_formats import HARVEST_FORMATS, ICEBERG, REGISTRABLE_FORMATS
from limnos.pipeline.compound_schemas import Cases, ListOf, Record, RecordKey
from limnos.pipeline.keys.shared import COLUMNS, ENVIRONMENT, FUNCTION, OPTIONS, SQL, TEXT, pairs, require_function
from limnos.pipeline.keys.topics import topic_record
from limnos.pipeline.node_schemas import Choice, NodeSite, TableName, Text, Values, WholeNumber
from limnos.pipeline.reader_options import option_problem
from limnos.pipeline.source_declarations import (
    STORAGE_COLUMNS,
    STORAGE_FINDINGS,
    Files,
    HarvestSource,
    Jdbc,
    MalformedRowPolicy,
    PythonSource,
    RegistrationSource,
    SourceKind,
    StorageSource,
    Stream,
    SystemTableSource,
    TableSource,
)

_LATENESS = Text(
    word="a lateness",
    pattern=r"\d{1,15}( ?(s|seconds?|m|min|minutes?|h|hours?|d|days?|w|weeks?))?",
    rule="write a time ('10 minutes', 2h, '1 day'), or for a number a number",
)
SUFFIXES: Mapping[str, str] = {
    ".csv": "csv",
    ".tsv": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".parquet": "parquet",
    ".orc": "orc",
    ".txt": "text",
    ".text": "text",
    ".log": "text",
}
"""File suffixes and their formats. A suffix of a compression format may follow."""
_COMPRESSED = re.compile(r"\.(gz|bz2|zst|snappy|lz4|deflate)$")
SHORT_FILES = Text(
    word="files by path or URL",
    pattern=r".*\.(csv|tsv|json|jsonl|ndjson|parquet|orc|txt|text|log)(\.(gz|bz2|zst|snappy|lz4|deflate))?",
    rule=(
        "a source written as a string is a path that ends in its format (data/*.csv); write 'files:' with 'format:' for"
        " others, 'table:' for a table, 'python:' for a function"
    ),
)
FORMATS = ("csv", "json", "parquet", "orc", "text")
_SECRET = re.compile(
    r"://[^/@?]*:[^/@?]*@|^jdbc:oracle:\w+:[^/@]+/[^@]+@|\b(password|pwd|passwd|secret)\s*=", re.IGNORECASE
)


def _files(values: Values, site: NodeSite, *, stream: bool = False) -> Files:
    written_files = values["files"]
    kind = values.get("format") or SUFFIXES.get(
        re.sub(r"^.*(\.[^./*]+)$", r"\1", _COMPRESSED.sub("", written_files.lower()))
    )
    if kind is None:
        raise site.bad(
            f"the format of '{written_files}' does not follow from its ending: add 'format: csv' (or another)"
        )
    options = dict(pairs(values.get("options", ())))
    for name, _, at in values.get("options", ()):
        if (problem := option_problem(kind, name, stream=stream)) is not None:
            site.notes.add(problem, at)
    if written_files.lower().endswith((".tsv", ".tsv.gz")):
        options.setdefault("sep", "\t")
    return Files(
        path=written_files,
        format=kind,
        schema=values.get("schema"),
        options=options,
        malformed=MalformedRowPolicy(values.get("malformed", "fail")),
    )


def _jdbc(values: Values, site: NodeSite) -> Jdbc:
    options = dict(pairs(values.get("options", ())))
    if _SECRET.search(values["jdbc"]) or any(_SECRET.search(f"{key}=") for key in options):
        raise site.bad("a password is not allowed in the file: name its environment variable in 'password_env'")
    if values.get("partitions", 1) > 1 and "partition_column" not in values:
        raise site.bad("'partitions' needs 'partition_column', the column by which the table is divided")
    return Jdbc(
        url=values["jdbc"],
        table=values.get("table"),
        query=values["query"].text if "query" in values else None,
        user=values.get("user"),
        password_env=values.get("password_env"),
        options=options,
        partition_column=values.get("partition_column"),
        partitions=values.get("partitions", 1),
        cursor_column=values.get("cursor_column"),
        lateness=values.get("lateness"),
    )


def _python_source(values: Values, site: NodeSite) -> PythonSource:
    require_function(values["python"], site)
    return PythonSource(function=values["python"], schema=values.get("schema"))


def _stream(values: Values, site: NodeSite) -> Stream:
    files = _files(values, site, stream=True) if "files" in values else None
    if files is not None and files.schema is None:
        raise site.bad("a stream of files needs 'schema': there may be no file yet to infer it from")
    return Stream(files=files, table=values.get("table"))


def _storage(values: Values, site: NodeSite) -> StorageSource:
    if values["storage"] == STORAGE_COLUMNS and "footers" in values:
        raise site.bad("'footers' belongs to 'storage: findings': statistics of columns read no data files")
    return StorageSource(content=values["storage"], footers=values.get("footers"))


def _harvest(values: Values, site: NodeSite) -> HarvestSource:
    source = HarvestSource(root=values["harvest"], formats=values.get("formats", HARVEST_FORMATS))
    if not source.is_metastore:
        return source
    if set(values.get("formats", (ICEBERG,))) != {ICEBERG}:
        raise site.bad("a harvest of a metastore has Iceberg tables alone: leave out 'formats'")
    return replace(source, formats=(ICEBERG,))


def _registration(values: Values, site: NodeSite) -> RegistrationSource:
    formats = values.get("formats", ("iceberg",))
    return RegistrationSource(table=values["register"], into=values["into"], formats=formats)


def _system_table(values: Values, site: NodeSite) -> SystemTableSource:
    table = SYSTEM_TABLES[values["system"]]
    texts = [each.name for each in table.columns if each.type == "text"]
    for name, _, at in values.get("where", ()):
        if name not in texts:
            words = f"'where' has texts that columns must have: '{name}' is not one of the columns {', '.join(texts)}"
            site.notes.add(words, at)
    columns: tuple[str, ...] = values.get("columns", ())
    names = [each.name for each in table.columns]
    for name in columns:
        if name not in names:
            raise site.bad(f"'columns' has '{name}', which is not one of the columns {', '.join(names)}")
    last_days = values.get("last_days")
    if last_days is not None and all(each.name != OCCURRED_AT for each in table.columns):
        raise site.bad(f"'last_days' needs a table with the column {OCCURRED_AT}: changes or audit")
    where = dict(pairs(values.get("where", ())))
    return SystemTableSource(table=table.name, columns=columns, where=where, last_days=last_days)


_COMMENT = RecordKey(
    value_schema=TEXT, description="Description of the source.", example="comment: Flights as reported by the airport."
)
_SCHEMA = RecordKey(
    value_schema=Text(
        word="a column list", pattern=r"[\s\S]*\S\s+\S[\s\S]*", rule="write columns with types: id bigint, name string"
    ),
    description="Spark's list of columns with types. Without it, the schema is inferred at the first run and kept.",
    example="schema: id bigint, day date",
)
_FILE_KEYS = {
    "files": RecordKey(
        value_schema=TEXT,
        description="Path relative to the pipeline's file, or URL; * and ? are wildcards.",
        example="files: data/flights_*.csv",
        required=True,
    ),
    "format": RecordKey(
        value_schema=Choice(FORMATS),
        description="Format, if it does not follow from the name's ending: .csv and .tsv are csv; .json, .jsonl and"
        " .ndjson json; .parquet, .orc; .txt, .text and .log text. A compression may follow, as in .csv.gz.",
        example="format: csv",
    ),
    "schema": _SCHEMA,
    "options": RecordKey(
        value_schema=OPTIONS, description="Options of Spark's reader.", example="options: {header: true}"
    ),
    "malformed": RecordKey(
        value_schema=Choice(tuple(one.value for one in MalformedRowPolicy)),
        description=(
            "Treatment of rows that do not match the schema: the run fails, the rows are kept in `<table>__malformed`,"
            " or counted and left out."
        ),
        example="malformed: keep",
        default="fail",
    ),
}
_STREAM = Record(
    name="a stream",
    one_of=("files", "table"),
    together={"format": "files", "schema": "files", "options": "files", "malformed": "files"},
    keys={
        **{
            name: RecordKey(
                value_schema=key.value_schema, description=key.description, example=key.example, default=key.default
            )
            for name, key in _FILE_KEYS.items()
        },
        "table": RecordKey(value_schema=TableName(), description="An Iceberg table.", example="table: raw.web.clicks"),
    },
    build=_stream,
)
SOURCE_CASES: Mapping[str, Record] = {
    "files": Record(name="a source of files", keys={**_FILE_KEYS, "comment": _COMMENT}, build=_files),
    "jdbc": Record(
        name="a source in a database",
        one_of=("table", "query"),
        together={"partitions": "partition_column", "lateness": "cursor_column"},
        keys={
            "jdbc": RecordKey(
                value_schema=TEXT,
                description="JDBC URL, without a password.",
                example="jdbc: jdbc:postgresql://db/shop",
                required=True,
            ),
            "table": RecordKey(value_schema=TEXT, description="The table to read.", example="table: public.orders"),
            "query": RecordKey(
                value_schema=SQL,
                description="A query instead of a table.",
                example="query: SELECT * FROM orders WHERE NOT test",
            ),
            "user": RecordKey(value_schema=TEXT, description="User of the connection.", example="user: reader"),
            "password_env": RecordKey(
                value_schema=ENVIRONMENT,
                description="Environment variable with the password.",
                example="password_env: SHOP_PASSWORD",
            ),
            "options": RecordKey(
                value_schema=OPTIONS, description="Options of Spark's reader.", example="options: {fetchsize: 10000}"
            ),
            "partition_column": RecordKey(
                value_schema=TEXT,
                description="Column that divides the rows for concurrent reads.",
                example="partition_column: id",
            ),
            "partitions": RecordKey(
                value_schema=WholeNumber(least=1, most=10_000),
                description="Number of concurrent reads.",
                example="partitions: 8",
                default="1",
            ),
            "cursor_column": RecordKey(
                value_schema=TEXT,
                description=(
                    "Column that grows with each change of a row, without NULL: a time, a date or a number. Incremental"
                    " steps read by it."
                ),
                example="cursor_column: updated_at",
            ),
            "lateness": RecordKey(
                value_schema=_LATENESS,
                description="How far before the last read value rows are read again, because they may come late.",
                example="lateness: 10 minutes",
            ),
            "comment": _COMMENT,
        },
        build=_jdbc,
    ),
    "kafka": topic_record(_COMMENT),
    "python": Record(
        name="a source in Python",
        keys={
            "python": RecordKey(
                value_schema=FUNCTION,
                description=(
                    "`module:function` beside the file: yields Arrow batches, or takes `spark` and returns a DataFrame."
                ),
                example="python: weather:batches",
                required=True,
            ),
            "schema": _SCHEMA,
            "comment": _COMMENT,
        },
        build=_python_source,
    ),
    "harvest": Record(
        name="a harvest of tables",
        keys={
            "harvest": RecordKey(
                value_schema=TEXT,
                description=(
                    "A directory with tables, or s3://BUCKET/DIRECTORY: a row for each table at any depth. Or"
                    " thrift://HOST:9083, a Hive metastore: a row for each Iceberg table."
                ),
                example="harvest: s3://lake/warehouse",
                required=True,
            ),
            "formats": RecordKey(
                value_schema=ListOf(Choice(HARVEST_FORMATS), single=True),
                description="The formats of the tables that have rows; by default all.",
                example="formats: [iceberg, lance]",
            ),
            "comment": _COMMENT,
        },
        build=_harvest,
    ),
    "register": Record(
        name="a registration of harvested tables",
        keys={
            "register": RecordKey(
                value_schema=TableName(),
                description="The table of a step that loads a harvest. Each run registers what is new in it.",
                example="register: lake_harvest.tables",
                required=True,
            ),
            "into": RecordKey(
                value_schema=TableName(word="a catalog or namespace", parts_min=1),
                description="The catalog to register the tables in, or one of its namespaces.",
                example="into: main",
                required=True,
            ),
            "formats": RecordKey(
                value_schema=ListOf(Choice(REGISTRABLE_FORMATS), single=True),
                description="The formats of the tables to register.",
                example="formats: lance",
                default="iceberg",
            ),
            "comment": _COMMENT,
        },
        build=_registration,
    ),
    "stream": Record(
        name="a source that streams",
        keys={
            "stream": RecordKey(
                value_schema=_STREAM,
                description="Only rows that are new since the last run are read.",
                example="stream: {table: raw.web.clicks}",
                required=True,
            ),
            "comment": _COMMENT,
        },
        build=lambda values, site: values["stream"],
    ),
    "storage": Record(
        name="a source of what is in storage",
        keys={
            "storage": RecordKey(
                value_schema=Choice((STORAGE_FINDINGS, STORAGE_COLUMNS)),
                description=(
                    "`findings`: tables and views that the run's user may see, with what differs in storage. `columns`:"
                    " statistics of the columns of tables, by their manifests."
                ),
                example="storage: findings",
                required=True,
            ),
            "footers": RecordKey(
                value_schema=TEXT,
                description=(
                    "A boolean parameter: whether to compare the rows in footers of Parquet files with manifests."
                ),
                example="footers: footers",
            ),
            "comment": _COMMENT,
        },
        build=_storage,
    ),
    "system": Record(
        name="a source that is a system table",
        keys={
            "system": RecordKey(
                value_schema=Choice(tuple(SYSTEM_TABLES)),
                description=(
                    "A system table: the tree, access, lineage, runs, changes, audit; rows that the run's user may see."
                ),
                example="system: effective_access",
                required=True,
            ),
            "columns": RecordKey(
                value_schema=COLUMNS,
                description="The columns to read; by default all. Fewer columns need less time and memory.",
                example="columns: [id, path, owner]",
            ),
            "where": RecordKey(
                value_schema=OPTIONS,
                description="Texts that columns must have; the server sends no other rows.",
                example="where: {kind: table}",
            ),
            "last_days": RecordKey(
                value_schema=TEXT,
                description=(
                    "Of changes and audit: a parameter with the number of days before the run's day (UTC) to read."
                ),
                example="last_days: days",
            ),
            "comment": _COMMENT,
        },
        build=_system_table,
    ),
    "table": Record(
        name="a source that is a table",
        keys={
            "table": RecordKey(
                value_schema=TableName(),
                description="A table or view of any catalog of the session.",
                example="table: raw.nyc.airports",
                required=True,
            ),
            "comment": _COMMENT,
        },
        build=lambda values, site: TableSource(table=values["table"]),
    ),
}


def _with_comment(record: Record) -> Record:
    """Wrap the record of a source, so that its value is the pair of the source's kind and its comment."""

    def build(values: Values, site: NodeSite) -> tuple[SourceKind, str | None]:
        return record.build(values, site), values.get("comment")

    return Record(name=record.name, keys=record.keys, one_of=record.one_of, together=record.together, build=build)


SOURCE = Cases(
    name="a source",
    short=SHORT_FILES,
    from_short=lambda text, site: (_files({"files": text}, site), None),
    cases={name: _with_comment(record) for name, record in SOURCE_CASES.items()},
)
