# SPDX-License-Identifier: Apache-2.0
"""Migration of namespace names that contain the separator: planned, executed in batches and undone, also with
concurrent changes and with many names.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from typing import cast

import pytest

from limnos.model.errors import BadRequest, CannotStart, NotFound, PermissionDenied, UnsupportedOperation
from limnos.model.permits import upkeep_permit
from limnos.model.records import BLANK_NAMESPACE, CatalogRecord, encode
from limnos.names.errors import InvalidName
from limnos.services.catalog import nesting_steps
from limnos.services.catalog.catalogs import catalog_alter, catalog_create
from limnos.services.catalog.namespaces import namespace_drop, namespace_move, namespaces_list
from limnos.services.catalog.nested_namespaces import separator_check
from limnos.services.catalog.nesting import nesting_check, nesting_confirm, nesting_continue, nesting_load, nesting_plan
from limnos.services.catalog.nesting_steps import NestingProgress
from limnos.services.request.property_edits import PropertyEdits
from limnos.services.request.request_scope import RequestScope
from limnos.services.upkeep.trash import NEWEST, trash_list, trash_restore
from limnos.store.objects.nesting import checked_read
from tests.backends import StoreLab
from tests.inprocess import LAKE, MAIN, fill
from tests.services.conftest import ServiceDesk

FLAT = RequestScope(LAKE, "flat")
CROWD = int(os.environ.get("LIMNOS_TEST_NAMES", "2000"))
NAMES = ("sales", "sales:east", "a::b", "x:y:z", "x_y_z", "x", ":", "east:", "p:q", "p:r", "plain")


@pytest.fixture
def flat(lab: StoreLab) -> Iterator[ServiceDesk]:
    """A lake with a flat catalog `flat` whose names may contain the separator; ana has no rights."""
    desk = ServiceDesk(lab)
    loosen(desk)
    desk.run(fill(desk.ctx()))
    desk.users("ana")
    creation = catalog_create(
        desk.ctx(),
        metalake=LAKE,
        name="flat",
        catalog_type=None,
        provider="lakehouse-iceberg",
        comment=None,
        properties={"nested-namespaces": "false"},
    )
    desk.run(creation)
    yield desk
    desk.node.services.files.close()


def loosen(desk: ServiceDesk) -> None:
    """Allow the separator in names of flat catalogs."""
    desk.node.services.defaults = desk.node.services.defaults._replace(separator_policy="unrestricted")


def tree(desk: ServiceDesk, scope: RequestScope = FLAT) -> dict[int, tuple[str, ...]]:
    """Return the id and the path of every namespace of a catalog."""
    rows = desk.rows("SELECT id, parent_id, name FROM node WHERE kind = 3 AND deleted = 0")
    by_id = {row[0]: (row[1], row[2]) for row in rows}
    top = desk.run(desk.ctx().read(scope, lambda request_view: request_view.catalog.id))
    paths_by_id = {}
    for node_id in by_id:
        at, path = node_id, []
        while at in by_id:
            path.append(by_id[at][1])
            at = by_id[at][0]
        if at == top:
            paths_by_id[node_id] = tuple(reversed(path))
    return paths_by_id


def listed(desk: ServiceDesk, *parent: str, scope: RequestScope = FLAT) -> list[str]:
    """Return the names in the catalog's list."""
    return list(desk.run(desk.ctx().read(scope, lambda request_view: namespaces_list(request_view, parent))).texts())


def switch(desk: ServiceDesk, word: str) -> None:
    """Set the catalog property that lets namespaces nest."""
    edits = PropertyEdits(sets={"nested-namespaces": word})
    desk.run(catalog_alter(desk.ctx(), metalake=LAKE, name="flat", edits=edits))


def nests(desk: ServiceDesk) -> bool:
    """Return whether the catalog's namespaces nest."""
    record = desk.run(desk.ctx().read(FLAT, lambda request_view: request_view.catalog_record))
    return cast("CatalogRecord", record).properties["nested-namespaces"] == "true"


