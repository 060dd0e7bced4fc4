# SPDX-License-Identifier: Apache-2.0
"""Steps of a nesting migration, inside their transactions: each is a batch that also records its progress.

`nesting` decides which caller may run a step. This module defines the states of a migration, and the batch of each
state. Namespaces are found by id; one that was renamed, moved or dropped since the plan is left unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final, NamedTuple, Protocol, cast

import msgspec

from limnos.model.entities import Node
from limnos.model.errors import BadRequest, NotFound
from limnos.model.kinds import Kind
from limnos.model.permits import Permit
from limnos.model.records import BLANK_NAMESPACE, CatalogRecord
from limnos.names.errors import InvalidName
from limnos.names.parts import PART_BYTES_MAX, Levels, check_part, check_some_levels, quote_for_message
from limnos.services.catalog.nested_namespaces import refuse_nesting_change, separator_in_names_error
from limnos.services.request.catalog_traits import NESTED, is_nested
from limnos.store.objects.nesting import LEFT, PLANNED, RENAMED, NameChangeRow, NameMigration
from limnos.store.objects.nesting import NESTED as ON_PATH
from limnos.store.tx import Tx

BATCH: Final = 500
"""The number of names that one transaction changes."""
NUMBER_BYTES: Final = 12
SWITCHES: Final = ("switching", "unswitching")
"""States whose next step writes the catalog's own record, which belongs to the metalake's zone."""
_IDLE_STATES: Final = ("planned", "migrated")
"""States in which no migration is running."""


class NestingGoal(NamedTuple):
    """A goal of a migration: its final state `end`, its first state `entry`, the states from which it can begin, and
    its intermediate states.
    """

    end: str
    entry: str | None
    after: tuple[str, ...]
    way: tuple[str, ...]

    def is_reachable_from(self, migration: NameMigration) -> bool:
        """Return whether a running migration leads to this goal. The migration may still have to plan names that were
        created since.
        """
        return migration.state in self.way or (
            migration.state == "planning" and migration.goes_on == (self.end == "migrated")
        )


GOALS: Final[Mapping[str, NestingGoal]] = {
    "planned": NestingGoal("planned", None, (), ()),
    "migrated": NestingGoal("migrated", "renaming", ("planned",), ("renaming", "switching", "nesting")),
    "undone": NestingGoal(
        "planned",
        "unnesting",
        ("renaming", "switching", "nesting", "migrated"),
        ("unnesting", "unswitching", "unrenaming"),
    ),
}


class NestingStep(msgspec.Struct, frozen=True, kw_only=True):
    """The command to execute the next batch towards a goal. `separator` is the server's; `owner_id` owns parents that
    the batch creates.
    """

    catalog: Node
    to: str
    space: str
    owner_id: int | None
    separator: str


class NestingBegin(msgspec.Struct, frozen=True):
    """The command to plan the renames of the namespaces whose names contain a separator."""

    step: NestingStep
    separator: str
    replacement: str
    nests: bool


class NestingEnd(msgspec.Struct, frozen=True):
    """The command to delete the plan and the record by which it could be undone."""

    catalog: Node


class NestingProgress(NamedTuple):
    """The progress of a migration: its state, and the counts of all, renamed, nested and remaining names."""

    migration: NameMigration
    total: int
    renamed: int
    nested: int
    left: int

    def is_done(self, to: str) -> bool:
        """Return whether the migration has reached a goal."""
        return self.migration.state == GOALS[to].end


def progress_of(migration: NameMigration, counts: Mapping[int, int]) -> NestingProgress:
    """Return the progress of a migration from the count of names at each step."""
    renamed, nested, left = (counts.get(step, 0) for step in (RENAMED, ON_PATH, LEFT))
    return NestingProgress(migration=migration, total=sum(counts.values()), renamed=renamed, nested=nested, left=left)


def no_plan(catalog: Node) -> NotFound:
    """Return the error for a missing plan, with advice to run the command that creates a plan."""
    return NotFound(
        f"No change of names is planned for catalog {catalog.name}: plan one with 'limnos names plan {catalog.name}'",
        kind="name change",
    )


def nesting_begin(tx: Tx, permit: Permit[NestingBegin]) -> NestingProgress:
    """Store a new migration plan, which replaces an older one, with the first batch of its names.

    Raises BadRequest if a migration runs or could be undone.
    """
    command = permit.command
    node = tx.nodes.confirm(command.step.catalog)
    migration = tx.nesting.read(node.id)
    if migration is not None and (migration.state not in ("planned", "planning") or migration.goes_on):
        raise BadRequest(
            f"Names of catalog {node.name} were changed or are being changed ({migration.state}): first undo that with"
            f" 'limnos names undo {node.name}', or confirm it with 'limnos names confirm {node.name}'"
        )
    tx.nesting.begin(node.id, separator=command.separator, replacement=command.replacement, nests=command.nests)
    return nesting_batch(tx, permit.about(command.step))


def nesting_end(tx: Tx, permit: Permit[NestingEnd]) -> None:
    """Delete the plan. Raises NotFound without a plan, BadRequest while a migration runs."""
    node = tx.nodes.confirm(permit.command.catalog)
    migration = tx.nesting.read(node.id)
    if migration is None:
        raise no_plan(node)
    if migration.state not in (*_IDLE_STATES, "planning") or migration.goes_on:
        raise BadRequest(
            f"Names of catalog {node.name} are being changed ({migration.state}): complete it with 'limnos names"
            f" migrate {node.name}', or undo it"
        )
    tx.nesting.end(node.id)


def nesting_batch(tx: Tx, permit: Permit[NestingStep]) -> NestingProgress:
    """Execute one batch towards the goal, and record the progress. Raises as `_enter_goal`."""
    command = permit.command
    node = tx.nodes.confirm(command.catalog)
    migration = _enter_goal(tx, node, command=command)
    if migration.state in _BATCHES and migration.state != GOALS[command.to].end:
        _BATCHES[migration.state](tx, migration, command=command)
    return _reach_goal(tx, node)


def nesting_switch(tx: Tx, permit: Permit[NestingStep]) -> NestingProgress:
    """Switch the catalog's namespaces to nested or back to flat. Names created since the plan are planned first. Raises
    as `_enter_goal`, and InvalidName or BadRequest if a name or namespace prevents the change.
    """
    command = permit.command
    node = tx.nodes.confirm(command.catalog)
    migration = _enter_goal(tx, node, command=command)
    if migration.state in SWITCHES:  # another caller may have done it already
        _switch(tx, node, command=command, migration=migration)
    return _reach_goal(tx, node)


def _enter_goal(tx: Tx, node: Node, *, command: NestingStep) -> NameMigration:
    """Start the migration towards the goal if it has not started yet, and return it in its new state.

    Raises NotFound without a plan, BadRequest if the goal cannot be reached from the present state.
    """
    migration = tx.nesting.read(node.id)
    if migration is None:
        raise no_plan(node)
    goal = GOALS[command.to]
    if goal.entry is not None and migration.state in goal.after:
        if command.to == "undone":
            _refuse_unspellable(node, migration, separator=command.separator)
        tx.nesting.enter(node.id, goal.entry)
        return migration._replace(state=goal.entry)
    if migration.state != goal.end and not goal.is_reachable_from(migration):
        raise BadRequest(
            f"Names of catalog {node.name} cannot be {command.to} now: their change is {migration.state}. See 'limnos"
            f" names show {node.name}'"
        )
    return migration


def _refuse_unspellable(node: Node, migration: NameMigration, *, separator: str) -> None:
    """Raise BadRequest if names with the server's present separator would be restored while namespaces nest."""
    if is_nested(cast("CatalogRecord", node.record)) and not migration.nests and migration.separator == separator:
        raise BadRequest(
            f"The old names contain {quote_for_message(separator)}, the present separator of this server: they would be"
            " read as several levels. Start it with another separator to undo this"
        )


