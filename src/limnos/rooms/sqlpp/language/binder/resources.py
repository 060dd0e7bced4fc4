# SPDX-License-Identifier: Apache-2.0
"""Binds table functions over a dataset's storage: `dataset_resources` and `storage_components`.

Must not know storage. Such a call becomes a scan of a source with a reserved name. The dataverse argument is a string
for a name of one part, which is not split, or an array of parts.
"""

from __future__ import annotations

from typing import Final

from limnos.names.display import render as display_name
from limnos.rooms.sqlpp.language import tree
from limnos.rooms.sqlpp.language.binder.names import BoundDataset, BoundSynonym, Dataverse, NameResolver
from limnos.rooms.sqlpp.language.errors import SqlppError, compilation

RESOURCES: Final = ""
"""The first part of such a source's dataverse; the function and the dataset's own dataverse follow."""
FUNCTIONS: Final = frozenset({"dataset_resources", "storage_components"})
ARGUMENTS: Final = 2
UNSUPPORTED: Final = 4
NO_DATASET: Final = 1050
NO_DATAVERSE: Final = 1063


def source_of(names: NameResolver, node: tree.Call, *, function: str) -> tuple[Dataverse, str]:
    """Return the dataverse and name of the source that a call reads.

    Raises SqlppError if the arguments are not the constant name of a dataset.
    """
    if len(node.arguments) != ARGUMENTS:
        raise compilation(f"{function} takes the name of a dataverse and the name of a dataset", node.at)
    dataverse, name = _dataverse(node.arguments[0], function), _text(node.arguments[1], function)
    if not names.has_dataverse(dataverse):
        raise SqlppError(NO_DATAVERSE, f"Cannot find dataverse with name {display_name(dataverse)}", node.at)
    result = names.resolve(dataverse, name)
    for _ in range(64):
        if not isinstance(result, BoundSynonym):
            break
        result = names.resolve(result.dataverse, result.name)
    if not isinstance(result, BoundDataset):
        text = f"Cannot find dataset with name {display_name((name,))} in dataverse {display_name(dataverse)}"
        raise SqlppError(NO_DATASET, text, node.at)
    return (RESOURCES, function, *result.dataverse), result.name


def _dataverse(node: tree.Expression, function: str) -> Dataverse:
    if isinstance(node, tree.Array):
        if not node.items:
            raise compilation(f"{function}: the name of a dataverse has one part at least", node.at)
        return tuple(_text(each, function) for each in node.items)
    return (_text(node, function),)


def _text(node: tree.Expression, function: str) -> str:
    if isinstance(node, tree.String):
        return node.value
    what = "its arguments are constants: strings, or an array of strings for a dataverse of several parts"
    raise SqlppError(UNSUPPORTED, f"Unsupported type: {function} cannot process this input; {what}", node.at)