def until(
    desk: ServiceDesk,
    goal: str,
    *,
    between: Callable[[NestingProgress], object] = lambda _: None,
    nodes: tuple[ServiceDesk, ...] = (),
) -> NestingProgress:
    """Execute migration steps until a state is reached, alternating between nodes."""
    desks = (desk, *nodes)
    for turn in range(200):
        progress = desks[turn % len(desks)].run(nesting_continue(desks[turn % len(desks)].ctx(), FLAT, to=goal))
        if progress.is_done(goal):
            return progress
        between(progress)
    raise AssertionError("never done")


def test_names_with_separator_prevent_nested_catalog(flat: ServiceDesk) -> None:
    """Names that contain the separator are listed with separators that could be used instead, and every way to make the
    catalog nested is refused.
    """
    for name in ("a:b", "c", "d;e:f"):
        flat.namespace(name, scope=FLAT)

    check_result = flat.run(nesting_check(flat.ctx(), FLAT, separator=None))
    with pytest.raises(InvalidName, match=r"cannot nest: .*'a:b', 'd;e:f'.*limnos names plan flat"):
        switch(flat, "true")

    assert check_result == (False, ":", 2, ("a:b", "d;e:f"), ("$",))
    assert flat.run(nesting_check(flat.ctx(), FLAT, separator="$"))[2:4] == (0, ())
    assert not nests(flat)
    with pytest.raises(BadRequest, match="true or false"):
        switch(flat, "yes")


def test_flat_catalog_refuses_two_levels(flat: ServiceDesk) -> None:
    """A flat catalog refuses namespaces of two levels by create, move and undrop; a nested catalog cannot become
    flat.
    """
    flat.namespace("a:b", scope=FLAT)
    with pytest.raises(UnsupportedOperation, match="do not nest, because its property"):
        flat.namespace("a", "b", scope=FLAT)
    with pytest.raises(UnsupportedOperation, match="do not nest, because its property"):
        flat.run(namespace_move(flat.ctx(), FLAT, source=("a:b",), target=("a", "b")))
    flat.run(namespace_move(flat.ctx(), FLAT, source=("a:b",), target=("c",)))
    switch(flat, "true")
    flat.namespace("c", "d", scope=FLAT)
    with pytest.raises(BadRequest, match=r"c\.d is in another one"):
        switch(flat, "false")
    flat.run(namespace_drop(flat.ctx(), FLAT, levels=("c", "d")))
    switch(flat, "false")
    ((dropped_entry, *_),) = flat.run(trash_list(flat.ctx(), FLAT, below=(), before=NEWEST, limit=5)).entries
    with pytest.raises(InvalidName, match="no nested namespaces"):
        flat.run(trash_restore(flat.ctx(), FLAT, dropped_id=dropped_entry.id))
    assert listed(flat) == ["c"]


def test_dropped_name_with_separator_is_restored_only_renamed(flat: ServiceDesk) -> None:
    """In a nested catalog, a dropped namespace whose name contains the separator can be restored only under another
    name.
    """
    flat.namespace("a:b", scope=FLAT)
    flat.run(namespace_drop(flat.ctx(), FLAT, levels=("a:b",)))
    switch(flat, "true")
    ((dropped_entry, *_),) = flat.run(trash_list(flat.ctx(), FLAT, below=(), before=NEWEST, limit=5)).entries

    with pytest.raises(InvalidName, match="holds ':'"):
        flat.run(trash_restore(flat.ctx(), FLAT, dropped_id=dropped_entry.id))
    flat.run(trash_restore(flat.ctx(), FLAT, dropped_id=dropped_entry.id, to=("a-b",)))

    assert listed(flat) == ["a-b"]


