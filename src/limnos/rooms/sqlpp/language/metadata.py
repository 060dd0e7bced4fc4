# SPDX-License-Identifier: Apache-2.0
"""The datasets of the dataverse `Metadata`: AsterixDB's records for each kind of object.

Must not know callers or storage. A record is built from the stored object (`MetadataObject`) and the statements that
created it, so a worker process can build many. Names of dataverses have their canonical form, as in AsterixDB. Fields
without a meaning here (node groups, compaction, pending operations) have AsterixDB's values for an idle object.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Final

import msgspec

from limnos.model.kinds import Kind
from limnos.names import canonical
from limnos.names.dataverse import METADATA_NAME
from limnos.rooms.sqlpp.language import tree
from limnos.rooms.sqlpp.language.definitions import arity_of, index_name, statements_of, view_definition
from limnos.rooms.sqlpp.language.metadata_types import FIELDS
from limnos.rooms.sqlpp.language.printer import render
from limnos.rooms.sqlpp.language.stored import BUILT_IN
from limnos.rooms.sqlpp.language.values.model import Bag, DateTime, Value

Levels = tuple[str, ...]
METADATA: Final = (METADATA_NAME,)
FORMAT: Final = "org.apache.asterix.runtime.formats.NonTaggedDataFormat"
NODE: Final = "limnos"
_NODE_GROUP: Final = "DEFAULT_NG_ALL_NODES"
"""The only node group, of which each dataset is a part."""
"""The name of the only node in the metadata, regardless of the number of server nodes."""
ANONYMOUS: Final = "$d$t$i$"
"""The prefix of the name of a dataset's own, unnamed type."""
_KEYS: Final = {
    "Dataverse": ("DataverseName",),
    "Dataset": ("DataverseName", "DatasetName"),
    "Datatype": ("DataverseName", "DatatypeName"),
    "Index": ("DataverseName", "DatasetName", "IndexName"),
    "Function": ("DataverseName", "Name", "Arity"),
    "Synonym": ("DataverseName", "SynonymName"),
    "Library": ("DataverseName", "Name"),
    "Node": ("NodeName",),
    "Nodegroup": ("GroupName",),
    "DatasourceAdapter": ("DataverseName", "Name"),
    "CompactionPolicy": ("DataverseName", "CompactionPolicy"),
    "ExternalFile": ("DataverseName", "DatasetName", "FileNumber"),
    "Feed": ("DataverseName", "FeedName"),
    "FeedConnection": ("DataverseName", "FeedName", "DatasetName"),
    "FeedPolicy": ("DataverseName", "PolicyName"),
    "FullTextConfig": ("DataverseName", "FullTextConfigName"),
    "FullTextFilter": ("DataverseName", "FullTextFilterName"),
}
"""The metadata datasets, with their keys."""
METADATA_DATASETS: Final = tuple(_KEYS)
Fields = dict[str, "Value"]
_WIDTHS: Final = {"tinyint": "int8", "smallint": "int16", "integer": "int32", "bigint": "int64"}
"""AsterixDB's names of the integer types."""
BUILT_IN_NAMES: Final = {name: _WIDTHS.get(own, own) for name, own in BUILT_IN.items()}
"""AsterixDB's names of the built-in types, by each of their names in statements."""


