"""A step's table before the step runs: made empty if it is new, its columns added and widened, its layout as declared.

Job: compare what a step will write with the table that is there, refuse what would lose something, carry out the rest. May
import this room, `model`, `names` and PySpark. It must not know how rows are written nor how a run is published. Columns belong to
the table and not to a branch, so readers see an added one at once (empty); what is dropped waits for the publishing commit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark.sql import functions as f
from pyspark.sql.types import BooleanType, StructField, StructType, TimestampType

from limnos.model.errors import BadRequest
from limnos.names import engine
from limnos.pipeline.context import MADE_BY
from limnos.pipeline.declaration import WriteMode
from limnos.pipeline.engine.branches import run_of
from limnos.pipeline.engine.changes import (
    ColumnChanges,
    changes_between,
    ddl,
    dotted_path,
    quote_column,
    require_single_names,
    storable,
)
from limnos.pipeline.engine.layout import (
    column_docs,
    partition_of,
    partition_term,
    same_term,
    sort_of,
    sort_term,
)
from limnos.pipeline.engine.metadata import TableMetadata, metadata_of
from limnos.pipeline.failures import OutputGone

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from limnos.pipeline.declaration import Parts, StepDeclaration


@dataclass(frozen=True, slots=True, kw_only=True)
class TablePreparation:
    """What has to be done to a table before a step's rows fit it. Nothing was done yet."""

    is_new: bool
    columns: StructType
    """What the step's rows have."""
    changes: ColumnChanges = field(default_factory=ColumnChanges)
    statements: tuple[str, ...] = ()
    columns_to_drop: tuple[str, ...] = ()
    """Allowed by the step; they are written as NULL, and dropped when the run is published."""
    found: TableMetadata | None = None
    """The table as it was; None: there is none."""
    schema: StructType | None = None
    """The columns it had."""

    @property
    def is_ready(self) -> bool:
        """Nothing has to be done: the table is as it was found."""
        return self.found is not None and not self.statements


def preparation(
    spark: SparkSession,
    step: StepDeclaration,
    *,
    frame: DataFrame,
    branch: str = "",
    there: frozenset[Parts] = frozenset(),
) -> TablePreparation:
    """What the step's table needs for the rows of `frame`; touches nothing.

    `branch` is the name of the branch that will be written: a new table bears the run's name. Of the tables and namespaces
    in `there` none is made. Raises OutputGone for such a table that is missing, and BadRequest for what
    the step does not allow: a column lost or narrowed, keys or partition columns that are not there.
    """
    wanted = columns_of(step, frame)
    require_single_names(wanted)
    _check_columns(step, wanted)
    found = metadata_of(spark, step.table)
    if found is None:
        if step.table in there:
            raise OutputGone(f"{'.'.join(step.table)} was there when the run began and is not any longer")
        made = storable(wanted)
        return TablePreparation(
            is_new=True, columns=made, statements=tuple(_making(step, made, branch=branch, there=there))
        )
    _check_layout(spark, step, found=found)
    have = spark.table(engine.render_spark(step.table)).schema
    changes = changes_between(have, wanted)
    dropped = _allowed_drops(step, changes, found=found)
    _check_lossy(step, changes)
    statements = (*_evolving(step, changes, have=have), *_dressing(step, found))
    return TablePreparation(
        is_new=False,
        columns=wanted,
        changes=changes,
        statements=statements,
        columns_to_drop=tuple(map(dotted_path, dropped)),
        found=found,
        schema=have,
    )


def prepare(
    spark: SparkSession, step: StepDeclaration, *, frame: DataFrame, branch: str, there: frozenset[Parts] = frozenset()
) -> TablePreparation:
    """Do to the step's table what its rows need, and tell what was done. Raises as `preparation` does."""
    found = preparation(spark, step, frame=frame, branch=branch, there=there)
    for statement in found.statements:
        spark.sql(statement)
    return found