def _reach_goal(tx: Tx, node: Node) -> NestingProgress:
    migration = tx.nesting.read(node.id)
    if migration is None:
        raise no_plan(node)
    return progress_of(migration, tx.nesting.counts(node.id))


def _switch(tx: Tx, node: Node, *, command: NestingStep, migration: NameMigration) -> None:
    record = cast("CatalogRecord", node.record)
    after = migration.state == "switching"
    come = tx.nesting.conflicts(node.id, command.separator, after=0, limit=1) if after else []
    if come and command.separator != migration.separator:
        raise separator_in_names_error(node.name, command.separator, names=[each.name for each in come])
    if come:
        tx.nesting.enter(node.id, "planning", goes_on=True)
        return
    refuse_nesting_change(tx, node, before=is_nested(record), after=after, separator=command.separator)
    properties = {**record.properties, NESTED: "true" if after else "false"}
    tx.nodes.write_record(node, replace(record, properties=properties), moves_access=True)
    tx.nesting.enter(node.id, "nesting" if after else "unrenaming")


def _plan(tx: Tx, migration: NameMigration, *, command: NestingStep) -> None:
    catalog = command.catalog
    conflicts = tx.nesting.conflicts(catalog.id, migration.separator, after=migration.planned_to, limit=BATCH)
    for each in conflicts:
        path = _path(each.name, migration.separator) if migration.nests and each.parent_id == catalog.id else None
        expected = _shorten_name(each.name.replace(migration.separator, migration.replacement))
        name = _free_name(tx, command, node_id=each.node_id, parent_id=each.parent_id, base_name=expected)
        tx.nesting.add(catalog.id, each, new_name=name, path=path)
    if len(conflicts) == BATCH:
        tx.nesting.enter(catalog.id, "planning", goes_on=migration.goes_on, planned_to=conflicts[-1].node_id)
    else:
        tx.nesting.enter(catalog.id, "renaming" if migration.goes_on else "planned")


