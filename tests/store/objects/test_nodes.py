# SPDX-License-Identifier: Apache-2.0
"""The tree of nodes in the store: create, lock, find, move and drop; names, name spaces and paths."""

from __future__ import annotations

import pytest

from limnos.model.entities import Node
from limnos.model.errors import AlreadyExists, NotEmpty, StalePermit
from limnos.model.kinds import ROOT_ID, Kind
from limnos.model.records import NamespaceRecord
from limnos.store.objects.node_reads import listing_read, live_nodes_read, node_read, path_read
from limnos.store.tx import Tx
from tests.backends import StoreLab
from tests.store.world import ASTRAL, NAMESPACE, StoreWorld, add_namespace, add_table


def chain(tx: Tx, parent: Node, names: str) -> list[Node]:
    """Insert a path of namespaces named by single letters."""
    nodes = [parent]
    for name in names:
        nodes.append(add_namespace(tx, nodes[-1], name))
    return nodes[1:]


def steps(names: str, last: str = "namespace") -> list[tuple[str, str]]:
    """Return the pairs of name space and name of a path of single letters."""
    return [("namespace" if i < len(names) - 1 else last, name) for i, name in enumerate(names)]


def test_created_node_reads_back(lab: StoreLab, world: StoreWorld) -> None:
    """A create returns the node that a later read by id finds, with equal fields."""
    record = NamespaceRecord(comment="ünïcode", properties={"k": "v"})

    created_node = lab.write(
        lambda tx: tx.nodes.create(
            kind=Kind.NAMESPACE,
            space="namespace",
            name="a",
            parent_id=world.main.id,
            zone=world.main.id,
            record=record,
            implicit=True,
        ),
        zone=world.main.id,
    )

    loaded_node = lab.load(node_read(created_node.id))
    assert loaded_node == created_node
    assert (loaded_node.record.comment, loaded_node.implicit, loaded_node.created_by) == ("ünïcode", True, "tester")


@pytest.mark.parametrize("depth", range(1, 7))
def test_path_of_any_depth_is_one_statement(lab: StoreLab, world: StoreWorld, depth: int) -> None:
    """A path of one to six parts is resolved by one statement, which returns every node on the path."""
    nodes = lab.write(lambda tx: chain(tx, world.main, "abcdef"[:depth]), zone=world.main.id)
    before = lab.store.statements

    resolved_path = lab.load(path_read(world.main.id, steps("abcdef"[:depth])))

    assert resolved_path == nodes
    assert lab.store.statements - before == 2  # the load's clock and the path


@pytest.mark.parametrize("missing", range(1, 7))
def test_path_ends_where_a_part_is_missing(lab: StoreLab, world: StoreWorld, missing: int) -> None:
    """If a part of a path is missing, the parts before it are found, and it and the following parts are None."""
    nodes = lab.write(lambda tx: chain(tx, world.main, "abcdef"[: missing - 1]), zone=world.main.id)

    resolved_path = lab.load(path_read(world.main.id, steps("abcdef")))

    assert resolved_path == [*nodes, *[None] * (7 - missing)]


def test_path_through_a_dropped_node_is_not_resolved(lab: StoreLab, world: StoreWorld) -> None:
    """Objects below a dropped node are not found by path."""
    outer, inner = lab.write(lambda tx: chain(tx, world.main, "ab"), zone=world.main.id)
    lab.write(lambda tx: (tx.nodes.drop(inner), tx.nodes.drop(outer)), zone=world.main.id)

    assert lab.load(path_read(world.main.id, steps("ab"))) == [None, None]
    assert lab.load(node_read(inner.id)) is None


def test_many_nodes_are_one_statement(lab: StoreLab, world: StoreWorld) -> None:
    """One statement reads many nodes by their ids, without dropped and missing ones."""
    nodes = [lab.write(lambda tx, name=name: add_namespace(tx, world.main, name), zone=world.main.id) for name in "abc"]
    lab.write(lambda tx: tx.nodes.drop(nodes[1]), zone=world.main.id)
    before = lab.store.statements

    live_nodes = lab.load(live_nodes_read([*(each.id for each in nodes), 10**12]))

    assert sorted(live_nodes, key=lambda each: each.name) == [nodes[0], nodes[2]]
    assert lab.store.statements - before == 2  # the load's clock and the nodes
    assert lab.load(live_nodes_read([])) == []


def test_names_sort_by_code_point(lab: StoreLab, world: StoreWorld) -> None:
    """A listing is sorted by code point without a locale: astral characters last, upper case before lower."""
    names = [ASTRAL, "\ufffd", "é", "z", "a", "Z", "a b", "a:b", "a%b", "ａ"]

    lab.write(lambda tx: [add_namespace(tx, world.main, name) for name in names], zone=world.main.id)

    listing = lab.load(listing_read(world.main.id, "namespace", Kind.NAMESPACE))
    assert list(listing.names) == sorted(names)
    assert listing.names[-1] == ASTRAL


