# SPDX-License-Identifier: Apache-2.0
"""Metadata documents in the store: compare-and-swap, and one table per location."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Iterator

import msgspec
import pytest
from sqlalchemy import Index

from limnos.model.entities import MetadataDocument
from limnos.model.errors import BadRequest, StoreDamaged
from limnos.store.exchange.exports import export_node_of, nodes_query
from limnos.store.objects import documents
from limnos.store.objects.documents import digest_of, document_read, documents_read, intact_documents_read, is_intact
from limnos.store.schema.tree import document as schema
from limnos.store.tx import Tx
from tests.backends import StoreLab
from tests.store.world import StoreWorld


def document(node_id: int, *, version: int = 1, location: str | None = None) -> MetadataDocument:
    """Return a document whose body is not valid text."""
    place = location or f"file:/w/{node_id}"
    return MetadataDocument(
        node_id=node_id,
        version=version,
        uuid=f"uuid-{node_id}",
        location=place,
        metadata_location=f"{place}/metadata/{version}",
        body=bytes(range(256)),
    )


def test_document_reads_back(lab: StoreLab, world: StoreWorld) -> None:
    """A document's bytes are read unchanged. A missing document is None."""
    lab.write(lambda tx: tx.documents.create(document(7)), zone=world.main.id)

    assert lab.load(document_read(7)) == document(7)
    assert lab.load(document_read(8)) is None
    assert lab.load(intact_documents_read([7, 8])) == {7: document(7)}


@pytest.mark.parametrize("relocates", [True, False])
def test_swap_replaces_only_the_expected_version(lab: StoreLab, world: StoreWorld, *, relocates: bool) -> None:
    """A swap replaces only the version that it expects, and returns whether it did."""
    lab.write(lambda tx: tx.documents.create(document(7)), zone=world.main.id)
    newer = msgspec.structs.replace(document(7, version=2), body=b"{}")

    def swap(after: MetadataDocument) -> bool:
        return lab.write(lambda tx: tx.documents.swap(after, expected=1, relocates=relocates), zone=world.main.id)

    assert swap(newer) is True
    assert swap(document(7)) is False
    assert lab.load(document_read(7)) == newer


def test_commit_that_does_not_relocate_sets_no_column_with_an_index_of_its_own() -> None:
    """SQLite writes a page of each index whose columns a statement sets, even if the values are the same."""
    indexed = {column.name for index in schema.indexes if not _is_partial(index) for column in index.columns}
    assert indexed == {"location", "uuid"}
    for statement in (documents.REPLACE_BODY, documents.REPLACE_BODY_STILL):
        assignments = statement.text.partition(" SET ")[2].partition(" WHERE ")[0]
        assert not indexed & set(re.findall(r"(\w+) =", assignments))


def _is_partial(index: Index) -> bool:
    return index.dialect_options["sqlite"]["where"] is not None


def test_exactly_one_of_concurrent_swaps_succeeds(lab: StoreLab, world: StoreWorld) -> None:
    """Of ten concurrent swaps from one version, on two nodes, exactly one succeeds."""
    lab.write(lambda tx: tx.documents.create(document(7)), zone=world.main.id)
    nodes = [lab.store, lab.open()]
    permit = lab.permit(world.main.id)

    def swap(tx: Tx) -> bool:
        return tx.documents.swap(document(7, version=2), expected=1)

    async def race() -> list[bool]:
        return await asyncio.gather(*(nodes[i % 2].submit(permit, swap) for i in range(10)))

    assert sorted(lab.run(race())) == [False] * 9 + [True]
    assert lab.load(document_read(7)).version == 2


def test_location_has_one_table(lab: StoreLab, world: StoreWorld) -> None:
    """A second table at a location is refused by create and by swap, and nothing is written."""
    lab.write(lambda tx: tx.documents.create(document(7)), zone=world.main.id)
    lab.write(lambda tx: tx.documents.create(document(8)), zone=world.main.id)
    occupied_location = document(7).location

    with pytest.raises(BadRequest, match="choose another location"):
        lab.write(lambda tx: tx.documents.create(document(9, location=occupied_location)), zone=world.main.id)
    with pytest.raises(BadRequest, match="choose another location"):
        lab.write(
            lambda tx: tx.documents.swap(document(8, version=2, location=occupied_location), expected=1),
            zone=world.main.id,
        )

    assert lab.load(document_read(9)) is None
    assert lab.load(document_read(8)) == document(8)