def _shorten_name(name: str) -> str:
    """Truncate a name so that a numeric suffix can be appended within the maximum length."""
    return name.encode()[: PART_BYTES_MAX - NUMBER_BYTES].decode(errors="ignore")


def _path(name: str, separator: str) -> Levels | None:
    """Split a name at the separator into a path; None if a part is not a valid name."""
    parts = name.split(separator)
    try:
        return check_some_levels([check_part(part) for part in parts])
    except InvalidName:
        return None


def _free_name(tx: Tx, command: NestingStep, *, node_id: int, parent_id: int, base_name: str) -> str:
    """Return a free name: `base_name`, or `base_name` with a numeric suffix such as `_2`.

    Names that other renames of the plan will use are not free.
    """
    name, number = base_name, 1
    while tx.nesting.is_taken(command.catalog.id, node_id, parent_id=parent_id, space=command.space, name=name):
        number += 1
        name = f"{base_name}_{number}"
    return name


def _rename(tx: Tx, migration: NameMigration, *, command: NestingStep) -> None:
    rows = tx.nesting.changes(command.catalog.id, step=PLANNED, limit=BATCH)
    for row in rows:
        node = _live(tx, row, name=row.old_name, parent_id=row.parent_id)
        if node is None:
            tx.nesting.put(command.catalog.id, row._replace(step=LEFT))
            continue
        name = _free_name(tx, command, node_id=row.node_id, parent_id=row.parent_id, base_name=row.new_name)
        tx.nodes.move(node, parent_id=row.parent_id, name=name, moves_access=True)
        tx.nesting.put(command.catalog.id, row._replace(step=RENAMED, new_name=name))
    if len(rows) < BATCH:
        tx.nesting.enter(command.catalog.id, "switching" if migration.nests else "migrated")


def _nest(tx: Tx, migration: NameMigration, *, command: NestingStep) -> None:
    del migration
    rows = tx.nesting.changes(command.catalog.id, step=RENAMED, limit=BATCH, with_path=True)
    for row in rows:
        node = _live(tx, row, name=row.new_name, parent_id=row.parent_id)
        if node is None:
            tx.nesting.put(command.catalog.id, row._replace(step=LEFT))
            continue
        into = _create_parents(tx, cast("Levels", row.path), command=command)
        if into is None:  # another object has its name or the name of one of its parents: it keeps its parent
            tx.nesting.put(command.catalog.id, row._replace(step=ON_PATH, into_id=row.parent_id))
            continue
        tx.nodes.move(node, parent_id=into, name=cast("Levels", row.path)[-1], moves_access=True)
        tx.nesting.put(command.catalog.id, row._replace(step=ON_PATH, into_id=into))
    if len(rows) < BATCH:
        tx.nesting.enter(command.catalog.id, "migrated")