@pytest.mark.parametrize("batch", [1, 3, 500])
def test_migration_renames_and_undo_restores_names(
    flat: ServiceDesk, monkeypatch: pytest.MonkeyPatch, batch: int
) -> None:
    """Two nodes change names in batches of any size. Namespaces keep their ids and content, and an undo restores all
    names.
    """
    monkeypatch.setattr(nesting_steps, "BATCH", batch)
    other = ServiceDesk.__new__(ServiceDesk)
    other.lab, other.node = flat.lab, type(flat.node)(flat.lab.open())
    loosen(other)
    for name in NAMES:
        flat.namespace(name, scope=FLAT)
    flat.table("x:y:z", "t", scope=FLAT)
    before = tree(flat)
    ids = {path[0]: node_id for node_id, path in before.items()}

    flat.run(nesting_plan(flat.ctx(), FLAT))
    planned = until(flat, "planned", nodes=(other,))
    assert tree(flat) == before
    done = until(flat, "migrated", nodes=(other,))
    after = tree(flat)

    assert (planned.total, done.total, done.left) == (7, 7, 0)
    assert {name: after[ids[name]] for name in NAMES} == {
        "sales": ("sales",),
        "sales:east": ("sales", "east"),
        "a::b": ("a__b",),
        "x:y:z": ("x", "y", "z"),
        "x_y_z": ("x_y_z",),
        "x": ("x",),
        ":": ("_",),
        "east:": ("east_",),
        "p:q": ("p", "q"),
        "p:r": ("p", "r"),
        "plain": ("plain",),
    }
    assert nests(flat)
    assert listed(flat, "x", "y") == ["z"]
    assert flat.rows("SELECT parent_id FROM node WHERE kind = 4 AND deleted = 0") == [(ids["x:y:z"],)]
    with pytest.raises(BadRequest, match="first undo that"):
        flat.run(nesting_plan(flat.ctx(), FLAT))

    until(flat, "undone", nodes=(other,))
    assert tree(flat) == before
    assert not nests(flat)
    until(flat, "migrated", nodes=(other,))
    flat.run(nesting_confirm(flat.ctx(), FLAT))
    with pytest.raises(NotFound, match="names plan flat"):
        flat.run(nesting_load(flat.ctx(), FLAT))
    assert sorted(tree(flat).values()) == sorted(after.values())
    flat.node.services.files.close()


