# SPDX-License-Identifier: Apache-2.0
"""Records of a metalake on key-value pairs: objects by id and by name below their parent, and the records that belong
to them.

May import `model`, `formats.exchange` and this package's `storage`. Must not know the database of the pairs. The values
are the Protobuf messages of an export (`proto/limnos/v1`), so that exports can be read and written. Keys begin with a
letter; integers in them have eight bytes, big-endian:

    m                        the header of the export that the records come from
    r                        the revision: the count of transactions so far
    i                        the next sequence number for a record that belongs to an object
    e ID                     an object, user, group or role
    n PARENT SPACE 0 NAME    the id of the object with this name; SPACE is the name space of its kind
    h SORT OWNER NUMBER      a record that belongs to an object: a role's grant, a model's version, a link by its origin
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, Protocol, cast

from limnos.formats.exchange import messages
from limnos.model.errors import AlreadyExists, BadRequest, CommitConflict, NotEmpty, NotFound
from limnos.model.kind_table import name_space_of
from limnos.model.kinds import ROOT_ID, SHARED_SPACE, Kind
from limnos.model.proto.limnos.v1.export_pb2 import ExportRecord
from limnos.store.key_value_records.storage import KEY_BYTES_MAX, KeyValueReader, KeyValueStore, KeyValueTransaction

_OBJECTS: Final = ("principal", "metalake", "catalog", "namespace", "table", "entity", "role")
"""Records that are objects, in the order of an export; the tree itself is ordered by depth."""
_SORTS: Final = (
    "model_version",
    "tagged",
    "lance_version",
    "declaration",
    "uses",
    "member",
    "policed",
    "statistic",
    "protected",
    "grant",
    "holder",
)
"""Records that belong to an object, in the order of an export. Numbers are stored: add a new sort at the end."""
_OWNERS: Final = {
    "model_version": "model_id",
    "lance_version": "table_id",
    "declaration": "pipeline_id",
    "statistic": "table_id",
    "grant": "role_id",
    "link": "from_id",
}
_SPACES: Final = (*dict.fromkeys(name_space_of(kind) for kind in Kind), SHARED_SPACE)
_HEADER, _REVISION, _NUMBER, _OBJECT, _NAME, _HANGING = (letter.encode() for letter in "mrienh")


def _encode_id(number: int) -> bytes:
    return number.to_bytes(8, "big")


def _number(data: bytes | None) -> int:
    return int.from_bytes(data or b"", "big")


def object_of(record: ExportRecord) -> str | None:
    """Return the Protobuf field that an object's record sets.

    None for records that belong to an object, and for header and trailer.
    """
    word = record.WhichOneof("record") or ""
    return word if word in _OBJECTS else None


def kind_of(record: ExportRecord) -> Kind:
    """Return the kind of an object's record. Raises BadRequest for a kind of a newer release."""
    word = object_of(record) or ""
    result = getattr(record, word).kind if word in ("principal", "entity") else word
    if result.upper() not in Kind.__members__:
        raise BadRequest(f"This release does not support kind {result[:40]!a}: use a newer one")
    return Kind[result.upper()]


def name_of(record: ExportRecord) -> str:
    """Return an object's name."""
    return _message(record).name


def id_of(record: ExportRecord) -> int:
    """Return an object's id."""
    return _message(record).id


