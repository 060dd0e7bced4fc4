# SPDX-License-Identifier: Apache-2.0
"""Metadata documents in the store: compare-and-swap, and one table per location."""

from __future__ import annotations

import asyncio
import re
import threading

import msgspec
import pytest
from sqlalchemy import Index

from limnos.model.entities import MetadataDocument
from limnos.model.errors import BadRequest
from limnos.store.objects import documents
from limnos.store.objects.documents import document_read, intact_documents_read
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
