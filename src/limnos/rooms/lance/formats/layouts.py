# SPDX-License-Identifier: Apache-2.0
"""The layouts of a directory of Lance tables: the mapping of folders to tables, and the rows of the V2 index.

Pure: takes and returns names, rows and locations; `rooms.lance.sources` reads and writes them. Must not know storage.
Decision record 0053 describes the three layouts.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Final, NamedTuple

import msgspec

from limnos.model.errors import BadRequest, InvalidTable
from limnos.names.parts import check_levels, quote_for_message
from limnos.names.path import Levels

MANIFEST: Final = "__manifest"
"""The folder of a V2 directory's index, which is itself a Lance table."""
SUFFIX: Final = ".lance"
VERSIONS: Final = "_versions"
"""The folder of manifests, which every Lance table with data has."""
RESERVED: Final = ".lance-reserved"
"""Marker file in a table's folder: the name is reserved, and the table has no data yet."""
DEREGISTERED: Final = ".lance-deregistered"
"""Marker file in a table's folder: the table is deregistered, although its files exist."""
OWN_FOLDERS: Final = frozenset({"data", VERSIONS, "_indices", "_deletions", "_transactions", "_refs", "tree"})
"""The folders that Lance creates in a table's folder."""
SEPARATOR: Final = "$"
"""The separator of the levels of an identifier in the index."""
NAMES_MAX: Final = 100
_UNPLAIN: Final = re.compile(r"[^A-Za-z0-9$._-]")
"""A pattern for characters with a special meaning in a URI or a shell."""
_UNFIT: Final = re.compile(r"[/%?#]")
_FILE: Final = re.compile(r"file:/(?!/)", re.IGNORECASE)
"""The prefix of a local path in Java's notation of file URIs, with a single slash."""
_SCHEME: Final = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]+://")


class DirectoryLayout(StrEnum):
    """The layout of a directory of Lance tables.

    V0: each folder is a table of that name. V1: `NAME.lance` is the table NAME. V2: `__manifest` lists namespaces and
    tables; top-level tables may also be stored as in V1.
    """

    V0 = "v0"
    V1 = "v1"
    V2 = "v2"


class ManifestRowKind(StrEnum):
    """The kind of an index row. Rows of other kinds belong to other software and are not changed."""

    NAMESPACE = "namespace"
    TABLE = "table"


class ManifestRow(NamedTuple):
    """A row of the index: an object's levels, its kind, a table's folder relative to the root, and its properties."""

    levels: Levels
    kind: ManifestRowKind
    location: str | None
    properties: dict[str, str]


class TableFolder(NamedTuple):
    """A table and its folder, relative to the root."""

    name: str
    location: str


def layout_of(folders: Iterable[str]) -> DirectoryLayout | None:
    """Return the layout of a directory from its folders' names; None if it has no visible folders."""
    names = [name for name in folders if not _is_hidden(name)]
    if MANIFEST in names:
        return DirectoryLayout.V2
    if any(name.endswith(SUFFIX) for name in names):
        return DirectoryLayout.V1
    return DirectoryLayout.V0 if names else None


def tables_of(folders: Iterable[str], layout: DirectoryLayout) -> list[TableFolder]:
    """Return the tables among folders, sorted by name."""
    results = [folder_table(name, layout) for name in folders]
    return sorted(each for each in results if each is not None)


def folder_table(folder: str, layout: DirectoryLayout) -> TableFolder | None:
    """Return the table of a folder; None if the folder is not a table."""
    if not folder or _is_hidden(folder) or folder == MANIFEST:
        return None
    if layout is DirectoryLayout.V0:
        return TableFolder(folder, folder)
    name = folder.removesuffix(SUFFIX)
    return TableFolder(name, folder) if name and name != folder else None


def folder_of(name: str, layout: DirectoryLayout) -> str:
    """Return the folder of a top-level table. Raises BadRequest for a name that cannot be a folder's name."""
    folder = name if layout is DirectoryLayout.V0 else f"{name}{SUFFIX}"
    table_folder = folder_table(folder, layout)
    if table_folder is None or table_folder.name != name or _UNFIT.search(name):
        raise BadRequest(
            f"{quote_for_message(name)} cannot be the name of a table's folder: choose one without / % ? and #, not"
            " hidden"
        )
    return folder


def nested_folder_of(levels: Levels, *, digits: str) -> str:
    """Return the folder for a table in a namespace: unique hexadecimal digits, then a readable form of its name.

    Raises as `object_id_of` does.
    """
    return f"{digits}_{_UNPLAIN.sub('_', object_id_of(levels))[:NAMES_MAX]}"


def object_id_of(levels: Levels) -> str:
    """Return the identifier of an object in the index. Raises BadRequest for a name that contains the separator."""
    for part in check_levels(levels):
        if SEPARATOR in part:
            raise BadRequest(
                f"{quote_for_message(part)} has a {SEPARATOR} in it, which separates names in this directory: choose a"
                " name without it"
            )
    return SEPARATOR.join(levels)


def row_of(object_id: str, object_type: str, *, location: str | None, metadata: str | None) -> ManifestRow | None:
    """Build a row of the index; None for an unknown kind or an empty id."""
    if object_type not in ManifestRowKind.__members__.values() or not object_id:
        return None
    return ManifestRow(tuple(object_id.split(SEPARATOR)), ManifestRowKind(object_type), location, _properties(metadata))


def _properties(text: str | None) -> dict[str, str]:
    try:
        fields = msgspec.json.decode(text, type=dict[str, object]) if text else {}
    except msgspec.DecodeError:
        return {}
    return {key: value for key, value in fields.items() if isinstance(value, str)}


def children_of(rows: Iterable[ManifestRow], levels: Levels, *, kind: ManifestRowKind) -> list[ManifestRow]:
    """Return the rows of objects directly in a namespace, by name."""
    depth = len(levels) + 1
    return sorted(row for row in rows if row.kind is kind and len(row.levels) == depth and row.levels[:-1] == levels)


def place_below(root: str, location: str) -> str:
    """Return the absolute location of an index entry. Raises InvalidTable if it is outside of the directory."""
    normal_path = posixpath.normpath(location)
    if (
        location.startswith("/")
        or _SCHEME.match(location)
        or normal_path == ".."
        or normal_path.startswith("../")
        or normal_path == "."
    ):
        raise InvalidTable(
            f"The index of {root} names a table at {quote_for_message(location)}, which is outside of it: correct the"
            " index, or register the table at its own location"
        )
    return f"{root}/{normal_path}"


def root_of(text: str, *, here: str) -> str:
    """Return a directory's URI or absolute path, without a slash at the end. A relative path is relative to `here`.

    Raises BadRequest for an empty string.
    """
    if not text:
        raise BadRequest("Give the directory: a path, or a URI such as s3://bucket/prefix")
    if _FILE.match(text):
        return f"/{text[len('file:') :].strip('/')}"
    if _SCHEME.match(text):
        scheme, _, rest = text.partition("://")
        return f"/{rest.strip('/')}" if scheme.lower() == "file" else f"{scheme}://{rest.rstrip('/')}"
    return posixpath.normpath(posixpath.join(here, text))


def is_local(root: str) -> bool:
    """Return whether a directory's URI or path is on the local file system."""
    return not _SCHEME.match(root)


def foreign_names(names: Sequence[str]) -> list[str]:
    """Return the names in a table's folder that do not belong to Lance's format, so that the folder may contain other
    data.
    """
    return [name for name in names if name not in OWN_FOLDERS and name not in (RESERVED, DEREGISTERED)]


def _is_hidden(name: str) -> bool:
    return name.startswith(".")