class RecordReader:
    """Reads records from one snapshot of the store."""

    def __init__(self, pairs: KeyValueReader) -> None:
        self._pairs = pairs

    @property
    def revision(self) -> int:
        """The revision of the snapshot: the count of committed transactions."""
        return _number(self._pairs.get(_REVISION))

    @property
    def header(self) -> ExportRecord | None:
        """The header of the export that the records come from; None before an export is loaded."""
        return self._record(_HEADER)

    def by_id(self, object_id: int) -> ExportRecord | None:
        """Read the record of an object by its id, or None."""
        return self._record(_OBJECT + _encode_id(object_id))

    def find(self, parent_id: int, space: str, *, name: str) -> ExportRecord | None:
        """Return the object with a name below a parent, or None."""
        data = self._pairs.get(_name_key(parent_id, space, name=name))
        return None if data is None else self.by_id(_number(data))

    def children(self, parent_id: int, space: str = "") -> Iterator[ExportRecord]:
        """Yield the children of an object, optionally of one name space: by name space, then by name in code point
        order.
        """
        prefix = _NAME + _encode_id(parent_id) + (f"{space}\0".encode() if space else b"")
        for _, object_id in self._pairs.scan(prefix):
            yield cast("ExportRecord", self.by_id(_number(object_id)))

    def named(self, parent_id: int, name: str) -> list[ExportRecord]:
        """Return all objects with a name below a parent, one per name space: a namespace and a table may share a
        name.
        """
        records = [self.find(parent_id, space, name=name) for space in _SPACES]
        return [each for each in records if each is not None]

    def walk(self, path: Sequence[str]) -> list[ExportRecord]:
        """Return the objects at a path below the metalake: at most one per name space.

        Raises NotFound if there is no metalake.
        """
        records = [self.metalake]
        for name in path:
            records = [below for each in records for below in self.named(id_of(each), name)]
        return records

    @property
    def metalake(self) -> ExportRecord:
        """The metalake of all records. Raises NotFound if the store is empty."""
        lake = next(self.children(ROOT_ID), None)
        if lake is None:
            raise NotFound("There is no metalake in these records: load an export first", kind="metalake")
        return lake

    def hanging(self, object_id: int) -> Iterator[ExportRecord]:
        """Yield the records that belong to an object, such as its grants, tags and versions."""
        for sort in range(len(_SORTS)):
            for _, value in self._pairs.scan(_HANGING + bytes([sort]) + _encode_id(object_id)):
                yield ExportRecord.FromString(value)

    def everything(self) -> Iterator[ExportRecord]:
        """Yield all records in the order of an export: no record refers to a later one.

        Raises NotFound if there are none.
        """
        lake = self.metalake
        count = 0
        for count, record in enumerate(self._ordered(lake), 1):  # noqa: B007 - its last value goes into the trailer
            yield record
        yield messages.trailer(count)

    def _ordered(self, lake: ExportRecord) -> Iterator[ExportRecord]:
        header = self.header
        if header is None:
            raise NotFound("There is no header in these records: load an export first", kind="metalake")
        yield header
        yield lake
        for kind in (Kind.USER, Kind.GROUP):
            yield from self.children(lake.metalake.id, kind.word)
        yield from self._below(lake.metalake.id)
        for sort, word in enumerate(_SORTS):
            if word == "grant":
                yield from self.children(lake.metalake.id, Kind.ROLE.word)
            for _, value in self._pairs.scan(_HANGING + bytes([sort])):
                yield ExportRecord.FromString(value)

    def _below(self, parent_id: int) -> Iterator[ExportRecord]:
        """Yield the descendants of an object in the tree, level by level. Holds only the ids of one level in memory."""
        level = [parent_id]
        while level:
            lower: list[int] = []
            for each in level:
                for record in self.children(each):
                    if object_of(record) not in ("principal", "role"):
                        yield record
                        lower.append(id_of(record))
            level = lower

    def _record(self, key: bytes) -> ExportRecord | None:
        data = self._pairs.get(key)
        return None if data is None else ExportRecord.FromString(data)