def test_listing_runs_in_parallel_columns(lab: StoreLab, world: StoreWorld) -> None:
    """Names, ids, owners and JSON spellings of a listing are parallel columns. An object without an owner has owner
    None.
    """
    owned = lab.write(lambda tx: add_namespace(tx, world.main, 'b"', owner_id=77), zone=world.main.id)
    free = lab.write(lambda tx: add_namespace(tx, world.main, "a"), zone=world.main.id)

    listing = lab.load(listing_read(world.main.id, "namespace", Kind.NAMESPACE))

    assert listing.names == ("a", 'b"')
    assert listing.ids == (free.id, owned.id)
    assert listing.owners == (None, 77)
    assert listing.encoded == (b'"a"', b'"b\\""')


def test_empty_container_has_an_empty_listing(lab: StoreLab, world: StoreWorld) -> None:
    """A container without children of the kind has an empty listing."""
    lab.write(lambda tx: add_table(tx, add_namespace(tx, world.main, "a"), "t"), zone=world.main.id)

    assert lab.load(listing_read(world.main.id, "table", Kind.TABLE)).names == ()


def test_taken_name_is_refused_with_the_existing_kind(lab: StoreLab, world: StoreWorld) -> None:
    """A taken name is refused with the kind of the object that has it, and nothing is written."""
    lab.write(lambda tx: add_namespace(tx, world.main, "a"), zone=world.main.id)
    clock = lab.clock(world.main.id)

    with pytest.raises(AlreadyExists) as refused:
        lab.write(lambda tx: add_namespace(tx, world.main, "a"), zone=world.main.id)

    assert refused.value.kind == "namespace"
    assert lab.clock(world.main.id) == clock


def test_dropped_name_is_free_again(lab: StoreLab, world: StoreWorld) -> None:
    """A name can be dropped and used again repeatedly; each object has its own id."""
    ids = set()
    for _ in range(3):
        node = lab.write(lambda tx: add_namespace(tx, world.main, "a"), zone=world.main.id)
        ids.add(node.id)
        lab.write(lambda tx, node=node: tx.nodes.drop(node), zone=world.main.id)

    assert len(ids) == 3


def test_namespace_and_table_may_have_the_same_name(lab: StoreLab, world: StoreWorld) -> None:
    """A namespace and a table may have the same name under one parent. A table and a view share a name space."""
    outer = lab.write(lambda tx: add_namespace(tx, world.main, "a"), zone=world.main.id)
    inner = lab.write(lambda tx: add_namespace(tx, outer, "x"), zone=world.main.id)
    table = lab.write(lambda tx: add_table(tx, outer, "x"), zone=world.main.id)

    assert lab.load(path_read(outer.id, [("namespace", "x")])) == [inner]
    assert lab.load(path_read(outer.id, [("table", "x")])) == [table]


def test_names_differ_by_case_and_normalization(lab: StoreLab, world: StoreWorld) -> None:
    """Names that differ in case or in Unicode form are different names."""
    names = ("a", "A", "\u00e9", "e\u0301")

    lab.write(lambda tx: [add_namespace(tx, world.main, name) for name in names], zone=world.main.id)

    nodes = [lab.load(path_read(world.main.id, [("namespace", name)]))[0] for name in names]
    assert [node.name for node in nodes] == list(names)


def test_move_writes_one_row_and_takes_the_subtree_along(lab: StoreLab, world: StoreWorld) -> None:
    """A move writes one row of the tree and takes the whole subtree along."""
    a, b, c = lab.write(lambda tx: chain(tx, world.main, "abc"), zone=world.main.id)
    target = lab.write(lambda tx: add_namespace(tx, world.main, "t"), zone=world.main.id)

    lab.write(lambda tx: tx.nodes.move(b, parent_id=target.id, name="B", moves_access=True), zone=world.main.id)

    moved = lab.load(path_read(world.main.id, [("namespace", name) for name in ("t", "B", "c")]))
    assert [node.id for node in moved] == [target.id, b.id, c.id]
    assert lab.load(path_read(world.main.id, steps("abc")))[1:] == [None, None]
    revision = lab.clock(world.main.id)[0]
    assert lab.database.sql("SELECT id FROM node WHERE revision = ? AND zone = ?", revision, world.main.id) == [(b.id,)]
    assert lab.load(node_read(a.id)) == a


