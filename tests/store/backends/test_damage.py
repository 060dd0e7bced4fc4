# SPDX-License-Identifier: Apache-2.0
"""The search for damage: overwritten pages of tables and indexes, changed bits of documents, and a whole store."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from limnos.model.entities import MetadataDocument
from limnos.store.backends.damage import Damage, find_damage, first_damage
from tests.backends import PostgresServer, StoreLab, sqlite_copy
from tests.store.backends.test_sqlite_errors import zero_root_page
from tests.store.objects.test_documents import FLIPS, document
from tests.store.world import make_world

DIGEST_DIFFERS = Damage("the metadata of object 7", "it is not what was written: its digest differs")


@pytest.fixture
def lab(sqlite_template: Path, tmp_path: Path) -> Iterator[StoreLab]:
    """A lab on an SQLite file."""
    lab = StoreLab(sqlite_copy(sqlite_template, tmp_path))
    yield lab
    lab.close()


def fill(lab: StoreLab, count: int) -> Path:
    """Write documents from id 7 on. Returns the path of an SQLite file."""
    world = make_world(lab)
    for node_id in range(7, 7 + count):
        lab.write(lambda tx, node_id=node_id: tx.documents.create(document(node_id)), zone=world.main.id)
    return Path(lab.database.address)


def zero_last_leaf(path: Path, table: str) -> None:
    """Overwrite the last page of a table of several pages with zeroes."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        pages = connection.execute(
            "SELECT pageno FROM dbstat WHERE name = ? AND pagetype = 'leaf' ORDER BY path", (table,)
        ).fetchall()
        (size,) = connection.execute("PRAGMA page_size").fetchone()
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert len(pages) > 1
    with path.open("r+b") as file:
        file.seek((pages[-1][0] - 1) * size)
        file.write(bytes(size))


def test_whole_store_has_no_damage(lab: StoreLab) -> None:
    """A store without damage is reported as whole by the quick look and by the whole search."""
    path = fill(lab, 3)

    assert first_damage(path) is None
    assert find_damage(str(path)) == []


@pytest.mark.parametrize("table", ["document", "access_grant", "change"])
def test_overwritten_first_page_of_a_table_is_named(lab: StoreLab, table: str) -> None:
    """A table whose first page has only zeroes is named, at a start, too."""
    path = fill(lab, 3)
    zero_root_page(path, table)

    first = first_damage(path)

    assert first is not None
    assert first.part == f"table {table}"
    assert [each.part for each in find_damage(str(path))] == [f"table {table}"]


def test_overwritten_later_page_of_a_table_is_named(lab: StoreLab) -> None:
    """A start does not read all pages of a table, the search does."""
    path = fill(lab, 200)
    zero_last_leaf(path, "document")

    assert first_damage(path) is None
    assert [each.part for each in find_damage(str(path))] == ["table document"]


def test_overwritten_index_is_named_by_its_table(lab: StoreLab) -> None:
    """A damaged index is reported with the table that it is of."""
    path = fill(lab, 3)
    zero_root_page(path, "document_uuid")

    assert [each.part for each in find_damage(str(path))] == ["table document"]


def test_overwritten_header_is_reported(lab: StoreLab) -> None:
    """A file that is no database anymore is reported, not raised."""
    path = fill(lab, 3)
    lab.database.sql("PRAGMA wal_checkpoint(TRUNCATE)")
    with path.open("r+b") as file:
        file.write(bytes(100))

    assert [each.part for each in find_damage(str(path))] == ["the list of tables"]


def test_locked_file_is_not_reported_as_damaged(
    sqlite_template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that another program has locked for itself raises SQLite's error."""
    path = Path(sqlite_copy(sqlite_template, tmp_path).address)
    real = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *words, **named: real(*words, **{"timeout": 0.1, **named}))

    with closing(real(path, isolation_level=None)) as other:
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("PRAGMA journal_mode = DELETE")
        other.execute("BEGIN EXCLUSIVE")
        for look in (lambda: first_damage(path), lambda: find_damage(str(path))):
            with pytest.raises(sqlite3.OperationalError, match="locked"):
                look()


def test_changed_bit_of_a_document_is_named(lab: StoreLab) -> None:
    """A document with a changed byte is named by its object; the file itself is well."""
    path = fill(lab, 300)
    lab.database.sql(FLIPS["sqlite"])

    assert first_damage(path) is None
    assert find_damage(str(path)) == [DIGEST_DIFFERS]


def test_invalid_text_of_a_document_is_named(lab: StoreLab) -> None:
    """A changed bit that makes text invalid is damage of that document."""
    path = fill(lab, 1)
    lab.database.sql("UPDATE document SET uuid = CAST(x'757569642dff' AS text) WHERE node_id = 7")

    assert find_damage(str(path)) == [DIGEST_DIFFERS]


@pytest.mark.integration
def test_damage_of_documents_is_found_on_postgres(postgres_server: PostgresServer) -> None:
    """The search reads all documents of a database, and passes on those that are not damaged."""
    lab = StoreLab(postgres_server.fresh_database())
    try:
        fill(lab, 3)
        assert find_damage(lab.database.address) == []
        lab.database.sql(FLIPS["postgres"])
        inspected: list[MetadataDocument] = []
        assert find_damage(lab.database.address, inspect=inspected.append) == [DIGEST_DIFFERS]
        assert sorted(each.node_id for each in inspected) == [8, 9]
    finally:
        lab.close()