def test_migration_respects_concurrent_user_changes(flat: ServiceDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    """The migration does not touch namespaces that users rename, drop or move meanwhile. It plans names created
    meanwhile, and appends a number to a name that is taken.
    """
    monkeypatch.setattr(nesting_steps, "BATCH", 2)
    for name in ("a:1", "b:1", "c:1", "d:1", "e:1"):
        flat.namespace(name, scope=FLAT)
    flat.run(nesting_plan(flat.ctx(), FLAT))
    until(flat, "planned")
    flat.run(namespace_move(flat.ctx(), FLAT, source=("a:1",), target=("mine",)))
    flat.run(namespace_drop(flat.ctx(), FLAT, levels=("b:1",)))
    flat.namespace("c_1", scope=FLAT)

    def meddle(progress: NestingProgress) -> None:
        if progress.migration.state == "switching" and not any("late" in path[0] for path in tree(flat).values()):
            flat.namespace("late:1", scope=FLAT)
        if progress.migration.state == "nesting" and "others" not in listed(flat):
            flat.namespace("others", scope=FLAT)
            flat.run(namespace_move(flat.ctx(), FLAT, source=("d_1",), target=("others", "d")))

    done = until(flat, "migrated", between=meddle)
    assert sorted(map(".".join, tree(flat).values())) == sorted(
        ["mine", "c_1", "c", "c.1", "e", "e.1", "late", "late.1", "others", "others.d"]
    )
    assert (done.total, done.left) == (6, 3)
    with pytest.raises(BadRequest, match=r"others\.d is in another one"):
        until(flat, "undone")
    flat.run(namespace_move(flat.ctx(), FLAT, source=("others", "d"), target=("d",)))
    until(flat, "undone")
    assert sorted(map(".".join, tree(flat).values())) == sorted(["mine", "c_1", "c:1", "e:1", "late:1", "others", "d"])


def test_unusable_path_becomes_one_name_with_new_separator(flat: ServiceDesk) -> None:
    """A name whose parts would be too many, invalid or taken becomes one name with a replaced separator, not a path."""
    deep = ":".join("abcdefghijklmnopqrstuvwxyzABCDEFGH")
    for name in (deep, "..:x", "p", "p:q"):
        flat.namespace(name, scope=FLAT)
    flat.run(nesting_plan(flat.ctx(), FLAT))

    def take(progress: NestingProgress) -> None:
        if progress.migration.state == "nesting" and "q" not in listed(flat, "p"):
            flat.namespace("p", "q", scope=FLAT)

    until(flat, "migrated", between=take)

    assert sorted(map("/".join, tree(flat).values())) == sorted([deep.replace(":", "_"), ".._x", "p", "p/q", "p_q"])


def test_migration_with_flat_or_separator_only_renames(flat: ServiceDesk) -> None:
    """With `--flat` or with another separator, the migration only changes names, in flat catalogs and at any depth of
    nested ones.
    """
    flat.namespace("a:b", scope=FLAT)
    flat.run(nesting_plan(flat.ctx(), FLAT, nested=False, replacement="-"))
    until(flat, "migrated")
    assert (listed(flat), nests(flat)) == (["a-b"], False)

    flat.namespace("k", "l;m", "n")
    flat.run(nesting_plan(flat.ctx(), MAIN, separator=";"))
    done = flat.run(nesting_continue(flat.ctx(), MAIN, to="migrated"))
    assert done.is_done("migrated")
    assert listed(flat, "k", scope=MAIN) == ["l_m"]
    assert listed(flat, "k", "l_m", scope=MAIN) == ["n"]
    defaults = flat.node.services.defaults
    flat.node.services.defaults = defaults._replace(separator=";")
    with pytest.raises(BadRequest, match="the present separator"):
        flat.run(nesting_continue(flat.ctx(), MAIN, to="undone"))


@pytest.mark.parametrize(
    "separator,replacement", [(None, ":"), (None, "a.b"), (None, "x" * 17), (";", "-;-"), (None, "")]
)
def test_invalid_replacements_are_refused(flat: ServiceDesk, separator: str | None, replacement: str) -> None:
    """A replacement that contains the separator or a dot, or is too long, is refused."""
    with pytest.raises((BadRequest, InvalidName)):
        flat.run(nesting_plan(flat.ctx(), FLAT, separator=separator, replacement=replacement))


@pytest.mark.parametrize("separator", ["", "::", ".", "/"])
def test_disallowed_separators_are_refused(flat: ServiceDesk, separator: str) -> None:
    """A separator that the settings do not allow is refused."""
    with pytest.raises(InvalidName):
        flat.run(nesting_check(flat.ctx(), FLAT, separator=separator))
    with pytest.raises(InvalidName):
        flat.run(nesting_plan(flat.ctx(), FLAT, separator=separator))


def test_migration_steps_out_of_order_are_refused(flat: ServiceDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps without a plan or in the wrong direction are refused, and a migration in progress cannot be confirmed."""
    monkeypatch.setattr(nesting_steps, "BATCH", 1)
    with pytest.raises(NotFound):
        flat.run(nesting_continue(flat.ctx(), FLAT, to="migrated"))
    with pytest.raises(BadRequest, match="planned, migrated, undone"):
        flat.run(nesting_continue(flat.ctx(), FLAT, to="done"))
    for name in ("a:1", "b:1"):
        flat.namespace(name, scope=FLAT)
    flat.run(nesting_plan(flat.ctx(), FLAT))
    with pytest.raises(BadRequest, match="planning"):
        flat.run(nesting_continue(flat.ctx(), FLAT, to="migrated"))
    until(flat, "planned")
    flat.run(nesting_continue(flat.ctx(), FLAT, to="migrated"))
    with pytest.raises(BadRequest, match="being changed"):
        flat.run(nesting_confirm(flat.ctx(), FLAT))
    with pytest.raises(BadRequest, match="being changed"):
        flat.run(nesting_plan(flat.ctx(), FLAT))
    flat.run(nesting_continue(flat.ctx(), FLAT, to="undone"))
    with pytest.raises(BadRequest, match=r"unrenaming|unswitching"):
        flat.run(nesting_continue(flat.ctx(), FLAT, to="migrated"))


def test_names_created_during_migration_are_migrated(flat: ServiceDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names that are created while a migration runs are planned and migrated, too. The migration cannot be confirmed
    before it is complete.
    """
    monkeypatch.setattr(nesting_steps, "BATCH", 1)
    for name in ("a:1", "b:1"):
        flat.namespace(name, scope=FLAT)
    flat.run(nesting_plan(flat.ctx(), FLAT))
    until(flat, "planned")
    for name in ("c:1", "d:1", "e:1"):
        flat.namespace(name, scope=FLAT)
    seen: set[tuple[str, bool]] = set()
    for _ in range(40):
        progress = flat.run(nesting_continue(flat.ctx(), FLAT, to="migrated"))
        if progress.is_done("migrated"):
            break
        seen.add((progress.migration.state, progress.migration.goes_on))
        with pytest.raises(BadRequest, match="being changed"):
            flat.run(nesting_confirm(flat.ctx(), FLAT))

    assert ("planning", True) in seen


def test_migration_is_refused_without_right_to_alter_catalog(flat: ServiceDesk) -> None:
    """Every call of the migration is refused to users who may not alter the catalog."""
    flat.namespace("a:b", scope=FLAT)
    flat.run(nesting_plan(flat.ctx(), FLAT))
    for call in (
        nesting_check(flat.ctx("ana"), FLAT, separator=None),
        nesting_load(flat.ctx("ana"), FLAT),
        nesting_plan(flat.ctx("ana"), FLAT),
        nesting_continue(flat.ctx("ana"), FLAT, to="migrated"),
        nesting_confirm(flat.ctx("ana"), FLAT),
    ):
        with pytest.raises(PermissionDenied):
            flat.run(call)
    assert listed(flat) == ["a:b"]


def test_server_refuses_to_start_with_conflicting_separator(flat: ServiceDesk) -> None:
    """The server refuses to start with a separator that stored names contain, unless the policy is `unrestricted`. It
    searches the names once for each separator and policy.
    """
    submit = flat.lab.store.submit
    flat.namespace("a:b", scope=FLAT)
    flat.namespace("c;d")

    def settle(separator: str, policy: str) -> str | None:
        flat.run(submit(upkeep_permit("limnos"), lambda tx: separator_check(tx, separator=separator, policy=policy)))
        return flat.lab.load(checked_read())

    assert settle(":", "unrestricted") == ": unrestricted"
    with pytest.raises(CannotStart) as caught:
        settle(";", "unrestricted")
    assert "'c;d'" in caught.value.why
    assert "names plan main" in caught.value.advice
    with pytest.raises(CannotStart):
        settle(":", "restricted")
    assert flat.lab.load(checked_read()) == ": unrestricted"
    assert settle("$", "restricted") == "$ restricted"


def test_migration_of_many_names_can_be_undone(flat: ServiceDesk) -> None:
    """With many names, of which one in a hundred conflicts, check, plan, migration and undo work, and the undo restores
    all names.
    """
    draw = random.Random(7)
    conflicts = {f"n{number}:{draw.choice('abc')}{number}" for number in range(CROWD // 100)}
    names = [f"n{number}" for number in range(CROWD - len(conflicts))] + sorted(conflicts)
    flat.namespace("first", scope=FLAT)
    ((zone, parent, space),) = flat.rows("SELECT zone, parent_id, name_space FROM node WHERE name = ?", "first")
    with flat.lab.database.connected() as query:
        query("BEGIN")
        for number, name in enumerate(names):
            query(
                "INSERT INTO node (id, zone, parent_id, kind, name_space, name, format, implicit, created_by,"
                " created_at, revision, deleted, record) VALUES (?, ?, ?, 3, ?, ?, '', ?, 'x', 0, 1, 0, ?)",
                1_000_000 + number,
                zone,
                parent,
                space,
                name,
                False,
                encode(BLANK_NAMESPACE),
            )
        query("COMMIT")
    before = tree(flat)

    with pytest.raises(InvalidName, match="cannot nest"):
        switch(flat, "true")
    assert flat.run(nesting_check(flat.ctx(), FLAT, separator=None)).conflicts == len(conflicts)
    flat.run(nesting_plan(flat.ctx(), FLAT))
    until(flat, "planned")
    done = until(flat, "migrated")
    after = tree(flat)
    assert (done.total, done.left, done.nested) == (len(conflicts), 0, len(conflicts))
    assert {path for path in after.values() if len(path) == 2} == {tuple(name.split(":")) for name in conflicts}
    assert len(after) == len(before)
    until(flat, "undone")
    assert tree(flat) == before