class MetadataObject(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """A stored namespace or object, with its path below the catalog and its creation time in ms since 1970 (0 for
    built-in ones).

    `statements` are the texts of the SQL++ that created it, `dependencies` the names that each of a function's bodies
    uses, `document` a view's JSON.
    """

    kind: Kind
    path: Levels
    id: int = 0
    created_at: int = 0
    statements: tuple[str, ...] = ()
    dependencies: tuple[str, ...] = ()
    document: msgspec.Raw = msgspec.Raw(b"null")

    @property
    def at(self) -> str:
        """The creation time in Java's format: `Sat Nov 21 06:12:04 UTC 2026`."""
        return time.strftime("%a %b %d %H:%M:%S UTC %Y", time.gmtime(self.created_at / 1000))


def metadata_records(
    dataset: str, objects: Iterable[MetadataObject], *, fields: frozenset[str] | None = None, with_built_in: bool = True
) -> Iterator[Value]:
    """Yield the records of a metadata dataset.

    Args:
        dataset: Its name, such as `Dataset` or `Index`.
        objects: The objects to describe.
        fields: The fields of each record; None for all.
        with_built_in: Whether to include the records of the dataverse Metadata itself.
    """
    records = _RECORDS[dataset](objects) if dataset in _RECORDS else iter(())
    if with_built_in and dataset in _BUILT_IN:
        records = chain(_BUILT_IN[dataset](), records)
    for record in records:
        yield record if fields is None else {name: value for name, value in record.items() if name in fields}


def _own_datasets() -> Iterator[Fields]:
    """Yield the records that describe the datasets of the dataverse `Metadata` itself."""
    for number, (name, keys) in enumerate(_KEYS.items(), 1):
        yield _dataset(
            (*METADATA, name),
            number,
            type_name=(*METADATA, f"{name}RecordType"),
            kind="INTERNAL",
            at="",
            details={"InternalDetails": _internal(tuple((key,) for key in keys), autogenerated=False)},
        )


def _own_types() -> Iterator[Fields]:
    """Yield the records of built-in types, and of the record types of the dataverse `Metadata` itself."""
    for name in sorted({"AnyObject", *BUILT_IN_NAMES.values()}):
        yield {"DataverseName": "Metadata", "DatatypeName": name, "Timestamp": ""}
    for name, fields in FIELDS.items():
        declared = [each.partition(" ") for each in fields.split(", ")]
        record: Fields = {
            "IsOpen": True,
            "Fields": tuple(
                {"FieldName": field, "FieldType": type_ or "string", "IsNullable": False, "IsMissable": False}
                for field, _, type_ in declared
            ),
        }
        yield {
            "DataverseName": "Metadata",
            "DatatypeName": f"{name}RecordType",
            "Derived": {"Tag": "RECORD", "IsAnonymous": False, "Record": record},
            "Timestamp": "",
        }


def _nodes() -> Iterator[Fields]:
    """Yield the record of the only node of the node group, which AsterixDB's clients query first."""
    yield {"NodeName": NODE, "NumberOfCores": 0, "WorkingMemorySize": 0}


def _node_groups() -> Iterator[Fields]:
    yield {"GroupName": _NODE_GROUP, "NodeNames": Bag((NODE,)), "Timestamp": ""}


def _dataset_record(one: MetadataObject) -> Fields:
    """Return the record of a table in the dataset `Metadata.Dataset`. A table that SQL++ did not create has no key."""
    datasets = statements_of(one.statements, tree.CreateDataset)
    statement = datasets[0] if datasets else None
    keys = () if statement is None else tuple(key.path for key in statement.keys)
    internal = _internal(keys, autogenerated=statement is not None and statement.autogenerated)
    types = () if statement is None else tuple(_key_type(key.type) for key in statement.keys)
    details: Fields = {"InternalDetails": {**internal, "PrimaryKeyTypes": types} if any(types) else internal}
    hints = () if statement is None else statement.hints
    type_name = (*METADATA, "AnyObject") if statement is None else type_of_dataset(one.path, statement.type)
    return _dataset(one.path, one.id, type_name=type_name, kind="INTERNAL", at=one.at, details=details, hints=hints)


def _external_record(one: MetadataObject) -> Fields:
    """Return the record of an external dataset in the dataset `Metadata.Dataset`."""
    (statement,) = statements_of(one.statements, tree.CreateExternalDataset)
    details: Fields = {
        "ExternalDetails": {
            "DatasourceAdapter": statement.adapter,
            "Properties": tuple({"Name": each.name, "Value": each.value} for each in statement.options),
            "LastRefreshTime": DateTime(one.created_at),
            "TransactionState": 0,
        }
    }
    return _dataset(
        one.path,
        one.id,
        type_name=type_of_dataset(one.path, statement.type),
        kind="EXTERNAL",
        at=one.at,
        details=details,
        hints=statement.hints,
    )


def _view_record(one: MetadataObject) -> Fields:
    """Return the record of a view in the dataset `Metadata.Dataset`, with its definition if that is in SQL++."""
    text = view_definition(one.document) if bytes(one.document) != b"null" else None
    details: Fields = {"ViewDetails": {} if text is None else {"Definition": text}}
    return _dataset(one.path, one.id, type_name=(*METADATA, "AnyObject"), kind="VIEW", at=one.at, details=details)


def type_of_dataset(path: Levels, type_: tree.TypeExpression | None) -> Levels:
    """Return the name of a dataset's type: that of a named type, or the generated name of an anonymous one."""
    if isinstance(type_, tree.NamedType):
        return type_.name.parts
    return (*path[:-1], f"{ANONYMOUS}{path[-1]}")


def _dataset(
    path: Levels,
    number: int,
    *,
    type_name: Levels,
    kind: str,
    at: str,
    details: Fields,
    hints: tuple[tree.Option, ...] = (),
) -> Fields:
    return {
        "DataverseName": canonical.encode(path[:-1]),
        "DatasetName": path[-1],
        "DatatypeDataverseName": canonical.encode(type_name[:-1]),
        "DatatypeName": type_name[-1],
        "DatasetType": kind,
        "GroupName": _NODE_GROUP,
        "CompactionPolicy": "concurrent",
        "CompactionPolicyProperties": (),
        **details,
        "Hints": Bag({"Name": each.name, "Value": each.value} for each in hints),
        "Timestamp": at,
        "DatasetId": number,
        "PendingOp": 0,
    }


def _internal(keys: tuple[tuple[str, ...], ...], *, autogenerated: bool) -> Fields:
    return {
        "FileStructure": "BTREE",
        "PartitioningStrategy": "HASH",
        "PartitioningKey": keys,
        "PrimaryKey": keys,
        "Autogenerated": autogenerated,
    }


def _datatype_records(one: MetadataObject) -> Iterator[Fields]:
    """Yield the records of a type or of a dataset's own type, and of the anonymous types in it."""
    dataverse, name = one.path[:-1], one.path[-1]
    statements = statements_of(one.statements, tree.CreateType)
    if statements:
        yield from _types(dataverse, name, type_=statements[0].type, at=one.at, anonymous=False)
        return
    types = [each.type for each in statements_of(one.statements, tree.CreateDataset)]
    types += [each.type for each in statements_of(one.statements, tree.CreateExternalDataset)]
    for type_ in types:
        if isinstance(type_, tree.RecordType):
            yield from _types(dataverse, f"{ANONYMOUS}{name}", type_=type_, at=one.at, anonymous=True)


def _types(dataverse: Levels, name: str, *, type_: tree.TypeExpression, at: str, anonymous: bool) -> Iterator[Fields]:
    derived: Fields = {"Tag": _tag(type_), "IsAnonymous": anonymous}
    inner: list[tuple[str, tree.TypeExpression]] = []
    if isinstance(type_, tree.RecordType):
        fields: list[Value] = []
        for each in type_.fields:
            own = f"{name}_{each.name}"
            if not isinstance(each.type, tree.NamedType):
                inner.append((own, each.type))
            fields.append(
                {
                    "FieldName": each.name,
                    "FieldType": _type_name(each.type, own),
                    "IsNullable": each.optional,
                    "IsMissable": each.optional,
                }
            )
        derived["Record"] = {"IsOpen": type_.open, "Fields": tuple(fields)}
    elif isinstance(type_, (tree.ArrayType, tree.BagType)):
        own = f"{name}_Item"
        derived["OrderedList" if isinstance(type_, tree.ArrayType) else "UnorderedList"] = _type_name(type_.item, own)
        if not isinstance(type_.item, tree.NamedType):
            inner.append((own, type_.item))
    yield {"DataverseName": canonical.encode(dataverse), "DatatypeName": name, "Derived": derived, "Timestamp": at}
    for own, below in inner:
        yield from _types(dataverse, own, type_=below, at=at, anonymous=True)


def _tag(type_: tree.TypeExpression) -> str:
    if isinstance(type_, tree.RecordType):
        return "RECORD"
    return "ORDEREDLIST" if isinstance(type_, tree.ArrayType) else "UNORDEREDLIST"


def _type_name(type_: tree.TypeExpression, own: str) -> str:
    """Return the name of a field's type: a built-in type, a named type, or for an anonymous type the generated name
    `own`.
    """
    if not isinstance(type_, tree.NamedType):
        return own
    name = type_.name.last
    return BUILT_IN_NAMES.get(name.lower(), name) if len(type_.name.parts) == 1 else name


def _index_records(one: MetadataObject) -> Iterator[Fields]:
    """Yield the records of a dataset's indexes, the primary one first."""
    path, at = one.path, one.at
    datasets = statements_of(one.statements, tree.CreateDataset)
    if not datasets:
        return
    keys = tuple(key.path for key in datasets[0].keys)
    yield _index(path, path[-1], structure="BTREE", keys=keys, primary=True, at=at)
    others: tuple[tree.CreateIndex | tree.CreatePrimaryIndex, ...] = (
        *statements_of(one.statements, tree.CreateIndex),
        *statements_of(one.statements, tree.CreatePrimaryIndex),
    )
    for each in others:
        name = index_name(each, path[-1])
        if isinstance(each, tree.CreatePrimaryIndex):
            yield _index(path, name, structure="BTREE", keys=(), primary=False, at=at)
            continue
        fields = [field for field in each.fields if isinstance(field, tree.IndexField)]
        if len(fields) == len(each.fields):
            keys, structure, more = tuple(field.path for field in fields), each.kind.upper(), _own_types_of(fields)
        else:
            keys, structure, more = (), "ARRAY", _array_keys(each)
        record = _index(path, name, structure=structure, keys=keys, primary=False, at=at, enforced=each.enforced)
        yield {**record, **more}
    for analyzed in statements_of(one.statements, tree.Analyze):
        yield _sample(path, analyzed, at=at)


def _sample(path: Levels, statement: tree.Analyze, *, at: str) -> Fields:
    """Return the record of a dataset's statistics: like AsterixDB, as an index of the structure `SAMPLE`."""
    values = {each.name: each.value for each in statement.options}
    record = _index(
        path, f"sample_idx_{values['number']}_{path[-1]}", structure="SAMPLE", keys=(), primary=False, at=at
    )
    counts: Fields = {
        "SampleCardinalityTarget": int(values["target"]),
        "SourceCardinality": int(values["cardinality"]),
        "SourceAvgItemSize": int(values["average-size"]),
        "SampleSeed": int(float(values.get("sample-seed", "0"))),
    }
    method = values.get("sample-method")
    return {**record, **counts} if method is None else {**record, **counts, "SampleMethod": method}


def _own_types_of(fields: Sequence[tree.IndexField]) -> Fields:
    """Return the field `SearchKeyType` with the types of an index's fields; empty if no field is typed."""
    if not any(field.type for field in fields):
        return {}
    return {"SearchKeyType": tuple(_key_type(field.type) for field in fields)}


def _array_keys(statement: tree.CreateIndex) -> Fields:
    """Return the fields that describe an index on arrays: paths, and arrays with the covered fields of their items."""
    elements: list[Value] = []
    types: list[tuple[Value, ...]] = []
    for field in statement.fields:
        if isinstance(field, tree.IndexField):
            elements.append((field.path,))
            types.append((_key_type(field.type),))
            continue
        element: Fields = {"UnnestList": field.arrays}
        covered = tuple(each.path for each in field.fields if each.path)
        elements.append({**element, "ProjectList": covered} if covered else element)
        types.append(tuple(_key_type(each.type) for each in field.fields))
    keys: Fields = {"SearchKeyElements": tuple(elements)}
    return {**keys, "SearchKeyType": tuple(types)} if any(any(each) for each in types) else keys


def _key_type(type_: tree.TypeExpression | None) -> str | None:
    """Return the name of a key's type in AsterixDB's metadata."""
    if not isinstance(type_, tree.NamedType):
        return None
    name = _type_name(type_, "")
    return _WIDTHS.get(name, name)


def _index(
    path: Levels,
    name: str,
    *,
    structure: str,
    keys: tuple[tuple[str, ...], ...],
    primary: bool,
    at: str,
    enforced: bool = False,
) -> Fields:
    record: Fields = {
        "DataverseName": canonical.encode(path[:-1]),
        "DatasetName": path[-1],
        "IndexName": name,
        "IndexStructure": structure,
        "SearchKey": keys,
        "IsPrimary": primary,
        "Timestamp": at,
        "PendingOp": 0,
    }
    return {**record, "IsEnforced": True} if enforced else record


def _function_records(one: MetadataObject) -> Iterator[Fields]:
    """Yield the records of the functions with a name, one for each arity."""
    path, functions = one.path, statements_of(one.statements, tree.CreateFunction)
    for each, dependency_texts in zip(functions, one.dependencies or ("",) * len(functions), strict=True):
        record: Fields = {
            "DataverseName": canonical.encode(path[:-1]),
            "Name": path[-1],
            "Arity": str(arity_of(each)),
            "Params": ("args",) if each.parameters is None else each.parameters,
            "ReturnType": "",
            "Definition": render(each.body),
            "Language": "SQLPP",
            "Kind": "SCALAR",
        }
        yield {**record, "Dependencies": _dependencies(dependency_texts)} if dependency_texts else record


def _dependencies(text: str) -> Value:
    """Decode the stored JSON of dependencies, as `needs_text` encodes it."""
    return msgspec.json.decode(text, type=tuple[tuple[tuple[str, ...], ...], ...])


def _synonym_record(one: MetadataObject) -> Fields:
    """Return the record of a synonym in the dataset `Metadata.Synonym`."""
    path = one.path
    (statement,) = statements_of(one.statements, tree.CreateSynonym)
    target = statement.target.parts
    return {
        "DataverseName": canonical.encode(path[:-1]),
        "SynonymName": path[-1],
        "ObjectDataverseName": canonical.encode(target[:-1]),
        "ObjectName": target[-1],
    }


def _dataverse_record(one: MetadataObject) -> Fields:
    return {
        "DataverseName": canonical.encode(one.path),
        "DataFormat": FORMAT,
        "Timestamp": one.at,
        "PendingOp": 0,
    }


_OF_DATASETS: Final[dict[Kind, Callable[[MetadataObject], Fields]]] = {
    Kind.TABLE: _dataset_record,
    Kind.EXTERNAL_DATASET: _external_record,
    Kind.VIEW: _view_record,
}
_RECORDS: Final[dict[str, Callable[[Iterable[MetadataObject]], Iterator[Fields]]]] = {
    "Dataverse": lambda objects: map(_dataverse_record, objects),
    "Dataset": lambda objects: (_OF_DATASETS[each.kind](each) for each in objects),
    "Datatype": lambda objects: (record for each in objects for record in _datatype_records(each)),
    "Index": lambda objects: (record for each in objects for record in _index_records(each)),
    "Function": lambda objects: (record for each in objects for record in _function_records(each)),
    "Synonym": lambda objects: map(_synonym_record, objects),
}
"""The datasets with a record for each stored object; the others have built-in records at most."""
_BUILT_IN: Final[dict[str, Callable[[], Iterator[Fields]]]] = {
    "Dataset": _own_datasets,
    "Datatype": _own_types,
    "Node": _nodes,
    "Nodegroup": _node_groups,
}
"""The records of the dataverse Metadata itself."""
