# SPDX-License-Identifier: Apache-2.0
"""The record store, on each key-value database: the guarantees of the tree of nodes for the supported operations."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from limnos.formats.exchange import messages
from limnos.model.errors import AlreadyExists, BadRequest, CommitConflict, NotEmpty, NotFound
from limnos.model.kinds import ROOT_ID
from limnos.model.proto.limnos.v1 import export_pb2, schema_pb2
from limnos.model.proto.limnos.v1.export_pb2 import ExportRecord
from limnos.store.key_value_records.records import RecordStore, RecordWrites, id_of, name_of
from limnos.store.key_value_records.storage import KEY_BYTES_MAX
from tests.store.pair_stores import KINDS, opener
from tests.store.world import ASTRAL

LAKE, MAIN, LANCE = 1, 2, 3


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[RecordStore]:
    """A metalake with two catalogs."""
    record_store = RecordStore(opener(request.param, tmp_path, request)())
    with record_store.writing() as writes:
        writes.put(ExportRecord(metalake=schema_pb2.Metalake(id=LAKE, name="lake")))
        for catalog_id, name, provider in ((MAIN, "main", "lakehouse-iceberg"), (LANCE, "lance", "lakehouse-generic")):
            catalog = schema_pb2.Catalog(id=catalog_id, metalake_id=LAKE, name=name, provider=provider)
            writes.put(ExportRecord(catalog=catalog))
    yield record_store
    record_store.close()


def namespace(object_id: int, name: str, *, parent: int = 0, catalog: int = MAIN, comment: str = "") -> ExportRecord:
    """Return the record of a namespace."""
    message = schema_pb2.Namespace(id=object_id, catalog_id=catalog, name=name, comment=comment)
    if parent:
        message.parent_id = parent
    return ExportRecord(namespace=message)


def table(object_id: int, name: str, *, parent: int, catalog: int = MAIN) -> ExportRecord:
    """Return the record of a table with a column."""
    column = schema_pb2.Column(id=1, name="x", type="long")
    message = schema_pb2.Table(id=object_id, namespace_id=parent, catalog_id=catalog, name=name, columns=[column])
    return ExportRecord(table=message)


def write(store: RecordStore, *records: ExportRecord) -> None:
    """Write objects in one transaction."""
    with store.writing() as writes:
        for record in records:
            writes.put(record)


def names(store: RecordStore, parent: int, space: str = "namespace") -> list[str]:
    """Return the names below an object."""
    with store.reading() as reads:
        return [name_of(each) for each in reads.children(parent, space)]


def path(store: RecordStore, *parts: str) -> list[int | None]:
    """Return the ids on a path of namespaces below catalog `main`, with None from the first missing one on."""
    ids: list[int | None] = []
    with store.reading() as reads:
        at: int | None = MAIN
        for part in parts:
            record = None if at is None else reads.find(at, "namespace", name=part)
            at = None if record is None else id_of(record)
            ids.append(at)
    return ids


def test_object_is_read_with_all_fields_by_id_and_name(store: RecordStore) -> None:
    """An object is read by id and by name with all of its fields, including unknown ones of a newer release. A missing
    object is None.
    """
    record = namespace(10, "ünïcode 表", comment="c")
    record.unknown = b"\x00\xff"
    write(store, record, table(11, "t", parent=10))

    with store.reading() as reads:
        assert reads.by_id(10) == reads.find(MAIN, "namespace", name="ünïcode 表") == record
        assert reads.by_id(11) == reads.find(10, "table", name="t") == table(11, "t", parent=10)
        assert (reads.by_id(12), reads.find(MAIN, "namespace", name="ünïcode")) == (None, None)


@pytest.mark.parametrize("depth", range(1, 7))
def test_path_of_any_depth_is_resolved(store: RecordStore, depth: int) -> None:
    """A path of any depth is resolved by names, and ends where a part is missing."""
    for step in range(depth):
        write(store, namespace(10 + step, "abcdef"[step], parent=9 + step if step else 0))

    assert path(store, *"abcdef") == [*range(10, 10 + depth), *[None] * (6 - depth)]


def test_names_sort_by_code_point(store: RecordStore) -> None:
    """Names sort by code point without a locale: astral characters last, upper case before lower, a prefix before a
    longer name.
    """
    sent = [ASTRAL, "\ufffd", "é", "z", "a", "Z", "a b", "a:b", "a%b", "ａ", "ab"]

    write(store, *(namespace(10 + place, name) for place, name in enumerate(sent)))

    assert names(store, MAIN) == sorted(sent)


def test_a_name_is_unique_in_its_space(store: RecordStore) -> None:
    """A taken name is refused with the kind of the refused object, and nothing is written. In another name space the
    name is free.
    """
    write(store, namespace(10, "a"), table(11, "a", parent=10))

    with pytest.raises(AlreadyExists, match="Namespace already exists: a"):
        write(store, namespace(12, "b"), namespace(13, "a"))

    assert names(store, MAIN) == ["a"]
    write(store, namespace(13, "A"), namespace(14, "a", parent=10))
    assert (names(store, MAIN), names(store, 10), names(store, 10, "table")) == (["A", "a"], ["a"], ["a"])


def test_lance_catalog_has_one_name_space(store: RecordStore) -> None:
    """In a Lance catalog two objects below one namespace cannot have the same name, whatever their kinds."""
    write(store, namespace(10, "a", catalog=LANCE), table(11, "x", parent=10, catalog=LANCE))

    with pytest.raises(AlreadyExists):
        write(store, namespace(12, "x", parent=10, catalog=LANCE))


def test_move_takes_the_subtree_along(store: RecordStore) -> None:
    """A move takes the subtree along: the old name is free, the new name leads to it, and ids do not change."""
    write(store, namespace(10, "a"), namespace(11, "b", parent=10), namespace(12, "c", parent=11), namespace(13, "t"))

    write(store, namespace(11, "B", parent=13))

    assert path(store, "t", "B", "c") == [13, 11, 12]
    assert path(store, "a", "b") == [10, None]
    write(store, namespace(14, "b", parent=10))
    with pytest.raises(AlreadyExists):
        write(store, namespace(14, "B", parent=13))


def test_move_below_itself_or_to_a_missing_parent_is_refused(store: RecordStore) -> None:
    """A move below the object itself, at any depth, and a move to a missing parent are refused."""
    write(store, namespace(10, "a"), namespace(11, "b", parent=10), namespace(12, "c", parent=11))

    for parent in (10, 11, 12):
        with pytest.raises(BadRequest, match="a would contain itself"):
            write(store, namespace(10, "a", parent=parent))
    with pytest.raises(NotFound, match="There is no object 77"):
        write(store, namespace(13, "d", parent=77))
    assert path(store, *"abc") == [10, 11, 12]


def test_non_empty_container_is_not_dropped(store: RecordStore) -> None:
    """A container with content is not dropped, and the refusal names the content. When it is empty it can be dropped,
    and its name is free.
    """
    write(store, namespace(10, "a"), table(11, "t", parent=10))

    with pytest.raises(NotEmpty, match="drop its table t first"), store.writing() as writes:
        writes.drop(10)
    with store.writing() as writes:
        writes.drop(11)
        writes.drop(10)
    with pytest.raises(NotFound), store.writing() as writes:
        writes.drop(10)

    assert path(store, "a") == [None]
    write(store, namespace(12, "a"))
    assert path(store, "a") == [12]


def test_attached_records_are_deleted_with_their_object(store: RecordStore) -> None:
    """Attached records of an object are read in order and are deleted with it. Attaching to a missing object is
    NotFound.
    """
    role = ExportRecord(role=export_pb2.Role(id=20, name="reading"))
    grants = [messages.grant(20, on, privilege="use_schema", allowed=on != 11) for on in (MAIN, 11, 10)]
    write(store, namespace(10, "a"), namespace(11, "b"), role)
    with store.writing() as writes:
        for grant in grants:
            writes.hang(grant)

    with store.reading() as reads:
        assert list(reads.hanging(20)) == grants
        assert list(reads.hanging(10)) == []
    with pytest.raises(NotFound, match="There is no object 21 for a grant"), store.writing() as writes:
        writes.hang(messages.grant(21, 10, privilege="use_schema", allowed=True))
    with store.writing() as writes:
        writes.drop(20)
    with store.reading() as reads:
        assert list(reads.hanging(20)) == []


def test_write_with_an_older_revision_is_refused(store: RecordStore) -> None:
    """A write that expects an older revision is refused and writes nothing. A failed transaction takes no revision."""
    with store.reading() as reads:
        base_revision = reads.revision

    with store.writing(expected=base_revision) as writes:
        writes.put(namespace(10, "a"))
    with (
        pytest.raises(CommitConflict, match=f"at revision {base_revision + 1}, not at {base_revision}"),
        store.writing(expected=base_revision) as writes,
    ):
        writes.put(namespace(11, "b"))
    with pytest.raises(AlreadyExists):
        write(store, namespace(11, "a"))

    with store.reading() as reads:
        assert reads.revision == base_revision + 1
    assert names(store, MAIN) == ["a"]


def test_concurrent_compare_and_swap_loses_no_write(store: RecordStore) -> None:
    """Eight threads each write ten objects by compare-and-swap: every revision is one object, and no write is lost."""

    def work(first: int) -> None:
        for object_id in range(first, first + 10):
            while not _swapped(store, namespace(object_id, f"n{object_id}")):
                pass

    with store.reading() as reads:
        first_revision = reads.revision
    threads = [threading.Thread(target=work, args=(100 * (1 + each),)) for each in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    with store.reading() as reads:
        assert reads.revision == first_revision + 80
    assert len(names(store, MAIN)) == 80


def _swapped(store: RecordStore, record: ExportRecord) -> bool:
    with store.reading() as reads:
        revision = reads.revision
    try:
        with store.writing(expected=revision) as writes:
            writes.put(record)
    except CommitConflict:
        return False
    return True


def test_invalid_key_is_refused_by_each_database(store: RecordStore) -> None:
    """Each database refuses an invalid key in the same way."""
    with pytest.raises(BadRequest, match="longer than a key can be"):
        write(store, namespace(10, "x" * KEY_BYTES_MAX))


def test_an_object_of_a_newer_kind_is_refused(store: RecordStore) -> None:
    """An object of an unknown newer kind is refused, and the message says what to do."""
    entity = export_pb2.Entity(id=10, parent_id=MAIN, catalog_id=MAIN, kind="dashboard", name="d")
    with pytest.raises(BadRequest, match="does not support kind 'dashboard': use a newer one"):
        write(store, ExportRecord(entity=entity))


def export(*records: ExportRecord, count: int | None = None) -> list[ExportRecord]:
    """Return an export of a metalake with these records."""
    head = messages.header(metalake="other", product="0", now_ms=1, epoch=1, revisions=(1, 1))
    lake = ExportRecord(metalake=schema_pb2.Metalake(id=5, name="other"))
    return [head, lake, *records, messages.trailer(len(records) + 2 if count is None else count)]


def test_loaded_export_replaces_all_records_of_the_metalake(store: RecordStore) -> None:
    """Loading an export replaces all records of one metalake. The revision increases, and a dump returns the same
    export.
    """
    catalog = ExportRecord(catalog=schema_pb2.Catalog(id=6, metalake_id=5, name="c"))
    sent = export(catalog, namespace(7, "a", catalog=6))
    with store.writing() as writes:
        before = writes.revision
        assert writes.replace(sent) == 5

    with store.reading() as reads:
        assert list(reads.everything()) == sent
        assert [name_of(each) for each in reads.children(ROOT_ID)] == ["other"]
        assert (reads.by_id(MAIN), reads.revision) == (None, before + 1)


def test_earlier_export_or_another_metalake_is_refused(store: RecordStore) -> None:
    """An export of an earlier moment or of another metalake is refused, and the store is not changed. An export of the
    same moment is accepted.
    """
    sent = export()
    elsewhere, earlier = export(), export()
    elsewhere[0].header.epoch = 2
    earlier[0].header.metalake_revision = 0
    with store.writing() as writes:
        writes.replace(sent)

    for refused, match in (
        (elsewhere, "load this export into another database"),
        (earlier, "newer than this export of metalake other"),
    ):
        with pytest.raises(CommitConflict, match=match), store.writing() as writes:
            writes.replace(refused)
    with store.writing() as writes:
        assert writes.replace(sent) == 3


def test_path_returns_one_object_per_name_space(store: RecordStore) -> None:
    """A path leads to one object in each name space that has the name, to nothing if a part is missing, and without
    parts to the metalake.
    """
    write(store, namespace(10, "a"), namespace(11, "x", parent=10), table(12, "x", parent=10))
    write(store, namespace(13, "s", catalog=LANCE), table(14, "x", parent=13, catalog=LANCE))

    with store.reading() as reads:
        path_ids = [
            [id_of(each) for each in reads.walk(parts)]
            for parts in ((), ("main",), ("main", "a", "x"), ("lance", "s", "x"), ("main", "b", "x"))
        ]

    assert path_ids == [[LAKE], [MAIN], [11, 12], [14], []]


@pytest.mark.parametrize(
    "broken, match",
    [
        (export()[:-1], "is truncated: it has 2 records and no last record"),
        (export(count=9), "is truncated: it has 3 records"),
        (export()[1:], "Record 1 is in the wrong place"),
        ([*export(), export()[0]], "Record 4 is in the wrong place"),
        (export(namespace(7, "a", catalog=6)), "There is no object 6 for a to contain it"),
        ([], "is truncated: it has 0 records"),
    ],
)
def test_invalid_export_changes_nothing(store: RecordStore, broken: list[ExportRecord], match: str) -> None:
    """An invalid export changes nothing: truncated, miscounted, without header, followed by another one, with a missing
    parent, or empty.
    """

    def take(writes: RecordWrites) -> None:
        writes.replace(broken)

    with pytest.raises((BadRequest, NotFound), match=match), store.writing() as writes:
        take(writes)

    assert names(store, LAKE, "catalog") == ["lance", "main"]


def test_dump_of_an_empty_store_fails(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """A dump of an empty store fails with a message that says so."""
    store = RecordStore(opener("lmdb", tmp_path, request)())

    with pytest.raises(NotFound, match="load an export first"), store.reading() as reads:
        next(reads.everything())
    store.close()
