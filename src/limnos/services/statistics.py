"""Statistics of tables and of their partitions, that engines and people keep beside them: list, update, drop.

May import the rooms below. Knows no wire format. Who may load a table reads them, who may alter it writes them. Only custom ones are taken: the names
of others are kept for what a server might count itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from limnos.access.actions import Action
from limnos.model.entities import Node
from limnos.model.errors import BadRequest, IllegalStatistic, Unsupported
from limnos.model.kinds import Kind
from limnos.services.objects import codec_of, target_require
from limnos.services.shadows import shadowed
from limnos.store.statistics import partition_statistics_read, statistics_read

if TYPE_CHECKING:
    from collections.abc import Iterable

    from limnos.model.permits import Permit
    from limnos.model.statistics import Range, Statistic
    from limnos.services.attachments import On
    from limnos.services.context import Context
    from limnos.services.objects import Target
    from limnos.services.scene import Scene
    from limnos.store.tx import Tx

CUSTOM: Final = "custom-"
NAME_MAX: Final = 256
VALUE_BYTES_MAX: Final = 16 << 10
WRITES_MAX: Final = 10_000
"""Statistics that one request may write or drop."""
READ_MAX: Final = 100_000
"""Statistics of partitions that one answer may hold."""

Value = object


class StatisticsUpdate(msgspec.Struct, frozen=True):
    """Write statistics of a table: partition (empty for the table), name, value as JSON."""

    table: Node
    values: tuple[tuple[str, str, str], ...]


class StatisticsDrop(msgspec.Struct, frozen=True):
    """Drop statistics of a table: partition (empty for the table) and name."""

    table: Node
    names: tuple[tuple[str, str], ...]


def _table(scene: Scene, on: On, *, action: Action) -> Target:
    """Find the table for who may do the action to it. Raises Unsupported for another kind, NotFound, Forbidden."""
    scene.require_in_metalake_use()
    is_table = on.kind is Kind.TABLE
    found = target_require(scene, on.kind, on.full_name, codec_of(scene), action if is_table else Action.METADATA_LOAD)
    if not is_table:
        raise Unsupported(f"Statistics are kept of tables, not of a {on.kind.word}")
    scene.require_in_use()
    return found


def _node(target: Target) -> Node:
    if target.node is None:
        raise Unsupported("Statistics are kept of tables")
    return target.node


@shadowed
async def statistics_list(ctx: Context, on: On) -> list[Statistic]:
    """Return a table's own statistics, by name. Raises NotFound, Forbidden, Unsupported."""
    table = _node(await ctx.read(on.scope, lambda scene: _table(scene, on, action=Action.TABLE_LOAD)))
    return await ctx.look_up(lambda: statistics_read(table.id))


@shadowed
async def partition_statistics_list(ctx: Context, on: On, *, within: Range) -> list[Statistic]:
    """Return the statistics of a range of partitions. Raises BadRequest for no range, or for more than an answer holds."""
    table = _node(await ctx.read(on.scope, lambda scene: _table(scene, on, action=Action.TABLE_LOAD)))
    if within.above is None and within.below is None:
        raise BadRequest("Which partitions are meant: give from, to or both")
    found = await ctx.look_up(lambda: partition_statistics_read(table.id, within, limit=READ_MAX + 1))
    if len(found) > READ_MAX:
        raise BadRequest(f"The range has more than {READ_MAX} statistics: ask for fewer partitions at once")
    return found


async def statistics_update(ctx: Context, on: On, *, values: Iterable[tuple[str, str, Value]]) -> None:
    """Write statistics: partition (empty for the table's own), name, value. Raises IllegalStatistic, BadRequest, NotFound, Forbidden, Unsupported."""
    texts = tuple([(partition, _checked(name), _text(name, value)) for partition, name, value in values])
    _check_count(len(texts))
    await _update(ctx, on, texts=texts)


@shadowed
async def _update(ctx: Context, on: On, *, texts: tuple[tuple[str, str, str], ...]) -> None:
    def decide(scene: Scene) -> Permit[StatisticsUpdate]:
        target = _table(scene, on, action=Action.TABLE_ALTER)
        decision = scene.require(Action.TABLE_ALTER, target.chain)
        return scene.permit(StatisticsUpdate(_node(target), texts), decision)

    await ctx.write(on.scope, decide, statistics_put)


def statistics_put(tx: Tx, permit: Permit[StatisticsUpdate]) -> None:
    """Write the statistics, if the table is still there."""
    tx.statistics.put(tx.nodes.confirm(permit.command.table).id, permit.command.values)


async def statistics_drop(ctx: Context, on: On, *, names: Iterable[tuple[str, str]]) -> bool:
    """Drop statistics by partition and name; says whether any was there. Raises as `statistics_update` does."""
    gone = tuple([(partition, _checked(name)) for partition, name in names])
    _check_count(len(gone))
    return await _drop(ctx, on, gone=gone)


@shadowed
async def _drop(ctx: Context, on: On, *, gone: tuple[tuple[str, str], ...]) -> bool:
    def decide(scene: Scene) -> Permit[StatisticsDrop]:
        target = _table(scene, on, action=Action.TABLE_ALTER)
        decision = scene.require(Action.TABLE_ALTER, target.chain)
        return scene.permit(StatisticsDrop(_node(target), gone), decision)

    return await ctx.write(on.scope, decide, statistics_delete)


def statistics_delete(tx: Tx, permit: Permit[StatisticsDrop]) -> bool:
    """Delete the statistics, if the table is still there."""
    return tx.statistics.delete(tx.nodes.confirm(permit.command.table).id, permit.command.names) > 0


def _check_count(count: int) -> None:
    if not 0 < count <= WRITES_MAX:
        raise BadRequest(f"A request names 1 to {WRITES_MAX} statistics, not {count}")


def _checked(name: str) -> str:
    if not name.startswith(CUSTOM):
        raise IllegalStatistic(f"Statistic {name} is none that you may write: its name must begin with {CUSTOM}")
    if not len(CUSTOM) < len(name) <= NAME_MAX:
        raise IllegalStatistic(f"A statistic's name has something after {CUSTOM}, and {NAME_MAX} characters at most")
    return name


def _text(name: str, value: Value) -> str:
    if value is None:
        raise BadRequest(f"Statistic {name} has no value: give a number, text, boolean, list or object, or drop it")
    text = msgspec.json.encode(value)
    if len(text) > VALUE_BYTES_MAX:
        raise BadRequest(f"The value of statistic {name} has {len(text)} bytes; {VALUE_BYTES_MAX} are taken")
    return text.decode()
