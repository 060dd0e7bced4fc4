# SPDX-License-Identifier: Apache-2.0
"""Attachments of tags to objects: rows, the change of each, and the sweep after a drop."""

from __future__ import annotations

from limnos.model.attachments import Attachment
from limnos.model.entities import Node
from limnos.model.kinds import Kind
from limnos.model.records import PolicyRecord, TagRecord
from limnos.store.activity.upkeep import orphans_sweep
from limnos.store.changes import changes_read
from limnos.store.objects.attachments import attached_objects_read, attached_read
from limnos.store.tx import Tx
from limnos.view.facts import touched_keys
from limnos.view.keys import attached_key
from tests.backends import StoreLab
from tests.store.world import StoreWorld, add_namespace


def add_tag(tx: Tx, lake: Node, name: str) -> Node:
    """Insert a tag."""
    record = TagRecord(comment=None, properties={})
    return tx.nodes.create(kind=Kind.TAG, space="tag", name=name, parent_id=lake.id, zone=lake.id, record=record)


def test_attaching_and_detaching_report_whether_they_changed(lab: StoreLab, world: StoreWorld) -> None:
    """Attaching and detaching return whether they changed anything. Only an effective one creates a change, with the
    object's key.
    """
    tag = lab.write(lambda tx: add_tag(tx, world.lake, "red"), zone=world.lake.id)
    outcomes = [
        lab.write(
            lambda tx, turn=turn: getattr(tx.attachments(Kind.TAG), turn)(tag.id, world.main.id), zone=world.lake.id
        )
        for turn in ("attach", "attach", "detach", "detach")
    ]
    changes = [each for each in lab.load(changes_read(world.lake.id, 0)) if each.operation in ("attach", "detach")]

    assert outcomes == [True, False, True, False]
    assert [touched_keys(each) for each in changes] == [[attached_key(Kind.TAG, world.main.id)]] * 2


def test_tagged_objects_of_any_catalog_are_listed_with_ancestors(lab: StoreLab, world: StoreWorld) -> None:
    """The objects of a tag are listed with all of their ancestors, in any catalog. A dropped object is listed by its id
    alone.
    """
    tag = lab.write(lambda tx: add_tag(tx, world.lake, "red"), zone=world.lake.id)
    space = lab.write(lambda tx: add_namespace(tx, world.side, "a"), zone=world.side.id)
    for object_id in (world.main.id, space.id):
        lab.write(lambda tx, on=object_id: tx.attachments(Kind.TAG).attach(tag.id, on), zone=world.lake.id)
    ids, nodes = lab.load(attached_objects_read(Kind.TAG, tag.id))
    lab.write(lambda tx: tx.nodes.drop(space), zone=world.side.id)
    after = lab.load(attached_objects_read(Kind.TAG, tag.id))

    assert ids == ((world.main.id, 0), (space.id, 0))
    assert [nodes[each][2] for each in (world.main.id, space.id, world.side.id, world.lake.id)] == [
        "main",
        "a",
        "side",
        "lake",
    ]
    assert after[0] == ids
    assert space.id not in after[1]


def test_sweep_deletes_rows_of_dropped_objects_and_tags(lab: StoreLab, world: StoreWorld) -> None:
    """The sweep deletes rows of dropped objects and dropped tags, and keeps the others."""
    red, blue = (lab.write(lambda tx, n=name: add_tag(tx, world.lake, n), zone=world.lake.id) for name in ("r", "b"))
    space = lab.write(lambda tx: add_namespace(tx, world.main, "a"), zone=world.main.id)
    for tag, object_id in ((red, world.main.id), (red, space.id), (blue, world.main.id)):
        lab.write(lambda tx, t=tag, on=object_id: tx.attachments(Kind.TAG).attach(t.id, on), zone=world.lake.id)
    lab.write(lambda tx: tx.nodes.drop(space), zone=world.main.id)
    lab.write(lambda tx: tx.nodes.drop(blue), zone=world.lake.id)

    assert lab.write(orphans_sweep, zone=world.lake.id) == 2
    assert lab.load(attached_read(Kind.TAG, world.main.id)) == (Attachment(red.id, 0),)
    assert lab.load(attached_read(Kind.TAG, space.id)) == ()


