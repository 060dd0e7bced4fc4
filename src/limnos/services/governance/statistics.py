# SPDX-License-Identifier: Apache-2.0
"""Custom statistics of tables, partitions and columns, which clients store: list, update, drop.

Must not know any wire format. Statistics may contain values of rows, such as the bounds of a column or the names of
partitions. So a caller who may read a table's rows may read them, and one who may alter the table may write them.
Clients may write only names with the prefix `custom-`: other names are reserved for statistics of the server itself.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Final, NamedTuple

import msgspec

from limnos.access.actions import Action
from limnos.model.decisions import SecurableChain
from limnos.model.entities import Node
from limnos.model.errors import BadRequest, IllegalStatistic, UnsupportedOperation
from limnos.model.kinds import Kind
from limnos.model.permits import Permit
from limnos.model.statistics import PartitionRange, Statistic
from limnos.services.federation.placeholder_nodes import read_attached_rows, with_placeholders
from limnos.services.lookup.columns import column_require
from limnos.services.lookup.securables import AttachmentTarget, target_require
from limnos.services.request.context import Context
from limnos.services.request.name_codecs import codec_of
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.store.objects.attachments import OWN
from limnos.store.objects.statistics import partition_statistics_read, statistics_read
from limnos.store.tx import Tx

CUSTOM: Final = "custom-"
NAME_MAX: Final = 256
VALUE_BYTES_MAX: Final = 16 << 10
WRITES_MAX: Final = 10_000
"""The maximum number of statistics that one request may write or drop."""
READ_MAX: Final = 100_000
"""The maximum number of statistics of partitions that one response may contain."""

StatisticValue = object


class StatisticsUpdate(msgspec.Struct, frozen=True):
    """The command to write statistics of a table or one of its columns: tuples of partition (empty for the table or
    column), name, and value as JSON.
    """

    table: Node
    field_id: int
    values: tuple[tuple[str, str, str], ...]


class StatisticsDrop(msgspec.Struct, frozen=True):
    """The command to drop statistics of a table or one of its columns: pairs of partition (empty for the table or
    column) and name.
    """

    table: Node
    field_id: int
    names: tuple[tuple[str, str], ...]


class _StatisticsTarget(NamedTuple):
    """The target of statistics: a table, its ancestors, and a column's field id (`OWN` for the table)."""

    table: Node
    chain: SecurableChain
    field_id: int


def _find_statistics_target(request_view: RequestView, on: AttachmentTarget, *, action: Action) -> _StatisticsTarget:
    """Find the table or column, for a caller who may do the action on the table.

    Raises UnsupportedOperation for another kind, NotFound, NotInUse, PermissionDenied.
    """
    request_view.require_in_metalake_use()
    if on.kind is Kind.COLUMN:
        column = column_require(request_view, on.full_name, action=action)
        request_view.require_in_use()
        return _StatisticsTarget(column.table, column.chain[1:], column.field_id)
    is_table = on.kind is Kind.TABLE
    target = target_require(
        request_view, on.kind, on.full_name, codec_of(request_view), action if is_table else Action.METADATA_LOAD
    )
    if not is_table or target.node is None:
        raise UnsupportedOperation(f"Statistics are for tables and columns, not for a {on.kind.word}")
    request_view.require_in_use()
    return _StatisticsTarget(target.node, target.chain, OWN)


def _refuse_column(on: AttachmentTarget) -> None:
    if on.kind is Kind.COLUMN:
        raise UnsupportedOperation("A column has no partitions: name the table")


async def _read_statistics(
    ctx: Context, on: AttachmentTarget, *, work: Callable[[_StatisticsTarget | None], Awaitable[list[Statistic]]]
) -> list[Statistic]:
    """Read statistics of the table or column, for a caller who may read the table's rows before and after the read.
    `work` gets None for an external table without placeholder node.
    """

    def decide(request_view: RequestView) -> _StatisticsTarget | None:
        return _find_statistics_target(request_view, on, action=Action.TABLE_READ)

    def require_catalog_in_use(request_view: RequestView, _: SecurableChain) -> None:
        request_view.require_in_use()

    _, statistics = await read_attached_rows(
        ctx,
        on.scope,
        reader=decide,
        otherwise=require_catalog_in_use,
        work=work,
        identity=lambda target: None if target is None else (target.table.id, target.field_id),
    )
    return statistics


