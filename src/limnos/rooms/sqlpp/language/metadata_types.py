# SPDX-License-Identifier: Apache-2.0
"""Declared record types of the metadata datasets.

Must not know records. A record may have undeclared fields, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from msgspec import structs

from limnos.rooms.sqlpp.language import tree
from limnos.rooms.sqlpp.language.errors import TextPosition

FIELDS: Final = {
    "Dataverse": "DataverseName, DataFormat, Timestamp, PendingOp int32",
    "Dataset": (
        "DataverseName, DatasetName, DatatypeDataverseName, DatatypeName, DatasetType, GroupName, CompactionPolicy, "
        "CompactionPolicyProperties array, Hints multiset, Timestamp, DatasetId int32, PendingOp int32"
    ),
    "Datatype": "DataverseName, DatatypeName, Timestamp",
    "Index": (
        "DataverseName, DatasetName, IndexName, IndexStructure, SearchKey array, IsPrimary boolean, Timestamp,"
        " PendingOp int32"
    ),
    "Function": "DataverseName, Name, Arity, Params array, ReturnType, Definition, Language, Kind, Dependencies array",
    "Synonym": "DataverseName, SynonymName, ObjectDataverseName, ObjectName",
    "Library": "DataverseName, Name, Timestamp",
    "Node": "NodeName, NumberOfCores int64, WorkingMemorySize int64",
    "Nodegroup": "GroupName, NodeNames multiset, Timestamp",
    "DatasourceAdapter": "DataverseName, Name, Classname, Type, Timestamp",
    "CompactionPolicy": "DataverseName, CompactionPolicy, Classname",
    "ExternalFile": (
        "DataverseName, DatasetName, FileNumber int32, FileName, FileSize int64, FileModDate datetime, PendingOp int32"
    ),
    "Feed": "DataverseName, FeedName, AdapterConfiguration multiset, Timestamp",
    "FeedConnection": "DataverseName, FeedName, DatasetName, ReturnType, AppliedFunctions multiset, PolicyName",
    "FeedPolicy": "DataverseName, PolicyName, Description, Properties multiset, Timestamp",
    "FullTextConfig": "DataverseName, FullTextConfigName, Tokenizer, FullTextFilterPipeline array, Timestamp",
    "FullTextFilter": "DataverseName, FullTextFilterName, FullTextFilterType, Timestamp",
}
"""The required fields of the records of each metadata dataset, with their types; the default type is string."""
_OPTIONAL: Final = {"Dataset": ("InternalDetails", "ExternalDetails")}
"""Optional fields, which are objects."""


def _metadata_types() -> Iterator[tuple[str, tree.RecordType]]:
    """Yield each metadata dataset with its declared record type."""
    for dataset, text in FIELDS.items():
        fields = [
            tree.FieldType(_NOWHERE, name, _metadata_type(type_ or "string"), optional=False)
            for name, _, type_ in (each.partition(" ") for each in text.split(", "))
        ]
        fields += (
            tree.FieldType(_NOWHERE, name, _metadata_type("object"), optional=True)
            for name in _OPTIONAL.get(dataset, ())
        )
        yield dataset, tree.RecordType(_NOWHERE, open=True, fields=tuple(fields))


def _metadata_type(name: str) -> tree.TypeExpression:
    if name == "array":
        return tree.ArrayType(_NOWHERE, _metadata_type("any"))
    if name == "multiset":
        return tree.BagType(_NOWHERE, _metadata_type("any"))
    return tree.NamedType(_NOWHERE, tree.DottedName(_NOWHERE, (name,)))


def _with_derived_types(types: Mapping[str, tree.RecordType]) -> Iterator[tuple[str, tree.RecordType]]:
    """Yield the types; that of `Datatype` also has the nested object `Derived`, for the order of fields."""
    for dataset, record in types.items():
        names = ("Tag string", "IsAnonymous boolean") if dataset == "Datatype" else ()
        parts = (name.split() for name in names)
        inner = tuple(tree.FieldType(_NOWHERE, name, _metadata_type(type_), optional=False) for name, type_ in parts)
        derived = tree.FieldType(_NOWHERE, "Derived", tree.RecordType(_NOWHERE, open=True, fields=inner), optional=True)
        yield dataset, structs.replace(record, fields=(*record.fields, derived)) if inner else record


_NOWHERE: Final = TextPosition(0, 0)
METADATA_TYPES: Final = dict(_metadata_types())
"""The declared types of the records of the metadata datasets."""
NESTED_METADATA_TYPES: Final = dict(_with_derived_types(METADATA_TYPES))
"""The same types, with the type of the nested object `Derived`."""
