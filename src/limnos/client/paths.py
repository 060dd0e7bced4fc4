# SPDX-License-Identifier: Apache-2.0
"""URLs of objects in each protocol.

A path is given as a string in display form (`main.raw.nyc`, with back quotes where needed) or as its parts.
"""

from __future__ import annotations

from collections.abc import Sequence

from limnos.client.errors import ArgumentError
from limnos.client.flow import API, OWN, segments
from limnos.client.values import Parts
from limnos.model.kind_table import kinds_with, row_of
from limnos.model.kinds import METALAKE_OBJECTS, SECURABLES, KindGroup
from limnos.names import display, fullname, iceberg
from limnos.names.errors import InvalidName
from limnos.names.fullname import FullName, render_quoted
from limnos.names.logical import LogicalCodec

TYPES = {kind.word: row_of(kind).gravitino or kind.word for kind in SECURABLES}
"""Our name for each kind of object, and Gravitino's."""
APART_WORDS = frozenset(kind.word for kind in METALAKE_OBJECTS)
"""Kinds of metalake objects. Their path is a single name."""


LEAVES = frozenset(
    kind.word for kind in kinds_with(lambda row: row.cli and "path" in row.cli) if kind.form is KindGroup.LEAF
)
"""The kinds of objects in a namespace that contain no other objects, and for which the client has paths."""


def parts_of(path: str | Sequence[str], *, least: int = 1) -> Parts:
    """Parse a path. `least` is the minimum number of its parts.

    Raises ArgumentError with advice if it is too short, and the errors of `names.display.parse`.
    """
    parts = tuple(display.parse(path)) if isinstance(path, str) else tuple(path)
    if len(parts) < least:
        shape = ".".join(("catalog", "namespace", "table")[:least])
        raise ArgumentError(f"'{display.render(parts)}' is too short: give {shape}")
    return parts


def shaped_parts(path: str | Sequence[str], *shape: str) -> Parts:
    """Parse a path that has exactly the parts of `shape`, such as ("catalog", "schema").

    Raises ArgumentError with the shape if it is too short or too long, and the errors of `names.display.parse`.
    """
    parts = parts_of(path, least=len(shape))
    if len(parts) > len(shape):
        form = ".".join(shape) if len(shape) > 1 else "its name alone"
        raise ArgumentError(f"'{display.render(parts)}' is too long for a {shape[-1]}: give {form}")
    return parts


def catalog_name(path: str | Sequence[str]) -> str:
    """Parse the path of a catalog. Raises ArgumentError for the path of an object in it."""
    return shaped_parts(path, "catalog")[0]


def table_parts(path: str | Sequence[str]) -> Parts:
    """Parse the path of a table: a Lance table may lie directly in its catalog. Raises as `parts_of`."""
    parts = parts_of(path)
    return parts if len(parts) == 2 else parts_of(parts, least=3)


def schema_object_parts(path: str | Sequence[str], *, kind: str) -> tuple[str, str, str]:
    """Parse the path of an object of a kind whose schemas do not nest: catalog, schema and name.

    Raises ArgumentError for a shorter or longer path, and the errors of `names.display.parse`.
    """
    parts = tuple(display.parse(path)) if isinstance(path, str) else tuple(path)
    if len(parts) != 3:
        spelled, size = display.render(parts), "short" if len(parts) < 3 else "long"
        raise ArgumentError(
            f"'{spelled}' is too {size} for a {kind}: give catalog.schema.{kind}; its schemas do not nest"
        )
    catalog, schema, name = parts
    return catalog, schema, name


def metalake_url(metalake: str, *names: str) -> str:
    """Return the Gravitino path of an object of a metalake, such as `/api/metalakes/lake/tags/pii`."""
    return f"{API}/metalakes{segments(metalake, *names)}"


def own_url(metalake: str, *names: str) -> str:
    """Return the path of an object of a metalake in Limnos' own API, with each name percent-encoded."""
    return f"{OWN}/metalakes{segments(metalake, *names)}"


def namespaces_url(metalake: str, catalog: str) -> str:
    """Return the Iceberg REST path of a catalog's namespaces, with the metalake and catalog as prefix."""
    return f"/iceberg/v1/{iceberg.encode_prefix(metalake, catalog)}/namespaces"


def namespace_url(metalake: str, parts: Parts) -> str:
    """Return the Iceberg REST path of a namespace. `parts` begin with the catalog."""
    return f"{namespaces_url(metalake, parts[0])}/{iceberg.encode_path(parts[1:])}"


def declared_url(metalake: str, plural: str, *, namespace: Sequence[str], name: str | None = None) -> str:
    """Return the path of the objects of a declared kind in a namespace in Limnos' own API, or of one of them.
    `namespace` begins with the catalog.
    """
    catalog, *levels = namespace
    rest = () if name is None else (name,)
    return own_url(metalake, "catalogs", catalog, plural, display.render(levels), *rest)


def table_url(metalake: str, parts: Parts) -> str:
    """Return the Iceberg REST path of a table. `parts` begin with the catalog."""
    return f"{namespace_url(metalake, parts[:-1])}/tables/{iceberg.encode_name(parts[-1])}"


def view_url(metalake: str, parts: Parts) -> str:
    """Return the Iceberg REST path of a view. `parts` begin with the catalog."""
    return f"{namespace_url(metalake, parts[:-1])}/views/{iceberg.encode_name(parts[-1])}"


def full_name(parts: Parts, kind: str, *, separator: str, column: str | None = None) -> str:
    """Return Gravitino's `fullName` of an object in a catalog, or of a column of it: `catalog.a:b.table`, quoted where
    ambiguous.
    """
    leaf = parts[-1] if kind in LEAVES else None
    levels = parts[1:-1] if kind in LEAVES else parts[1:]
    codec = LogicalCodec(separator, policy="unrestricted")
    return render_quoted(FullName(parts[0], levels, name=leaf, column=column), codec=codec)


def parts_of_full_name(text: str, kind: str, *, separator: str) -> Parts | None:
    """Return the path that Gravitino's `fullName` of an object spells, such as `main.raw:nyc.late` of a table.

    `kind` is Gravitino's or ours. None for an object outside of the catalogs, and if the name has several readings or
    none.
    """
    word = kind.lower()
    levels = {"schema": fullname.SCHEMA, "namespace": fullname.SCHEMA, "column": fullname.COLUMN}.get(word)
    if levels is None and word not in {*LEAVES, "function"}:
        return (text,) if word == "catalog" else None
    codec = LogicalCodec(separator, policy="unrestricted")
    for at_root in (False, True):
        try:
            readings = list(fullname.candidates(text, levels or fullname.OBJECT, codec=codec, at_root=at_root))
        except InvalidName:
            continue
        if len(readings) != 1:
            return None
        (one,) = readings
        return (one.catalog, *one.levels, *(part for part in (one.name, one.column) if part is not None))
    return None