async def statistics_list(ctx: Context, on: AttachmentTarget) -> list[Statistic]:
    """Return a table's or column's own statistics, by name. Raises NotFound, NotInUse, PermissionDenied,
    UnsupportedOperation for another kind of object.
    """

    async def read(target: _StatisticsTarget | None) -> list[Statistic]:
        if target is None:
            return []
        return await ctx.look_up(lambda: statistics_read(target.table.id, field_id=target.field_id))

    return await _read_statistics(ctx, on, work=read)


async def partition_statistics_list(ctx: Context, on: AttachmentTarget, *, within: PartitionRange) -> list[Statistic]:
    """Return the statistics of a range of partitions.

    Raises BadRequest without a range or if the result exceeds the size of a response, UnsupportedOperation for a
    column, and otherwise as `statistics_list`.
    """

    async def read(target: _StatisticsTarget | None) -> list[Statistic]:
        _refuse_column(on)
        if within.above is None and within.below is None:
            raise BadRequest("Name the partitions: give from, to or both")
        if target is None:
            return []
        return await ctx.look_up(lambda: partition_statistics_read(target.table.id, within, limit=READ_MAX + 1))

    statistics = await _read_statistics(ctx, on, work=read)
    if len(statistics) > READ_MAX:
        raise BadRequest(f"The range has more than {READ_MAX} statistics: ask for fewer partitions at once")
    return statistics


async def statistics_update(
    ctx: Context, on: AttachmentTarget, *, values: Iterable[tuple[str, str, StatisticValue]]
) -> None:
    """Write statistics, given as partition (empty for the table's own), name and value.

    Raises IllegalStatistic for a name without the prefix `custom-`, BadRequest for an invalid value or too many,
    NotFound, NotInUse, PermissionDenied, UnsupportedOperation for another kind of object or a column's partition.
    """
    texts = tuple([(partition, _checked_statistic(name), _text(name, value)) for partition, name, value in values])
    _check_count(len(texts))
    await _update(ctx, on, texts=texts)


@with_placeholders
async def _update(ctx: Context, on: AttachmentTarget, *, texts: tuple[tuple[str, str, str], ...]) -> None:
    def decide(request_view: RequestView) -> Permit[StatisticsUpdate]:
        target = _find_statistics_target(request_view, on, action=Action.TABLE_ALTER)
        if any(partition for partition, _, _ in texts):
            _refuse_column(on)
        decision = request_view.require(Action.TABLE_ALTER, target.chain)
        return request_view.permit(StatisticsUpdate(target.table, target.field_id, texts), decision)

    await ctx.write(on.scope, decide, statistics_put)


def statistics_put(tx: Tx, permit: Permit[StatisticsUpdate]) -> None:
    """Write the statistics, if the table still exists."""
    command = permit.command
    tx.statistics.put(tx.nodes.confirm(command.table).id, command.values, field_id=command.field_id)


class StatisticsUpdates(msgspec.Struct, frozen=True):
    """The command to write statistics of several tables of a catalog."""

    updates: tuple[StatisticsUpdate, ...]


