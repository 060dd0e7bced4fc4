# SPDX-License-Identifier: Apache-2.0
"""Digests of metadata documents: a changed bit is an error, and a row without a digest of its version is accepted."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pytest

from limnos.model.entities import MetadataDocument
from limnos.model.errors import StoreDamaged
from limnos.store.exchange.exports import export_node_of, nodes_query
from limnos.store.objects.document_digests import digest_of, is_intact
from limnos.store.objects.documents import document_read, documents_read, intact_documents_read
from tests.backends import StoreLab
from tests.store.objects.test_documents import document
from tests.store.world import StoreWorld

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