def test_location_is_free_after_a_drop(lab: StoreLab, world: StoreWorld) -> None:
    """The location of a deleted document is free, as register after drop needs."""
    lab.write(lambda tx: tx.documents.create(document(7)), zone=world.main.id)
    lab.write(lambda tx: tx.documents.delete(7), zone=world.main.id)

    lab.write(lambda tx: tx.documents.create(document(8, location=document(7).location)), zone=world.main.id)

    assert lab.load(document_read(7)) is None


def test_only_one_concurrent_create_at_a_location_succeeds(lab: StoreLab, world: StoreWorld) -> None:
    """If tables of two catalogs are created concurrently at one location, one is created and the other is refused with
    a clear error.
    """
    nodes = [lab.store, lab.open()]
    place = "file:/w/contested"

    async def race() -> list[object]:
        tries = [
            node.submit(lab.permit(catalog.id), lambda tx, i=i: tx.documents.create(document(7 + i, location=place)))
            for i, (node, catalog) in enumerate(zip(nodes, (world.main, world.side), strict=True))
        ]
        return await asyncio.gather(*tries, return_exceptions=True)

    outcomes = lab.run(race())

    assert sorted(type(each).__name__ for each in outcomes) == ["BadRequest", "NoneType"]


def test_only_one_concurrent_move_to_a_location_succeeds(lab: StoreLab, world: StoreWorld) -> None:
    """If tables of two catalogs move concurrently to one location, one moves and the other is refused with a clear
    error.
    """
    nodes = [lab.store, lab.open()]
    place = "file:/w/contested"
    lab.write(lambda tx: tx.documents.create(document(7)), zone=world.main.id)
    lab.write(lambda tx: tx.documents.create(document(8)), zone=world.side.id)

    async def race() -> list[object]:
        tries = [
            node.submit(
                lab.permit(catalog.id),
                lambda tx, i=i: tx.documents.swap(document(7 + i, version=2, location=place), expected=1),
            )
            for i, (node, catalog) in enumerate(zip(nodes, (world.main, world.side), strict=True))
        ]
        return await asyncio.gather(*tries, return_exceptions=True)

    outcomes = lab.run(race())

    assert sorted(type(each).__name__ for each in outcomes) == ["BadRequest", "bool"]


NESTED = [
    ("file:///w/a", "file:///w/a/b"),
    ("file:///w/a/b/c", "file:///w/a"),
    ("s3://b", "s3://b/k/t"),
    ("s3://b/k", "s3://b"),
    ("file:///w/a/", "file:///w/a//b"),
    ("s3://b/k//x", "s3://b/k"),
]
BESIDE = [
    ("file:///w/a", "file:///w/ab"),
    ("file:///w/a", "file:///w/a-b/c"),
    ("file:///w/a/b", "file:///w/a.b"),
    ("s3://b/k", "s3://bk"),
    ("file:///w/a", "s3://w/a/b"),
    ("file:///w/a", "file:///w/a0"),
    ("file:///w/a0/b", "file:///w/a"),
    ("file:///w/é", "file:///w/e/x"),
]


@pytest.mark.parametrize("first, second", [(a.rstrip("/"), b) for a, b in NESTED])
def test_locations_do_not_nest(lab: StoreLab, world: StoreWorld, first: str, second: str) -> None:
    """A location inside or above another table's is refused by create and by swap, in other catalogs too."""
    lab.write(lambda tx: tx.documents.create(document(7, location=first)), zone=world.main.id)
    lab.write(lambda tx: tx.documents.create(document(8)), zone=world.side.id)

    with pytest.raises(BadRequest, match="tables cannot share files: choose another location"):
        lab.write(lambda tx: tx.documents.create(document(9, location=second)), zone=world.side.id)
    with pytest.raises(BadRequest, match="tables cannot share files"):
        lab.write(lambda tx: tx.documents.swap(document(8, version=2, location=second), expected=1), zone=world.side.id)

    assert lab.load(document_read(9)) is None
    assert lab.load(document_read(8)) == document(8)


