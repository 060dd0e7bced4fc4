# SPDX-License-Identifier: Apache-2.0
"""Preparation of a step's table: create it, add and widen columns, set its layout.

Compares the step's rows with the existing table, refuses changes that lose data, and executes all other changes. Must
not know how rows are written or published. Columns belong to the table and not to a branch, so readers see an added
column (empty) at once. Columns are dropped by the publishing commit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import BooleanType, StructField, StructType, TimestampType

from limnos.model.errors import BadRequest
from limnos.names import display, engine
from limnos.pipeline.context import MADE_BY
from limnos.pipeline.declaration import StepDeclaration, WriteMode
from limnos.pipeline.declared_values import Parts
from limnos.pipeline.engine.branches import run_of
from limnos.pipeline.engine.changes import (
    ColumnChanges,
    changes_between,
    ddl,
    dotted_path,
    quote_column,
    require_free_names,
    require_single_names,
    storable,
)
from limnos.pipeline.engine.layout import column_docs, partition_of, partition_term, same_term, sort_of, sort_term
from limnos.pipeline.engine.metadata import LoadedTable, TableMetadata, load_table, metadata_of
from limnos.pipeline.failures import OutputGone


@dataclass(frozen=True, slots=True, kw_only=True)
class TablePreparation:
    """The changes that a table needs before a step's rows fit. Nothing is executed yet."""

    is_new: bool
    columns: StructType
    """Columns of the step's rows."""
    changes: ColumnChanges = field(default_factory=ColumnChanges)
    statements: tuple[str, ...] = ()
    columns_to_drop: tuple[str, ...] = ()
    """Columns that the step allows to be dropped. They are written as NULL, and dropped when the run is published."""
    existing_table: LoadedTable | None = None
    """The existing table; None if there is none."""
    schema: StructType | None = None
    """Columns of the existing table; None if there is none."""

    @property
    def is_ready(self) -> bool:
        """Whether the existing table needs no change."""
        return self.existing_table is not None and not self.statements


def preparation(
    spark: SparkSession,
    step: StepDeclaration,
    *,
    frame: DataFrame,
    branch: str = "",
    existing_tables: frozenset[Parts] = frozenset(),
) -> TablePreparation:
    """Return the changes that the step's table needs for the rows of `frame`. Executes nothing.

    Args:
        spark: The session.
        step: The step.
        frame: The step's rows.
        branch: Name of the branch that will be written. A new table gets the run's name from it as a property.
        existing_tables: Tables and namespaces that existed when the run began. They are never created.

    Raises:
        OutputGone: A table in `existing_tables` is missing.
        BadRequest: A change that the step does not allow: a dropped or narrowed column, or missing keys or partition
            columns.
    """
    struct_type = columns_of(step, frame)
    require_single_names(struct_type)
    require_free_names(step.name, struct_type.names)
    _check_columns(step, struct_type)
    loaded = load_table(spark, step.table)
    if loaded is None:
        if step.table in existing_tables:
            raise OutputGone(f"{display.render(step.table)} existed when the run began and no longer exists")
        result = storable(struct_type)
        return TablePreparation(
            is_new=True,
            columns=result,
            statements=tuple(_creation_statements(step, result, branch=branch, existing_tables=existing_tables)),
        )
    metadata = loaded.metadata
    _check_layout(spark, step, metadata=metadata)
    have = loaded.columns(spark, step.table)
    changes = changes_between(have, struct_type)
    dropped = _allowed_drops(step, changes, metadata=metadata)
    is_unpublished = bool(branch) and metadata.head() is None and metadata.properties.get(MADE_BY) == run_of(branch)
    _check_lossy(step, changes, is_unpublished=is_unpublished)
    statements = (*_evolving(step, changes, have=have), *_layout_statements(step, metadata, columns=struct_type))
    return TablePreparation(
        is_new=False,
        columns=struct_type,
        changes=changes,
        statements=statements,
        columns_to_drop=tuple(map(dotted_path, dropped)),
        existing_table=loaded,
        schema=have,
    )


def prepare(
    spark: SparkSession,
    step: StepDeclaration,
    *,
    frame: DataFrame,
    branch: str,
    existing_tables: frozenset[Parts] = frozenset(),
) -> TablePreparation:
    """Execute the DDL that creates or alters the step's table. Returns the result of `preparation`.

    Raises as `preparation` does.
    """
    table_preparation = preparation(spark, step, frame=frame, branch=branch, existing_tables=existing_tables)
    for statement in table_preparation.statements:
        spark.sql(statement)
    return table_preparation


def rename_column(spark: SparkSession, table: Parts, *, old: str, new: str) -> None:
    """Rename a column of a table; does nothing if the table does not exist or has no such column."""
    metadata = metadata_of(spark, table)
    if metadata is not None and any(each.name == old for each in metadata.schema.fields):
        name = engine.render_spark(table)
        spark.sql(f"ALTER TABLE {name} RENAME COLUMN {quote_column(old)} TO {quote_column(new)}")


