# SPDX-License-Identifier: Apache-2.0
"""Requests for metadata: what a scan of a dataset of `Metadata` reads, by its conditions.

Must not know how objects are read.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple, cast

from limnos.names import canonical
from limnos.names.errors import InvalidName
from limnos.names.path import Levels
from limnos.rooms.sqlpp.language.conditions import Condition
from limnos.rooms.sqlpp.language.scans import ScanRequirement

_NAMES: Final = {"Dataset": "DatasetName", "Index": "DatasetName", "Function": "Name", "Synonym": "SynonymName"}
"""The field with the name of the object that a record describes."""
_ONE_EACH: Final = frozenset({"Dataverse", "Dataset", "Synonym"})
"""The datasets with exactly one record per object."""


class MetadataRequest(NamedTuple):
    """A scan's request for objects of a metadata dataset. None means all dataverses, all names, or no limit.

    With `documents` the definitions of views are read too.
    """

    dataset: str
    dataverses: tuple[Levels, ...] | None = None
    names: frozenset[str] | None = None
    limit: int | None = None
    documents: bool = False

    @property
    def is_pinned(self) -> bool:
        """Whether the request names all objects that it reads, so that no listing is needed."""
        return self.dataverses is not None and self.names is not None

    @classmethod
    def of(cls, requirement: ScanRequirement) -> MetadataRequest:
        """Build the request of a scan, from the scan's conditions."""
        texts = _equality_values(requirement.conditions, "DataverseName")
        dataverses = None if texts is None else tuple(filter(None, map(_levels, sorted(texts))))
        field = _NAMES.get(requirement.name)
        names = None if field is None else _equality_values(requirement.conditions, field)
        limit = requirement.limit if requirement.name in _ONE_EACH else None
        documents = requirement.name == "Dataset" and (
            requirement.fields is None or "ViewDetails" in requirement.fields
        )
        return cls(dataset=requirement.name, dataverses=dataverses, names=names, limit=limit, documents=documents)


def _equality_values(conditions: Iterable[Condition], field: str) -> frozenset[str] | None:
    """Return the values to which equality conditions restrict a field; None if there are no such conditions."""
    names: frozenset[str] | None = None
    for each in conditions:
        values: object = each.value if each.operator == "in" else (each.value,)
        if each.path != (field,) or each.operator not in ("=", "in") or not isinstance(values, tuple):
            continue
        if all(type(value) is str for value in values):
            texts = frozenset(cast("tuple[str, ...]", values))
            names = texts if names is None else names & texts
    return names


def _levels(text: str) -> Levels | None:
    """Parse a dataverse name into its parts; None for an invalid name."""
    try:
        return canonical.decode(text)
    except InvalidName:
        return None


def narrowing_advice(request: MetadataRequest) -> str:
    """Return advice to add a condition on a field that would reduce the objects that a query reads."""
    if request.dataverses is None:
        return (
            "Add a condition on the dataverse of FROM, such as d.DataverseName = 'a.b' or d.DataverseName in "
            "['a', 'b'], so that only the objects of those dataverses are read"
        )
    field = _NAMES.get(request.dataset)
    more = f", or add a condition such as d.{field} = 'x'" if field is not None else ""
    return f"Name fewer dataverses in the condition on DataverseName{more}"