class RecordWrites(RecordReader):
    """Reads and writes records inside one write transaction."""

    def __init__(self, pairs: KeyValueTransaction) -> None:
        super().__init__(pairs)
        self._pairs: KeyValueTransaction = pairs
        self._providers: dict[int, str] = {}
        """Providers of catalogs by id. They never change."""

    def put(self, record: ExportRecord) -> None:
        """Insert an object, or replace the one with its id, even if its parent or name differs.

        Its descendants remain below it.

        Raises:
            NotFound: The parent does not exist.
            AlreadyExists: The name is taken.
            BadRequest: The object would lie below itself, its name is too long for a key, or its kind is unknown.
        """
        object_id, parent_id, key = id_of(record), self._parent_of(record), self._key_of(record)
        before = self.by_id(object_id)
        if before is not None and self._parent_of(before) != parent_id:
            self._refuse_within(record, parent_id)
        if parent_id != ROOT_ID and self._pairs.get(_OBJECT + _encode_id(parent_id)) is None:
            raise NotFound(f"There is no object {parent_id} for {name_of(record)} to contain it", kind="namespace")
        data = self._pairs.get(key)
        if data is not None and _number(data) != object_id:
            kind, name = kind_of(record), name_of(record)
            raise AlreadyExists(f"{kind.word.capitalize()} already exists: {name}", kind=kind.word)
        if before is not None:
            self._pairs.delete(self._key_of(before))
        self._pairs.put(key, _encode_id(object_id))
        self._pairs.put(_OBJECT + _encode_id(object_id), record.SerializeToString(deterministic=True))

    def _refuse_within(self, record: ExportRecord, above: int) -> None:
        """Raise BadRequest if the record is an ancestor of its new parent `above`, or that parent itself."""
        export_record: ExportRecord | None = record
        while export_record is not None and above != ROOT_ID:
            if above == id_of(record):
                raise BadRequest(f"{name_of(record)} would contain itself")
            export_record = self.by_id(above)
            above = ROOT_ID if export_record is None else self._parent_of(export_record)

    def drop(self, object_id: int) -> None:
        """Delete an object with the records that belong to it.

        Raises NotFound if it does not exist, NotEmpty if it has children.
        """
        record = self.by_id(object_id)
        if record is None:
            raise NotFound(f"There is no object {object_id}", kind="namespace")
        child = next(self.children(object_id), None)
        if child is not None:
            kind = kind_of(record).word
            what = f"{kind_of(child).word} {name_of(child)}"
            raise NotEmpty(f"{kind.capitalize()} {name_of(record)} is not empty: drop its {what} first", kind=kind)
        for sort in range(len(_SORTS)):
            for key, _ in list(self._pairs.scan(_HANGING + bytes([sort]) + _encode_id(object_id))):
                self._pairs.delete(key)
        self._pairs.delete(self._key_of(record))
        self._pairs.delete(_OBJECT + _encode_id(object_id))

    def hang(self, record: ExportRecord) -> None:
        """Add a record that belongs to an object, such as a grant or a model version.

        Raises NotFound if the object does not exist.
        """
        word = record.WhichOneof("record") or ""
        message = getattr(record, word)
        owner = getattr(message, _OWNERS[word])
        if self._pairs.get(_OBJECT + _encode_id(owner)) is None:
            raise NotFound(f"There is no object {owner} for a {word}", kind="namespace")
        number = _number(self._pairs.get(_NUMBER))
        self._pairs.put(_NUMBER, _encode_id(number + 1))
        sort = _SORTS.index(message.kind if word == "link" else word)
        key = _HANGING + bytes([sort]) + _encode_id(owner) + _encode_id(number)
        self._pairs.put(key, record.SerializeToString(deterministic=True))

    def replace(self, records: Iterable[ExportRecord]) -> int:
        """Replace all records by those of an export. Returns the number of records.

        Raises:
            BadRequest: The export is truncated or out of order.
            CommitConflict: The export is of another metalake, or older than the stored records.
            LimnosError: Any error of `put` and `hang`.
        """
        revision, before = self.revision, self.header
        self._pairs.clear()
        self._pairs.put(_REVISION, _encode_id(revision))
        number, count = None, 0
        for count, record in enumerate(records, 1):
            word = record.WhichOneof("record")
            if number is not None or (count == 1) != (word == "header") or (count == 2) != (word == "metalake"):
                raise BadRequest(f"Record {count} is in the wrong place: this is not an export, or it is damaged")
            if word == "trailer":
                number = record.trailer.records
            elif word == "header":
                _require_later(record, before)
                self._pairs.put(_HEADER, record.SerializeToString(deterministic=True))
            elif object_of(record):
                self.put(record)
            else:
                self.hang(record)
        if number != count:
            raise BadRequest(f"The export is truncated: it has {count} records and no last record. Export again")
        return count

    def _key_of(self, record: ExportRecord) -> bytes:
        return _name_key(self._parent_of(record), self._space_of(record), name=name_of(record))

    def _parent_of(self, record: ExportRecord) -> int:
        match object_of(record):
            case "catalog":
                return record.catalog.metalake_id
            case "namespace":
                return record.namespace.parent_id or record.namespace.catalog_id
            case "table":
                return record.table.namespace_id or record.table.catalog_id
            case "entity":
                return record.entity.parent_id
            case "principal" | "role":
                return self.metalake.metalake.id
            case _:
                return ROOT_ID

    def _space_of(self, record: ExportRecord) -> str:
        catalog_id = getattr(_message(record), "catalog_id", 0)
        if catalog_id and catalog_id not in self._providers:
            catalog = self.by_id(catalog_id)
            self._providers[catalog_id] = "" if catalog is None else catalog.catalog.provider
        return name_space_of(kind_of(record), self._providers.get(catalog_id, ""))


class RecordStore:
    """The records of a metalake in a key-value database."""

    def __init__(self, pairs: KeyValueStore) -> None:
        self._pairs = pairs

    @contextmanager
    def reading(self) -> Iterator[RecordReader]:
        """Open a read snapshot for the `with` block."""
        with self._pairs.reading() as reader:
            yield RecordReader(reader)

    @contextmanager
    def writing(self, *, expected: int | None = None) -> Iterator[RecordWrites]:
        """Open a write transaction.

        Raises CommitConflict if the store's revision differs from `expected` (None: any revision).
        """
        with self._pairs.writing() as transaction:
            writes = RecordWrites(transaction)
            revision = writes.revision
            if expected is not None and revision != expected:
                raise CommitConflict(f"The records are at revision {revision}, not at {expected}: read them again")
            yield writes
            transaction.put(_REVISION, _encode_id(revision + 1))

    def close(self) -> None:
        """Close the database."""
        self._pairs.close()


def _require_later(record: ExportRecord, before: ExportRecord | None) -> None:
    if before is None:
        return
    new, old = record.header, before.header
    if (new.epoch, new.metalake) != (old.epoch, old.metalake):
        raise CommitConflict(
            f"These records belong to metalake {old.metalake} of another store, or to another metalake: load this export into another database"
        )
    if (new.server_revision, new.metalake_revision) < (old.server_revision, old.metalake_revision):
        raise CommitConflict(f"These records are newer than this export of metalake {old.metalake}: export it again")


class _NamedMessage(Protocol):
    """The fields common to the messages of all objects."""

    id: int
    name: str


def _message(record: ExportRecord) -> _NamedMessage:
    return cast("_NamedMessage", getattr(record, object_of(record) or ""))


def _name_key(parent_id: int, space: str, *, name: str) -> bytes:
    key = _NAME + _encode_id(parent_id) + f"{space}\0{name}".encode()
    if len(key) > KEY_BYTES_MAX:
        raise BadRequest(f"A name of {len(name.encode())} bytes is longer than a key can be: {name[:40]!a}…")
    return key