def columns_of(step: StepDeclaration, frame: DataFrame) -> StructType:
    """Return the columns of the step's table: those of the query; in mode `history` (SCD type 2) also the columns
    `valid_from`, `valid_to` and `current`.

    Raises BadRequest if the query returns a column with one of these names.
    """
    if step.write.mode is not WriteMode.HISTORY:
        return frame.schema
    write = step.write
    names = {each.lower() for each in frame.columns} & {
        each.lower() for each in (write.valid_from, write.valid_to, write.current)
    }
    if names:
        raise BadRequest(
            f"Step {step.name}: the query has a column {min(names)!r}, which its history creates itself. Rename it in"
            " the query, or name the history's with valid_from, valid_to, current."
        )
    when = TimestampType() if write.as_of is None else frame.select(f.expr(write.as_of)).schema.fields[0].dataType
    validity_fields = [
        StructField(write.valid_from, when),
        StructField(write.valid_to, when),
        StructField(write.current, BooleanType()),
    ]
    return StructType([*frame.schema.fields, *validity_fields])


def literal(text: str) -> str:
    """Quote a string for SQL. `${` is escaped, because Spark would substitute it even in literals."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("${", "\\u0024{")
    return f"'{escaped}'"


def _check_columns(step: StepDeclaration, struct_type: StructType) -> None:
    names = {each.lower() for each in struct_type.names}
    write = step.write
    if write.mode in {WriteMode.MERGE, WriteMode.HISTORY} and not write.keys:
        raise BadRequest(f"Step {step.name}: {write.mode.value} needs `keys`: the columns that identify a row.")
    if write.mode is WriteMode.PARTITIONS and not step.partition:
        raise BadRequest(
            f"Step {step.name}: `partitions` replaces partitions, and none are declared. Write `partition:`."
        )
    entries = {"keys": write.keys, "tracked": write.tracked, "columns": tuple(each.name for each in step.columns)}
    for what, columns in entries.items():
        for name in columns:
            if name.lower() not in names and name.partition(".")[0].lower() not in names:
                raise BadRequest(
                    f"Step {step.name}: `{what}` names {name!r}, which the query does not return. It returns"
                    f" {', '.join(struct_type.names)}."
                )


def _check_layout(spark: SparkSession, step: StepDeclaration, *, metadata: TableMetadata) -> None:
    if step.write.mode is not WriteMode.PARTITIONS or metadata.head() is None:
        return
    name = engine.render_spark(step.table)
    if _partition_changes(step, metadata) != ((), ()):
        raise BadRequest(
            f"Step {step.name}: {name} has another partitioning than declared, and `partitions` would keep the rows of"
            " the old partitions in addition to the new ones. Write the step once with `mode: replace`, or leave"
            " `partition` as it was."
        )
    if len(metadata.partition_specs) > 1:
        specs = {row[0] for row in spark.sql(f"SELECT DISTINCT spec_id FROM {name}.files").collect()}
        if specs - {metadata.default_spec_id}:
            raise BadRequest(
                f"Step {step.name}: {name} has rows from before its partitioning was changed, which `partitions` would"
                " keep in addition to the new ones. Write the step once with `mode: replace`."
            )


def _allowed_drops(
    step: StepDeclaration, changes: ColumnChanges, *, metadata: TableMetadata
) -> tuple[tuple[str, ...], ...]:
    allowed_names = {each.lower() for each in step.allowed.drop}
    refused = [path for path in changes.missing if dotted_path(path).lower() not in allowed_names]
    if refused:
        names = ", ".join(map(dotted_path, refused))
        raise BadRequest(
            f"Step {step.name}: the table has {names}, which the query does not return (any more). Add it to the query"
            f" (a renamed column is a new one); or, to drop it with its values, write `allow: {{drop: [{names}]}}`."
        )
    used = {each.column for each in partition_of(metadata)} | {each.term.column for each in sort_of(metadata)}
    for path in changes.missing:
        if any(each[: len(path)] == path for each in used):
            raise BadRequest(
                f"Step {step.name}: {dotted_path(path)} can't be dropped: the table is partitioned or sorted by it."
            )
    return changes.missing


def _check_lossy(step: StepDeclaration, changes: ColumnChanges, *, is_unpublished: bool) -> None:
    """Raise BadRequest for a column that the step does not allow to be narrowed. `is_unpublished`: an earlier attempt
    of the run has made the table, which readers do not see.
    """
    allowed_names = {each.lower() for each in step.allowed.narrow}
    for each in changes.lossy:
        if dotted_path(each.path).lower() in allowed_names:
            continue
        if is_unpublished:
            raise BadRequest(
                f"Step {step.name}: {dotted_path(each.path)} is {ddl(each.new)} in the query, and {ddl(each.old)} in"
                " the table that an earlier attempt of this run has made and not published. Start a new run in place"
                " of resuming this one; 'limnos delete run RUN' discards this one."
            )
        raise BadRequest(
            f"Step {step.name}: {dotted_path(each.path)} is {ddl(each.old)} in the table and {ddl(each.new)} in the"
            " query, whose values may not fit. Cast it in the query; or, to have them cast, write `allow:"
            f" {{narrow: [{dotted_path(each.path)}]}}`."
        )


def _creation_statements(
    step: StepDeclaration, struct_type: StructType, *, branch: str, existing_tables: frozenset[Parts]
) -> Iterator[str]:
    for length in range(2, len(step.table)):
        if step.table[:length] in existing_tables:
            continue  # it existed when the run began: if it is missing now, CREATE TABLE must fail
        yield f"CREATE NAMESPACE IF NOT EXISTS {engine.render_spark(step.table[:length])}"
    comments = _comments(step, struct_type)
    columns = [_column(each, comments.get((each.name.lower(),))) for each in struct_type.fields]
    properties = dict(step.properties) | ({MADE_BY: run_of(branch)} if branch else {})
    name = engine.render_spark(step.table)
    yield " ".join(
        (
            f"CREATE TABLE {name} ({', '.join(columns)}) USING iceberg",
            *(
                [f"PARTITIONED BY ({', '.join(partition_term(each).sql() for each in step.partition)})"]
                if step.partition
                else []
            ),
            *([f"COMMENT {literal(step.comment)}"] if step.comment is not None else []),
            *([f"TBLPROPERTIES ({_pairs(properties)})"] if properties else []),
        )
    )
    for path, comment in comments.items():
        if len(path) > 1:
            yield f"ALTER TABLE {name} ALTER COLUMN {engine.render_spark(path)} COMMENT {literal(comment)}"
    if step.sort:
        yield _sorting(step)


def _column(column: StructField, comment: str | None) -> str:
    text = "" if comment is None else f" COMMENT {literal(comment)}"
    return f"{quote_column(column.name)} {ddl(column.dataType)}{text}"


def _evolving(step: StepDeclaration, changes: ColumnChanges, *, have: StructType) -> Iterator[str]:
    name = engine.render_spark(step.table)
    for added_column in changes.added:
        yield f"ALTER TABLE {name} ADD COLUMN {engine.render_spark(added_column.path)} {ddl(added_column.type)}"
    for widened in changes.widened:
        yield f"ALTER TABLE {name} ALTER COLUMN {engine.render_spark(widened.path)} TYPE {ddl(widened.new)}"
    required = {each.name for each in have.fields if not each.nullable}
    for path in changes.missing:
        if len(path) == 1 and path[0] in required:
            yield f"ALTER TABLE {name} ALTER COLUMN {quote_column(path[0])} DROP NOT NULL"


def _layout_statements(step: StepDeclaration, metadata: TableMetadata, *, columns: StructType) -> Iterator[str]:
    """Yield the statements for layout, properties and comments that differ from the declaration."""
    name = engine.render_spark(step.table)
    properties = {key: value for key, value in step.properties.items() if _property(metadata, key) != value}
    if step.comment is not None and metadata.properties.get("comment") != step.comment:
        properties["comment"] = step.comment
    if properties:
        yield f"ALTER TABLE {name} SET TBLPROPERTIES ({_pairs(properties)})"
    docs = column_docs(metadata)
    for path, comment in _comments(step, columns).items():
        if docs.get(path) != comment:
            yield f"ALTER TABLE {name} ALTER COLUMN {engine.render_spark(path)} COMMENT {literal(comment)}"
    added_terms, dropped_terms = _partition_changes(step, metadata)
    yield from (f"ALTER TABLE {name} DROP PARTITION FIELD {each}" for each in dropped_terms)
    yield from (f"ALTER TABLE {name} ADD PARTITION FIELD {each}" for each in added_terms)
    if step.sort and tuple(map(sort_term, step.sort)) != sort_of(metadata):
        yield _sorting(step)


def _partition_changes(step: StepDeclaration, metadata: TableMetadata) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the partition fields to add and to drop. Without a declared partitioning, both are empty."""
    if not step.partition:
        return (), ()
    expected, have = tuple(map(partition_term, step.partition)), partition_of(metadata)
    added_terms = tuple(each.sql() for each in expected if not any(same_term(each, old) for old in have))
    dropped = tuple(old.sql() for old in have if not any(same_term(old, each) for each in expected))
    return added_terms, dropped


def _sorting(step: StepDeclaration) -> str:
    return (
        f"ALTER TABLE {engine.render_spark(step.table)} WRITE ORDERED BY"
        f" {', '.join(sort_term(each).sql() for each in step.sort)}"
    )


def _comments(step: StepDeclaration, columns: StructType) -> dict[Parts, str]:
    """Return the declared comments by column path. A name with dots is first looked up as a single name."""
    single = {each.lower() for each in columns.names}
    names = {each.name.lower(): each.comment for each in step.columns if each.comment is not None}
    return {(name,) if name in single else tuple(name.split(".")): comment for name, comment in names.items()}


def _property(metadata: TableMetadata, key: str) -> str | None:
    return str(metadata.format_version) if key == "format-version" else metadata.properties.get(key)


def _pairs(values: Mapping[str, str]) -> str:
    return ", ".join(f"{literal(key)}={literal(value)}" for key, value in values.items())