def test_move_onto_a_taken_name_is_refused(lab: StoreLab, world: StoreWorld) -> None:
    """A move onto a taken name is refused. A move onto the node's own name is allowed."""
    a = lab.write(lambda tx: add_namespace(tx, world.main, "a"), zone=world.main.id)
    lab.write(lambda tx: add_namespace(tx, world.main, "b"), zone=world.main.id)

    with pytest.raises(AlreadyExists):
        lab.write(
            lambda tx: tx.nodes.move(a, parent_id=world.main.id, name="b", moves_access=False), zone=world.main.id
        )

    lab.write(lambda tx: tx.nodes.move(a, parent_id=world.main.id, name="a", moves_access=False), zone=world.main.id)
    assert lab.load(node_read(a.id)).name == "a"


@pytest.mark.parametrize("how", ["rename", "move", "drop", "successor"])
def test_locking_a_moved_node_is_refused(lab: StoreLab, world: StoreWorld, how: str) -> None:
    """A node is locked by id, parent and name. If they have changed since the decision, the caller must read the gate
    again.
    """
    outer, node = lab.write(lambda tx: chain(tx, world.main, "ab"), zone=world.main.id)

    def change(tx: Tx) -> None:
        if how in ("drop", "successor"):
            tx.nodes.drop(node)
        if how == "successor":
            add_namespace(tx, outer, "b")
        if how in ("rename", "move"):
            parent = world.main.id if how == "move" else outer.id
            tx.nodes.move(node, parent_id=parent, name="c" if how == "rename" else "b", moves_access=False)

    lab.write(change, zone=world.main.id)

    with pytest.raises(StalePermit):
        lab.write(lambda tx: tx.nodes.confirm(node), zone=world.main.id)


def test_locked_node_has_the_stored_record(lab: StoreLab, world: StoreWorld) -> None:
    """A locked node has the stored record, not the one on which the caller decided."""
    node = lab.write(lambda tx: add_namespace(tx, world.main, "a"), zone=world.main.id)
    changed = NamespaceRecord(comment="new", properties={})
    lab.write(lambda tx: tx.nodes.write_record(node, changed), zone=world.main.id)

    locked_node = lab.write(lambda tx: tx.nodes.confirm(node), zone=world.main.id)

    assert locked_node.record == lab.load(node_read(node.id)).record
    assert locked_node.record.comment == "new"
    assert (locked_node.modified_by, locked_node.revision) == ("tester", lab.clock(world.main.id)[0])


def test_container_with_a_child_is_not_empty(lab: StoreLab, world: StoreWorld) -> None:
    """A container with a child is not empty, and the refusal names the child. A dropped child does not count."""
    outer, inner = lab.write(lambda tx: chain(tx, world.main, "ab"), zone=world.main.id)

    with pytest.raises(NotEmpty, match="drop its namespace b first"):
        lab.write(lambda tx: tx.nodes.require_empty(outer), zone=world.main.id)

    lab.write(lambda tx: tx.nodes.drop(inner), zone=world.main.id)
    lab.write(lambda tx: tx.nodes.require_empty(outer), zone=world.main.id)
    with pytest.raises(NotEmpty, match="drop its namespace a first, or else"):
        lab.write(lambda tx: tx.nodes.require_empty(world.main, ", or else"), zone=world.main.id)


def test_node_is_below_itself_and_its_ancestors_only(lab: StoreLab, world: StoreWorld) -> None:
    """A node is below itself and below each of its ancestors, and below no other node."""
    a, b, c = lab.write(lambda tx: chain(tx, world.main, "abc"), zone=world.main.id)

    def ask(tx: Tx) -> list[bool]:
        return [tx.nodes.is_below(c.id, a.id), tx.nodes.is_below(b.id, b.id), tx.nodes.is_below(a.id, c.id)]

    assert lab.write(ask, zone=world.main.id) == [True, True, False]


def test_drop_takes_the_owner_along(lab: StoreLab, world: StoreWorld) -> None:
    """A drop deletes the owner row of the node, and leaves its grants for the sweeper."""
    node = lab.write(lambda tx: add_namespace(tx, world.main, "a", owner_id=5), zone=world.main.id)

    lab.write(lambda tx: tx.nodes.drop(node), zone=world.main.id)

    assert lab.database.sql("SELECT 1 FROM owner WHERE object_id = ?", node.id) == []


def test_metalake_names_are_unique_below_the_root(lab: StoreLab, world: StoreWorld) -> None:
    """Two metalakes cannot have the same name, because their parent is a root id and not NULL, which the unique index
    would ignore.
    """
    with pytest.raises(AlreadyExists):
        lab.write(
            lambda tx: tx.nodes.create(
                kind=Kind.METALAKE, space="metalake", name="lake", parent_id=ROOT_ID, zone=ROOT_ID, record=NAMESPACE
            )
        )

    assert lab.load(path_read(ROOT_ID, [("metalake", "lake")]))[0].id == world.lake.id