async def tables_statistics_update(
    ctx: Context, values: Mapping[AttachmentTarget, Iterable[tuple[str, str, StatisticValue]]]
) -> None:
    """Write statistics of several tables, given for each as partition (empty for the table's own), name and value.

    All names, values and rights are checked before anything is written. The statistics of the tables of one catalog are
    written in one transaction. Raises as `statistics_update`.
    """
    texts = {
        on: tuple([(partition, _checked_statistic(name), _text(name, value)) for partition, name, value in table_texts])
        for on, table_texts in values.items()
    }
    for table_texts in texts.values():
        _check_count(len(table_texts))
    _check_count(sum(map(len, texts.values())))

    def decider(targets: list[AttachmentTarget]) -> Callable[[RequestView], Permit[StatisticsUpdates]]:
        def decide(request_view: RequestView) -> Permit[StatisticsUpdates]:
            tables = [_find_statistics_target(request_view, on, action=Action.TABLE_ALTER) for on in targets]
            decisions = [request_view.require(Action.TABLE_ALTER, table.chain) for table in tables]
            updates = [
                StatisticsUpdate(table.table, table.field_id, texts[on])
                for on, table in zip(targets, tables, strict=True)
            ]
            return request_view.permit(StatisticsUpdates(tuple(updates)), *decisions)

        return decide

    of_scope: dict[RequestScope, list[AttachmentTarget]] = {}
    for on in texts:
        of_scope.setdefault(on.scope, []).append(on)
    deciders = {scope: decider(targets) for scope, targets in of_scope.items()}
    permits = {scope: await ctx.read(scope, decide) for scope, decide in deciders.items()}
    for scope, permit in permits.items():
        await ctx.write(scope, deciders[scope], tables_statistics_put, first=permit)


def tables_statistics_put(tx: Tx, permit: Permit[StatisticsUpdates]) -> None:
    """Write the statistics, if all tables still exist."""
    for each in permit.command.updates:
        tx.statistics.put(tx.nodes.confirm(each.table).id, each.values, field_id=each.field_id)


async def statistics_drop(ctx: Context, on: AttachmentTarget, *, names: Iterable[tuple[str, str]]) -> bool:
    """Drop statistics by partition and name. Returns whether any existed. Raises as `statistics_update`."""
    removed_names = tuple([(partition, _checked_statistic(name)) for partition, name in names])
    _check_count(len(removed_names))
    return await _drop(ctx, on, statistic_names=removed_names)


@with_placeholders
async def _drop(ctx: Context, on: AttachmentTarget, *, statistic_names: tuple[tuple[str, str], ...]) -> bool:
    def decide(request_view: RequestView) -> Permit[StatisticsDrop]:
        target = _find_statistics_target(request_view, on, action=Action.TABLE_ALTER)
        if any(partition for partition, _ in statistic_names):
            _refuse_column(on)
        decision = request_view.require(Action.TABLE_ALTER, target.chain)
        return request_view.permit(StatisticsDrop(target.table, target.field_id, statistic_names), decision)

    return await ctx.write(on.scope, decide, statistics_delete)


def statistics_delete(tx: Tx, permit: Permit[StatisticsDrop]) -> bool:
    """Delete the statistics, if the table still exists. Returns whether any existed."""
    command = permit.command
    return tx.statistics.delete(tx.nodes.confirm(command.table).id, command.names, field_id=command.field_id) > 0


def _check_count(count: int) -> None:
    if not 0 < count <= WRITES_MAX:
        raise BadRequest(f"A request must name 1 to {WRITES_MAX} statistics, not {count}")


def _checked_statistic(name: str) -> str:
    if not name.startswith(CUSTOM):
        raise IllegalStatistic(f"Statistic {name} cannot be written: its name must begin with {CUSTOM}")
    if not len(CUSTOM) < len(name) <= NAME_MAX:
        raise IllegalStatistic(f"A statistic's name must have characters after {CUSTOM}, and at most {NAME_MAX} in all")
    return name


def _text(name: str, value: StatisticValue) -> str:
    if value is None:
        raise BadRequest(f"Statistic {name} has no value: give a number, string, boolean, list or object, or drop it")
    text = msgspec.json.encode(value)
    if len(text) > VALUE_BYTES_MAX:
        raise BadRequest(f"The value of statistic {name} has {len(text)} bytes; at most {VALUE_BYTES_MAX} are allowed")
    return text.decode()
