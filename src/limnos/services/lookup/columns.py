# SPDX-License-Identifier: Apache-2.0
"""Columns by their full names: finds columns as the targets of tags, policies and statistics.

A column has no row, owner or grants of its own. It is identified by its table's id and the column id of the table's
format. So attachments survive renames of column and table, are hidden while the table lacks the column, and never apply
to another column of the same name. A caller who may load the table may see its columns.
"""

from __future__ import annotations

from typing import NamedTuple

from limnos.access.actions import Action
from limnos.formats.iceberg.field_ids import field_ids_of
from limnos.model.decisions import ChainLink, SecurableChain
from limnos.model.entities import Node
from limnos.model.errors import NotFound, UnsupportedOperation
from limnos.model.kinds import Kind
from limnos.names import fullname
from limnos.names.fullname import FullName
from limnos.services.request.name_codecs import codec_of
from limnos.services.request.request_view import RequestView
from limnos.services.request.table_formats import ICEBERG, format_of
from limnos.view.cache_miss import for_each


class ColumnTarget(NamedTuple):
    """An existing column: its table, the column with its ancestors, and its id in the table's format."""

    table: Node
    chain: SecurableChain
    field_id: int


def column_require(request_view: RequestView, full_name: str, *, action: Action) -> ColumnTarget:
    """Find a column for a caller who may perform the action on it, or on its table.

    A missing column, also one of a missing table, is refused with the same message as an existing one. Raises NotFound
    if it does not exist, PermissionDenied without the right, UnsupportedOperation for a table that is not an Iceberg
    table or a column without a field id, InvalidName for an ambiguous name.
    """
    codec = codec_of(request_view)
    readings = list(fullname.candidates(full_name, fullname.COLUMN, codec=codec))
    columns = for_each(readings, lambda reading: _find_column(request_view, reading))
    targets = {reading: column for reading, column in zip(readings, columns, strict=True) if column is not None}
    if len(targets) > 1:  # only callers who may know the columns learn that a name is ambiguous
        allowed_targets = {
            reading: each
            for reading, each in targets.items()
            if request_view.decide(action, _action_chain(action, each.chain)).allowed
        }
        targets = allowed_targets or dict([next(iter(targets.items()))])
    chosen = fullname.choose(full_name, targets, codec=codec)
    column = None if chosen is None else targets[chosen]
    chain = _missing_chain(request_view, readings) if column is None else column.chain
    request_view.require(action, _action_chain(action, chain))
    if format_of(request_view) != ICEBERG:
        raise UnsupportedOperation(
            f"Only columns of Iceberg tables can be named here, and catalog {request_view.catalog.name} has none: name"
            " the table"
        )
    if column is None:
        raise NotFound(f"Column {full_name} does not exist", kind="object")
    if column.field_id <= 0:
        raise UnsupportedOperation(f"Column {full_name} has no id in its table's schema: name the table")
    return column


def _action_chain(action: Action, chain: SecurableChain) -> SecurableChain:
    """Return the object of the action with its ancestors: the column, or its table."""
    return chain if Kind.COLUMN in action.kinds else chain[1:]


def field_ids(request_view: RequestView, table: Node) -> dict[str, int]:
    """Return the ids of a table's current columns by name. Raises CacheMiss if the table's document is not cached."""
    return field_ids_of(request_view.document(table.id).body)


def _find_column(request_view: RequestView, reading: FullName) -> ColumnTarget | None:
    if format_of(request_view) != ICEBERG:
        return None
    table, chain = _table(request_view, reading)
    if table is None or table.kind is not Kind.TABLE:
        return None
    name = reading.column or ""
    field_id = field_ids(request_view, table).get(name)
    return None if field_id is None else ColumnTarget(table, (ChainLink.absent(Kind.COLUMN, name), *chain), field_id)


def _table(request_view: RequestView, reading: FullName) -> tuple[Node | None, SecurableChain]:
    return request_view.find((*reading.levels, reading.name or ""), Kind.TABLE)


def _missing_chain(request_view: RequestView, readings: list[FullName]) -> SecurableChain:
    """Return a missing column with its ancestors: below its table, if an interpretation of the full name has an
    existing table.
    """
    for reading in readings:
        table, chain = _table(request_view, reading)
        if table is not None and table.kind is Kind.TABLE:
            return (ChainLink.absent(Kind.COLUMN, reading.column or ""), *chain)
    first = readings[0]
    node, chain = _table(request_view, first)
    above = chain if node is None else chain[1:]  # the name may belong to a view instead of a table
    return (ChainLink.absent(Kind.COLUMN, first.column or ""), ChainLink.absent(Kind.TABLE, first.name or ""), *above)