@pytest.mark.parametrize("first, second", BESIDE)
def test_adjacent_locations_do_not_conflict(lab: StoreLab, world: StoreWorld, first: str, second: str) -> None:
    """Locations of which one name is a text prefix of the other, or that are adjacent in order, do not conflict."""
    lab.write(lambda tx: tx.documents.create(document(7, location=first)), zone=world.main.id)

    lab.write(lambda tx: tx.documents.create(document(8, location=second)), zone=world.main.id)

    assert lab.load(document_read(8)).location == second


def test_a_table_may_move_within_its_own_location(lab: StoreLab, world: StoreWorld) -> None:
    """A table may move within its own location."""
    lab.write(lambda tx: tx.documents.create(document(7, location="file:///w/a")), zone=world.main.id)
    deeper = document(7, version=2, location="file:///w/a/b")

    assert lab.write(lambda tx: tx.documents.swap(deeper, expected=1), zone=world.main.id) is True


@pytest.mark.parametrize("first, second", [("file:///w/a", "file:///w/a/b"), ("file:///w/a/b", "file:///w/a")])
def test_later_concurrent_create_of_a_nested_location_is_refused(
    lab: StoreLab, world: StoreWorld, first: str, second: str
) -> None:
    """If two nodes create tables of two catalogs concurrently, one inside the other, the later one is refused."""
    nodes, began, ended = [lab.store, lab.open()], threading.Event(), threading.Event()

    def slow(tx: Tx) -> None:
        tx.documents.create(document(7, location=first))
        began.set()
        if lab.database.kind == "postgres":  # on SQLite a mutation locks the whole file
            ended.wait(0.5)  # a mutation that need not wait for this transaction has ended by then

    async def race() -> list[object]:
        one = asyncio.create_task(nodes[0].submit(lab.permit(world.main.id), slow))
        await asyncio.to_thread(began.wait)
        other = nodes[1].submit(lab.permit(world.side.id), lambda tx: tx.documents.create(document(8, location=second)))
        outcome = (await asyncio.gather(other, return_exceptions=True))[0]
        ended.set()
        await one
        return [outcome]

    assert [type(each).__name__ for each in lab.run(race())] == ["BadRequest"]
    assert lab.load(document_read(8)) is None


FLIPS = {
    "sqlite": (
        "UPDATE document SET body = CAST(substr(body, 1, 9) || x'FF' || substr(body, 11) AS blob) WHERE node_id = 7"
    ),
    "postgres": "UPDATE document SET body = set_byte(body, 9, 255) WHERE node_id = 7",
}


