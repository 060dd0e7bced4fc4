# SPDX-License-Identifier: Apache-2.0
"""Preparation of a step's Lance table: declare it, and compare its columns with the step's rows.

The table is declared with versions that the server keeps, because only those can be committed with a run's other
tables. Changes that lose values need the step's permission, as for Iceberg tables. Must not know how rows are written.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pyspark.sql.types import StructField, StructType

from limnos.client.errors import ConflictError, NotFoundError
from limnos.model.errors import BadRequest, UnsupportedOperation
from limnos.names import display
from limnos.pipeline.context import MADE_BY
from limnos.pipeline.declaration import StepDeclaration, WriteMode
from limnos.pipeline.declared_values import Parts
from limnos.pipeline.engine.branches import run_of
from limnos.pipeline.engine.changes import changes_between, ddl, dotted_path, require_single_names
from limnos.pipeline.engine.lance.partition_terms import require_partition
from limnos.pipeline.engine.lance.staging import StagedTable, open_staged
from limnos.pipeline.failures import OutputGone
from limnos.pipeline.lance_outputs import STORAGE_MANAGED
from limnos.spark.lance.types import arrow_schema_of, check_append, spark_schema_of

if TYPE_CHECKING:
    import pyarrow as pa

    from limnos.client import Client
    from limnos.client.values import LanceTable
    from limnos.spark.lance.server_access import ServerAccess

MANAGED: Final = "managed_versioning"
_CREATE, _OVERWRITE, _APPEND = "create", "overwrite", "append"


@dataclass(frozen=True, slots=True, kw_only=True)
class LanceTarget:
    """A step's Lance table, ready to be written."""

    table: StagedTable
    schema: pa.Schema
    mode: str
    """How Lance's library writes fragments: `create` for a table without data, `overwrite` for rows with other columns,
    `append` for rows with the table's columns.
    """
    is_new: bool
    """Whether the run declared the table."""

    @property
    def replaces(self) -> bool:
        """Whether the staged version has the written rows and no others."""
        return self.mode != _APPEND


def prepare_target(
    access: ServerAccess,
    step: StepDeclaration,
    *,
    columns: StructType,
    branch: str,
    existing_tables: frozenset[Parts],
) -> LanceTarget:
    """Find or declare the step's table, and compare its columns with those of the rows.

    `branch` is the name of the run's branches, from which a new table gets its property. Tables and namespaces in
    `existing_tables` are never created.

    Raises:
        OutputGone: A table in `existing_tables` is missing.
        UnsupportedOperation: The storage keeps the table's versions.
        BadRequest: The rows do not fit, or a change of columns is not allowed by the step.
    """
    require_single_names(columns)
    if step.write.mode is WriteMode.PARTITIONS:
        require_partition(step, columns)
    with access.client() as client:
        table = _find(client, step.table)
        if table is None and step.table in existing_tables:
            raise OutputGone(f"{display.render(step.table)} existed when the run began and no longer exists")
        table = table or _declare(client, step, branch=branch, existing_tables=existing_tables)
    if not table.managed:
        raise UnsupportedOperation(f"Step {step.name}: {display.render(step.table)} {STORAGE_MANAGED}")
    staged_dataset = open_staged(access, table)
    is_new = table.version is None and table.properties.get(MADE_BY) == run_of(branch)
    vectors = dict(step.vectors) | ({} if step.embed is None else {step.embed.into: step.embed.dimension})
    if staged_dataset.dataset is None:
        return LanceTarget(
            table=staged_dataset, schema=arrow_schema_of(columns, vectors=vectors), mode=_CREATE, is_new=is_new
        )
    schema = staged_dataset.dataset.schema
    if step.write.mode is not WriteMode.REPLACE:
        fitting = check_append(as_spelled(columns, schema), schema)
        return LanceTarget(table=staged_dataset, schema=fitting, mode=_APPEND, is_new=is_new)
    _require_allowed(step, have=spark_schema_of(schema), columns=columns)
    return LanceTarget(
        table=staged_dataset, schema=arrow_schema_of(columns, vectors=vectors), mode=_OVERWRITE, is_new=is_new
    )


def as_spelled(columns: StructType, schema: pa.Schema) -> StructType:
    """Return the columns of rows with the names of the table's columns from which they differ by case alone."""
    spelled = {name.lower(): name for name in schema.names}
    return StructType(
        [
            each if each.name in schema.names else _rename_field(each, spelled.get(each.name.lower(), each.name))
            for each in columns.fields
        ]
    )


def _rename_field(column: StructField, name: str) -> StructField:
    return StructField(name, column.dataType, column.nullable, column.metadata)


def _find(client: Client, table: Parts) -> LanceTable | None:
    try:
        return client.lance.load(table)
    except NotFoundError:
        return None


def _declare(client: Client, step: StepDeclaration, *, branch: str, existing_tables: frozenset[Parts]) -> LanceTable:
    """Declare the table, and create its missing namespaces. A table that another client has just declared is used."""
    for length in range(2, len(step.table)):
        if step.table[:length] not in existing_tables:
            _create_namespace(client, step.table[:length])
    own_properties: Mapping[str, str] = {} if step.comment is None else {"comment": step.comment}
    properties = {**own_properties, **step.properties, MANAGED: "true", MADE_BY: run_of(branch)}
    with suppress(ConflictError):
        client.lance.declare(step.table, properties=properties)
    return client.lance.load(step.table)


def _create_namespace(client: Client, namespace: Parts) -> None:
    with suppress(ConflictError):
        client.namespaces.create(namespace)


def _require_allowed(step: StepDeclaration, *, have: StructType, columns: StructType) -> None:
    """Raise BadRequest if replacing the table would drop or narrow a column without the step's permission."""
    changes = changes_between(have, columns)
    drops = {each.lower() for each in step.allowed.drop}
    if lost := [dotted_path(path) for path in changes.missing if dotted_path(path).lower() not in drops]:
        names = ", ".join(lost)
        raise BadRequest(
            f"Step {step.name}: the table has {names}, which the query does not return (any more). Add it to the query "
            f"(a renamed column is a new one); or, to drop it with its values, write `allow: {{drop: [{names}]}}`."
        )
    narrow = {each.lower() for each in step.allowed.narrow}
    for each in changes.lossy:
        if dotted_path(each.path).lower() not in narrow:
            raise BadRequest(
                f"Step {step.name}: {dotted_path(each.path)} is {ddl(each.old)} in the table and {ddl(each.new)} in the"
                " query. Cast it in the query; or, to change its type, write `allow: {narrow:"
                f" [{dotted_path(each.path)}]}}`."
            )