def columns_of(step: StepDeclaration, frame: DataFrame) -> StructType:
    """The columns that the step's table has for rows of `frame`: those of the query, and a history's own three."""
    if step.write.mode is not WriteMode.HISTORY:
        return frame.schema
    write = step.write
    taken = {each.lower() for each in frame.columns} & {
        each.lower() for each in (write.valid_from, write.valid_to, write.current)
    }
    if taken:
        raise BadRequest(
            f"Step {step.name}: the query has a column {min(taken)!r}, which its history makes itself. Give it another "
            "name in the query, or name the history's with valid_from, valid_to, current."
        )
    when = TimestampType() if write.as_of is None else frame.select(f.expr(write.as_of)).schema.fields[0].dataType
    own = [
        StructField(write.valid_from, when),
        StructField(write.valid_to, when),
        StructField(write.current, BooleanType()),
    ]
    return StructType([*frame.schema.fields, *own])


def literal(text: str) -> str:
    """A string as SQL writes it; `${` would be replaced by Spark, in literals also."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("${", "\\u0024{")
    return f"'{escaped}'"


def _check_columns(step: StepDeclaration, wanted: StructType) -> None:
    names = {each.lower() for each in wanted.names}
    write = step.write
    if write.mode in {WriteMode.MERGE, WriteMode.HISTORY} and not write.keys:
        raise BadRequest(
            f"Step {step.name}: {write.mode.value} needs `keys`: the columns that tell one row from another."
        )
    if write.mode is WriteMode.PARTITIONS and not step.partition:
        raise BadRequest(
            f"Step {step.name}: `partitions` replaces partitions, and none are declared. Write `partition:`."
        )
    told = {"keys": write.keys, "tracked": write.tracked, "columns": tuple(each.name for each in step.columns)}
    for what, columns in told.items():
        for name in columns:
            if name.lower() not in names and name.partition(".")[0].lower() not in names:
                raise BadRequest(
                    f"Step {step.name}: `{what}` names {name!r}, which the query does not give. It gives "
                    f"{', '.join(wanted.names)}."
                )


def _check_layout(spark: SparkSession, step: StepDeclaration, *, found: TableMetadata) -> None:
    if step.write.mode is not WriteMode.PARTITIONS or found.head() is None:
        return
    name = engine.render_spark(step.table)
    if _partition_changes(step, found) != ((), ()):
        raise BadRequest(
            f"Step {step.name}: {name} is partitioned otherwise than declared, and `partitions` would leave the rows "
            "of the old partitions beside the new ones. Write the step once with `mode: replace`, or leave `partition` as it was."
        )
    if len(found.partition_specs) > 1:
        specs = {row[0] for row in spark.sql(f"SELECT DISTINCT spec_id FROM {name}.files").collect()}
        if specs - {found.default_spec_id}:
            raise BadRequest(
                f"Step {step.name}: {name} has rows from before its partitioning was changed, which `partitions` would "
                "leave beside the new ones. Write the step once with `mode: replace`."
            )


def _allowed_drops(
    step: StepDeclaration, changes: ColumnChanges, *, found: TableMetadata
) -> tuple[tuple[str, ...], ...]:
    allowed = {each.lower() for each in step.allowed.drop}
    refused = [path for path in changes.missing if dotted_path(path).lower() not in allowed]
    if refused:
        names = ", ".join(map(dotted_path, refused))
        raise BadRequest(
            f"Step {step.name}: the table has {names}, which the query does not give (any more). Give it in the query "
            f"(a renamed column is a new one); or, to drop it with its values, write `allow: {{drop: [{names}]}}`."
        )
    used = {each.column for each in partition_of(found)} | {each.term.column for each in sort_of(found)}
    for path in changes.missing:
        if any(each[: len(path)] == path for each in used):
            raise BadRequest(
                f"Step {step.name}: {dotted_path(path)} can't be dropped: the table is partitioned or sorted by it."
            )
    return changes.missing


def _check_lossy(step: StepDeclaration, changes: ColumnChanges) -> None:
    allowed = {each.lower() for each in step.allowed.narrow}
    for each in changes.lossy:
        if dotted_path(each.path).lower() not in allowed:
            raise BadRequest(
                f"Step {step.name}: {dotted_path(each.path)} is {ddl(each.old)} in the table and {ddl(each.new)} in the query, "
                f"whose values need not fit. Cast it in the query; or, to have them cast, write "
                f"`allow: {{narrow: [{dotted_path(each.path)}]}}`."
            )


def _making(step: StepDeclaration, wanted: StructType, *, branch: str, there: frozenset[Parts]) -> Iterator[str]:
    for length in range(2, len(step.table)):
        if step.table[:length] in there:
            continue  # it was there: somebody has renamed or dropped it since, if the table cannot be made now
        yield f"CREATE NAMESPACE IF NOT EXISTS {engine.render_spark(step.table[:length])}"
    comments = _comments(step)
    columns = [_column(each, comments.get((each.name.lower(),))) for each in wanted.fields]
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
    told = "" if comment is None else f" COMMENT {literal(comment)}"
    return f"{quote_column(column.name)} {ddl(column.dataType)}{told}"


def _evolving(step: StepDeclaration, changes: ColumnChanges, *, have: StructType) -> Iterator[str]:
    name = engine.render_spark(step.table)
    for added in changes.added:
        yield f"ALTER TABLE {name} ADD COLUMN {engine.render_spark(added.path)} {ddl(added.type)}"
    for widened in changes.widened:
        yield f"ALTER TABLE {name} ALTER COLUMN {engine.render_spark(widened.path)} TYPE {ddl(widened.new)}"
    required = {each.name for each in have.fields if not each.nullable}
    for path in changes.missing:
        if len(path) == 1 and path[0] in required:
            yield f"ALTER TABLE {name} ALTER COLUMN {quote_column(path[0])} DROP NOT NULL"


def _dressing(step: StepDeclaration, found: TableMetadata) -> Iterator[str]:
    """Layout, properties and comments, as far as they are not as declared."""
    name = engine.render_spark(step.table)
    properties = {key: value for key, value in step.properties.items() if _property(found, key) != value}
    if step.comment is not None and found.properties.get("comment") != step.comment:
        properties["comment"] = step.comment
    if properties:
        yield f"ALTER TABLE {name} SET TBLPROPERTIES ({_pairs(properties)})"
    docs = column_docs(found)
    for path, comment in _comments(step).items():
        if docs.get(path) != comment:
            yield f"ALTER TABLE {name} ALTER COLUMN {engine.render_spark(path)} COMMENT {literal(comment)}"
    added, dropped = _partition_changes(step, found)
    yield from (f"ALTER TABLE {name} DROP PARTITION FIELD {each}" for each in dropped)
    yield from (f"ALTER TABLE {name} ADD PARTITION FIELD {each}" for each in added)
    if step.sort and tuple(map(sort_term, step.sort)) != sort_of(found):
        yield _sorting(step)


def _partition_changes(step: StepDeclaration, found: TableMetadata) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Fields to add and to drop; a step that declares none leaves the table's."""
    if not step.partition:
        return (), ()
    wanted, have = tuple(map(partition_term, step.partition)), partition_of(found)
    added = tuple(each.sql() for each in wanted if not any(same_term(each, old) for old in have))
    dropped = tuple(old.sql() for old in have if not any(same_term(old, each) for each in wanted))
    return added, dropped


def _sorting(step: StepDeclaration) -> str:
    return f"ALTER TABLE {engine.render_spark(step.table)} WRITE ORDERED BY {', '.join(sort_term(each).sql() for each in step.sort)}"


def _comments(step: StepDeclaration) -> dict[Parts, str]:
    return {tuple(each.name.lower().split(".")): each.comment for each in step.columns if each.comment is not None}


def _property(found: TableMetadata, key: str) -> str | None:
    return str(found.format_version) if key == "format-version" else found.properties.get(key)


def _pairs(values: Mapping[str, str]) -> str:
    return ", ".join(f"{literal(key)}={literal(value)}" for key, value in values.items())