def test_column_tags_are_separate_and_values_retain_their_order(lab: StoreLab, world: StoreWorld) -> None:
    """Tags of columns are separate from those of their table and are listed by kind. Values keep the order in which
    they were written.
    """
    lake = world.lake.id
    tag = lab.write(lambda tx: add_tag(tx, world.lake, "red"), zone=lake)
    record = PolicyRecord(comment=None, properties={}, policy_type="custom", enabled=True, content="{}")
    policy_arguments = {
        "kind": Kind.POLICY,
        "space": "policy",
        "name": "p",
        "parent_id": lake,
        "zone": lake,
        "record": record,
    }
    policy = lab.write(lambda tx: tx.nodes.create(**policy_arguments), zone=lake)
    table = lab.write(lambda tx: add_namespace(tx, world.main, "a"), zone=world.main.id).id

    def fill(tx: Tx) -> list[bool]:
        rows = tx.attachments(Kind.TAG)
        attachments = [rows.attach(tag.id, table, field_id=field) for field in (0, 3, 3)]
        attachments.append(tx.attachments(Kind.POLICY).attach(policy.id, table, field_id=3))
        rows.set_values(tag.id, table, values=("b", "a"), field_id=3)
        rows.set_values(tag.id, table, values=("b",))
        return attachments

    attachments = lab.write(fill, zone=lake)
    read = [lab.load(attached_read(kind, table)) for kind in (Kind.TAG, Kind.POLICY)]
    tagged_objects = [
        lab.load(attached_objects_read(Kind.TAG, tag.id, value=value))[0] for value in (None, "a", "b", "B")
    ]
    values = lab.write(
        lambda tx: [tx.attachments(Kind.TAG).values(tag.id, table, field_id=field) for field in (0, 3, 4)], zone=lake
    )
    names = lab.write(lambda tx: [tx.attachments(Kind.TAG).on(table, field_id=field) for field in (0, 3, 4)], zone=lake)
    detachments = lab.write(
        lambda tx: [tx.attachments(Kind.TAG).detach(tag.id, table, field_id=field) for field in (3, 3)], zone=lake
    )

    assert attachments == [True, True, False, True]
    assert read == [(Attachment(tag.id, 0, ("b",)), Attachment(tag.id, 3, ("b", "a"))), (Attachment(policy.id, 3),)]
    assert tagged_objects == [((table, 0), (table, 3)), ((table, 3),), ((table, 0), (table, 3)), ()]
    assert (values, names) == ([("b",), ("b", "a"), None], [[(tag.id, "red")], [(tag.id, "red")], []])
    assert (detachments, lab.load(attached_read(Kind.TAG, table))) == ([True, False], (Attachment(tag.id, 0, ("b",)),))


def test_sweep_deletes_column_attachments_and_values(lab: StoreLab, world: StoreWorld) -> None:
    """The sweep of a table deletes the attachments of its columns and all of its values. The sweep of a tag deletes the
    tag's.
    """
    lake = world.lake.id
    red, blue = (lab.write(lambda tx, n=name: add_tag(tx, world.lake, n), zone=lake) for name in ("r", "b"))
    spaces = [lab.write(lambda tx, n=name: add_namespace(tx, world.main, n), zone=world.main.id) for name in "ab"]

    def fill(tx: Tx) -> None:
        rows = tx.attachments(Kind.TAG)
        for space in spaces:
            for tag in (red, blue):
                rows.attach(tag.id, space.id, field_id=1)
                rows.set_values(tag.id, space.id, values=("v",), field_id=1)

    lab.write(fill, zone=lake)
    lab.write(lambda tx: tx.nodes.drop(spaces[0]), zone=world.main.id)
    lab.write(lambda tx: tx.nodes.drop(blue), zone=lake)

    assert lab.write(orphans_sweep, zone=lake) == 6
    assert [lab.load(attached_read(Kind.TAG, space.id)) for space in spaces] == [(), (Attachment(red.id, 1, ("v",)),)]