def _create_parents(tx: Tx, path: Levels, *, command: NestingStep) -> int | None:
    """Create the missing parents of a path, and return the id of the last parent; None if another object has one of the
    names.
    """
    at = command.catalog.id
    for depth, name in enumerate(path, 1):
        node = tx.nodes.find(at, command.space, name)
        if depth == len(path):
            return at if node is None else None
        if node is not None and node.kind is not Kind.NAMESPACE:
            return None
        if node is None:
            node = tx.nodes.create(
                kind=Kind.NAMESPACE,
                space=command.space,
                name=name,
                parent_id=at,
                zone=command.catalog.id,
                record=BLANK_NAMESPACE,
                implicit=True,
                owner_id=command.owner_id,
            )
        at = node.id
    return None


def _unnest(tx: Tx, migration: NameMigration, *, command: NestingStep) -> None:
    rows = tx.nesting.changes(command.catalog.id, step=ON_PATH, limit=BATCH)
    for row in rows:
        node = _live(tx, row, name=None, parent_id=cast("int", row.into_id))
        if node is None:
            tx.nesting.put(command.catalog.id, row._replace(step=LEFT))
            continue
        name = row.new_name
        if node.parent_id != row.parent_id:
            name = _free_name(tx, command, node_id=row.node_id, parent_id=row.parent_id, base_name=row.new_name)
            tx.nodes.move(node, parent_id=row.parent_id, name=name, moves_access=True)
            _drop_empty(tx, node.parent_id, catalog_id=command.catalog.id)
        tx.nesting.put(command.catalog.id, row._replace(step=RENAMED, new_name=name, into_id=None))
    if len(rows) < BATCH:
        tx.nesting.enter(command.catalog.id, "unswitching" if migration.nests else "unrenaming")


def _drop_empty(tx: Tx, node_id: int, *, catalog_id: int) -> None:
    """Drop a namespace that the migration created as a parent, and its parents of that kind, if they are empty now."""
    while node_id != catalog_id:
        node = tx.nodes.by_id(node_id)
        if not node.implicit or tx.nodes.children(node_id, limit=1):
            return
        tx.nodes.drop(node)
        node_id = node.parent_id


def _unrename(tx: Tx, migration: NameMigration, *, command: NestingStep) -> None:
    del migration
    rows = tx.nesting.changes(command.catalog.id, step=RENAMED, limit=BATCH)
    for row in rows:
        node = _live(tx, row, name=row.new_name, parent_id=row.parent_id)
        if node is None or tx.nodes.find(row.parent_id, command.space, row.old_name) is not None:
            tx.nesting.put(command.catalog.id, row._replace(step=LEFT))
            continue
        tx.nodes.move(node, parent_id=row.parent_id, name=row.old_name, moves_access=True)
        tx.nesting.put(command.catalog.id, row._replace(step=PLANNED))
    if len(rows) < BATCH:
        tx.nesting.enter(command.catalog.id, "planned")


class _NestingBatch(Protocol):
    def __call__(self, tx: Tx, migration: NameMigration, *, command: NestingStep) -> None: ...


_BATCHES: Final[Mapping[str, _NestingBatch]] = {
    "planning": _plan,
    "renaming": _rename,
    "nesting": _nest,
    "unnesting": _unnest,
    "unrenaming": _unrename,
}


def _live(tx: Tx, row: NameChangeRow, *, name: str | None, parent_id: int) -> Node | None:
    """Return the namespace of a planned rename if it still has this parent and name, else None. A `name` of None
    accepts any name.
    """
    node = tx.nodes.live(row.node_id)
    is_there = node is not None and node.parent_id == parent_id and name in (None, node.name)
    return node if is_there else None
