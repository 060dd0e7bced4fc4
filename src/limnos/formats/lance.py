"""How a directory of Lance tables is laid out: which folder is which table, and what the index of the third layout says.

Pure: names of folders and rows in, names and places out; `sources.lance` lists, reads and writes them. May import `model` and `names`. The
three layouts are in decision record 0053.
"""

from __future__ import annotations

import posixpath
import re
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from limnos.model.errors import BadRequest, InvalidTable
from limnos.names.parts import check_levels, quote_for_message

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from limnos.names.path import Levels

MANIFEST: Final = "__manifest"
"""The folder of the index of a V2 directory, which is a Lance table itself."""
SUFFIX: Final = ".lance"
VERSIONS: Final = "_versions"
"""The folder that every Lance table has once it was written."""
RESERVED: Final = ".lance-reserved"
"""A file in a table's folder: the name is taken, and nothing was written yet."""
DEREGISTERED: Final = ".lance-deregistered"
"""A file in a table's folder: it is no table of this directory any more, though its files are there."""
OWN_FOLDERS: Final = frozenset({"data", VERSIONS, "_indices", "_deletions", "_transactions", "_refs", "tree"})
"""What Lance makes in a table's folder."""
SEPARATOR: Final = "$"
"""Joins the names of an identifier in the index."""
NAMES_MAX: Final = 100
_UNPLAIN: Final = re.compile(r"[^A-Za-z0-9$._-]")
"""What means something else in a URI, or in a shell."""
_UNFIT: Final = re.compile(r"[/%?#]")
_FILE: Final = re.compile(r"file:/(?!/)", re.IGNORECASE)
"""A local path as Java writes its URI, with a single slash."""
_SCHEME: Final = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]+://")


class DirectoryLayout(StrEnum):
    """How tables lie in a directory.

    V0: each folder is a table of its name. V1: `NAME.lance` is the table NAME. V2: `__manifest` lists namespaces and tables, of which those at
    the top may lie as in V1.
    """

    V0 = "v0"
    V1 = "v1"
    V2 = "v2"


class ManifestRowKind(StrEnum):
    """What a row of the index is about; rows of other kinds are somebody else's, and stay."""

    NAMESPACE = "namespace"
    TABLE = "table"


class ManifestRow(NamedTuple):
    """A row of the index: an object's levels, what it is, where a table lies below the root, and its properties."""

    levels: Levels
    kind: ManifestRowKind
    location: str | None
    properties: dict[str, str]


class TableFolder(NamedTuple):
    """A table by the folder that it lies in, below the root."""

    name: str
    location: str


def layout_of(folders: Iterable[str]) -> DirectoryLayout | None:
    """Say how a directory is laid out by the names of its folders; None when there are none, and nothing says."""
    found = [name for name in folders if not _is_hidden(name)]
    if MANIFEST in found:
        return DirectoryLayout.V2
    if any(name.endswith(SUFFIX) for name in found):
        return DirectoryLayout.V1
    return DirectoryLayout.V0 if found else None


def tables_of(folders: Iterable[str], layout: DirectoryLayout) -> list[TableFolder]:
    """Return the tables that folders are, by name."""
    found = [folder_table(name, layout) for name in folders]
    return sorted(each for each in found if each is not None)


def folder_table(folder: str, layout: DirectoryLayout) -> TableFolder | None:
    """Return the table that a folder is; None for one that is none."""
    if not folder or _is_hidden(folder) or folder == MANIFEST:
        return None
    if layout is DirectoryLayout.V0:
        return TableFolder(folder, folder)
    name = folder.removesuffix(SUFFIX)
    return TableFolder(name, folder) if name and name != folder else None


def folder_of(name: str, layout: DirectoryLayout) -> str:
    """Return the folder of a table at the top of a directory. Raises BadRequest for a name that no folder can have."""
    folder = name if layout is DirectoryLayout.V0 else f"{name}{SUFFIX}"
    found = folder_table(folder, layout)
    if found is None or found.name != name or _UNFIT.search(name):
        raise BadRequest(
            f"{quote_for_message(name)} cannot be the name of a table's folder: choose one without / % ? and #, not hidden"
        )
    return folder


def nested_folder_of(levels: Levels, *, digits: str) -> str:
    """Return a folder for a table below namespaces: eight hexadecimal digits that make it one of its own, then its names, for people to read."""
    return f"{digits}_{_UNPLAIN.sub('_', object_id_of(levels))[:NAMES_MAX]}"


def object_id_of(levels: Levels) -> str:
    """Return an identifier as the index has it. Raises BadRequest for names that could not be told apart there."""
    for part in check_levels(levels):
        if SEPARATOR in part:
            raise BadRequest(
                f"{quote_for_message(part)} has a {SEPARATOR} in it, which joins names in this directory: choose a name without"
            )
    return SEPARATOR.join(levels)


def row_of(object_id: str, object_type: str, *, location: str | None, metadata: str | None) -> ManifestRow | None:
    """Read a row of the index; None for one of a kind that is not known here."""
    if object_type not in ManifestRowKind.__members__.values() or not object_id:
        return None
    return ManifestRow(tuple(object_id.split(SEPARATOR)), ManifestRowKind(object_type), location, _properties(metadata))


def _properties(text: str | None) -> dict[str, str]:
    try:
        found = msgspec.json.decode(text, type=dict[str, object]) if text else {}
    except msgspec.DecodeError:
        return {}
    return {key: value for key, value in found.items() if isinstance(value, str)}


def children_of(rows: Iterable[ManifestRow], levels: Levels, *, kind: ManifestRowKind) -> list[ManifestRow]:
    """Return the rows of what lies directly in a namespace, by name."""
    depth = len(levels) + 1
    return sorted(row for row in rows if row.kind is kind and len(row.levels) == depth and row.levels[:-1] == levels)


def place_below(root: str, location: str) -> str:
    """Return where a location of the index is. Raises InvalidTable for one that leads out of the directory."""
    plain = posixpath.normpath(location)
    if location.startswith("/") or _SCHEME.match(location) or plain == ".." or plain.startswith("../") or plain == ".":
        raise InvalidTable(
            f"The index of {root} says that a table lies at {quote_for_message(location)}, which is not in it: mend the index, or register the "
            "table where it lies"
        )
    return f"{root}/{plain}"


def root_of(text: str, *, here: str) -> str:
    """Return a directory's URI or absolute path, without a slash at the end; a relative path is one of `here`. Raises BadRequest."""
    if not text:
        raise BadRequest("Say which directory: a path, or a URI such as s3://bucket/prefix")
    if _FILE.match(text):
        return f"/{text[len('file:') :].strip('/')}"
    if _SCHEME.match(text):
        scheme, _, rest = text.partition("://")
        return f"/{rest.strip('/')}" if scheme.lower() == "file" else f"{scheme}://{rest.rstrip('/')}"
    return posixpath.normpath(posixpath.join(here, text))


def is_local(root: str) -> bool:
    """Say whether a directory is on this machine."""
    return not _SCHEME.match(root)


def foreign_names(names: Sequence[str]) -> list[str]:
    """Return what of a folder's content is not Lance's own."""
    return [name for name in names if name not in OWN_FOLDERS and name not in (RESERVED, DEREGISTERED)]


def _is_hidden(name: str) -> bool:
    return name.startswith(".")