def flipped(value: bytes) -> Iterator[bytes]:
    """Yield copies of a value, each with another bit changed."""
    for bit in range(8 * len(value)):
        changed = bytearray(value)
        changed[bit // 8] ^= 1 << bit % 8
        yield bytes(changed)


def test_each_changed_bit_of_the_body_is_detected() -> None:
    """Each single bit of a body counts."""
    whole = document(7)
    digest = digest_of(whole, version=1)

    changed = [msgspec.structs.replace(whole, body=body) for body in flipped(whole.body)]

    assert is_intact(whole, digest)
    assert [each for each in changed if is_intact(each, digest)] == []


@pytest.mark.parametrize("field", ["uuid", "location", "metadata_location"])
def test_each_changed_character_of_the_other_columns_is_detected(field: str) -> None:
    """A changed character of the other columns counts, and so does one that moved from one column to the next."""
    whole = document(7)
    digest = digest_of(whole, version=1)
    value = getattr(whole, field)

    changed = [value[:at] + "~" + value[at + 1 :] for at in range(len(value))] + [value + "f", value[:-1]]

    assert [each for each in changed if is_intact(msgspec.structs.replace(whole, **{field: each}), digest)] == []


def test_digest_of_another_version_is_ignored() -> None:
    """A digest that an older release left beside a newer document, and an unknown one, are accepted."""
    newer = document(7, version=2)

    assert is_intact(newer, digest_of(document(7), version=1))
    assert is_intact(newer, None)
    assert not is_intact(newer, digest_of(document(7), version=2))


def test_changed_document_is_never_read(lab: StoreLab, world: StoreWorld) -> None:
    """Each read of a document with a changed byte fails, and names the damage. Background work leaves it out."""
    zone = world.main.id
    lab.write(lambda tx: tx.documents.create(document(7)), zone=zone)
    lab.write(lambda tx: tx.documents.create(document(8)), zone=zone)
    lab.database.sql(FLIPS[lab.database.kind])

    for read in (lambda: lab.load(document_read(7)), lambda: lab.load(documents_read([8, 7]))):
        with pytest.raises(StoreDamaged, match="limnos server check"):
            read()
    with pytest.raises(StoreDamaged, match="limnos server check"):
        lab.write(lambda tx: tx.documents.read(7), zone=zone)

    assert lab.load(document_read(8)) == document(8)
    assert lab.load(intact_documents_read([7, 8])) == {8: document(8)}


def test_changed_document_is_not_exported(lab: StoreLab, world: StoreWorld) -> None:
    """An export ends with the error instead of copying the damage."""
    node_id = world.main.id
    lab.write(lambda tx: tx.documents.create(document(node_id)), zone=node_id)
    assert export_node_of(lab.find(nodes_query([node_id]))[0]).document == document(node_id)
    lab.database.sql(f"UPDATE document SET location = 'file:/w/elsewhere' WHERE node_id = {node_id}")

    with pytest.raises(StoreDamaged):
        export_node_of(lab.find(nodes_query([node_id]))[0])


def test_each_write_stores_the_digest(lab: StoreLab, world: StoreWorld) -> None:
    """Both inserts and a swap store the digest of the version that they write."""
    zone = world.main.id
    lab.write(lambda tx: tx.documents.create(document(7)), zone=zone)
    lab.write(lambda tx: tx.documents.insert(document(8)), zone=zone)
    lab.write(lambda tx: tx.documents.swap(document(8, version=2), expected=1, relocates=False), zone=zone)

    assert dict(lab.database.sql("SELECT node_id, digest FROM document")) == {
        7: digest_of(document(7), version=1),
        8: digest_of(document(8, version=2), version=2),
    }


def test_write_of_an_older_release_is_accepted(lab: StoreLab, world: StoreWorld) -> None:
    """A commit by a release without digests, while both releases run, is read; the next commit stores its digest."""
    zone = world.main.id
    lab.write(lambda tx: tx.documents.create(document(7)), zone=zone)
    lab.database.sql("UPDATE document SET version = version + 1, uuid = 'other' WHERE node_id = 7")

    read: MetadataDocument | None = lab.load(document_read(7))

    assert read is not None
    assert (read.uuid, read.version) == ("other", 2)
    lab.write(lambda tx: tx.documents.swap(document(7, version=3), expected=2, relocates=False), zone=zone)
    assert lab.database.sql("SELECT digest FROM document") == [(digest_of(document(7, version=3), version=3),)]


def test_digest_by_another_function_is_ignored() -> None:
    """A positive digest is by another function than CRC-32C, and says nothing."""
    whole = document(7)

    assert digest_of(whole, version=1) < 0
    assert is_intact(whole, (1 << 32) | 5)


@pytest.mark.parametrize("left", ["NULL", "digest - 4294967296", "12345"], ids=["none", "older version", "other kind"])
def test_missing_digests_are_filled(lab: StoreLab, world: StoreWorld, left: str) -> None:
    """Documents that an older release wrote get their digests in batches, and damage of them is noticed from then on.
    Other documents are not read.
    """
    for node_id in (7, 8, 9):
        lab.write(lambda tx, node_id=node_id: tx.documents.create(document(node_id)), zone=world.main.id)
    before = lab.database.sql("SELECT node_id, digest FROM document ORDER BY node_id")
    lab.database.sql(f"UPDATE document SET digest = {left} WHERE node_id IN (7, 8)")

    counts = [lab.write(lambda tx: tx.documents.fill_digests()) for _ in range(2)]

    assert counts == [2, 0]
    assert lab.database.sql("SELECT node_id, digest FROM document ORDER BY node_id") == before
    lab.database.sql(FLIPS[lab.database.kind])
    with pytest.raises(StoreDamaged):
        lab.load(document_read(7))
