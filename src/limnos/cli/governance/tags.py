# SPDX-License-Identifier: Apache-2.0
"""`tag create | delete | list | describe | add | remove`: tags and the objects that have them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cyclopts import App

from limnos.cli.catalog.columns import column_names, require_columns
from limnos.cli.catalog.governance import column_tags
from limnos.cli.catalog.tree import require
from limnos.cli.common import (
    DEFAULTS,
    AttachedColumnFlag,
    AttachedKindFlag,
    Comment,
    CommonFlags,
    Property,
    YesFlag,
    confirm,
    properties_of,
)
from limnos.cli.failures import UsageError
from limnos.cli.output import Row, show_done, show_rows
from limnos.client import ArgumentError, ClientError
from limnos.client.values import MetadataObject, Tag

if TYPE_CHECKING:
    from limnos.client import Client

app = App(name="tag")


@app.command
def create(name: str, /, *, comment: Comment = None, property: Property = None, common: CommonFlags = DEFAULTS) -> None:
    """Create a tag, which you own.

    Parameters
    ----------
    name
        The tag's name, such as `pii`.
    """
    with common.client() as client:
        tag = client.tags.create(name, comment=comment, properties=properties_of(property))
    show_done(f"created tag {tag.name}", _row(tag), output_format=common.output_format)


@app.command
def delete(name: str, /, *, yes: YesFlag = False, common: CommonFlags = DEFAULTS) -> None:
    """Delete a tag and detach it from all objects.

    Parameters
    ----------
    name
        The tag's name, such as `pii`.
    """
    confirm(f"Delete tag {name} of metalake {common.metalake}?", yes=yes)
    with common.client() as client:
        require(client.tags.delete(name), "tag", name)
    show_done(f"deleted tag {name}", {"deleted": name}, output_format=common.output_format)


@app.command(name="list")
def list_tags(
    path: str | None = None,
    /,
    *,
    column: AttachedColumnFlag = None,
    kind: AttachedKindFlag = None,
    common: CommonFlags = DEFAULTS,
) -> None:
    """List the tags you may use; with a path, the tags of an object, including inherited tags and those of a table's
    columns.

    Parameters
    ----------
    path
        A catalog, namespace or table, as `main.raw.nyc`.
    """
    if path is None and column is not None:
        raise UsageError("--column needs the table of the column", hint=f"'limnos list tags PATH --column {column}'")
    with common.client() as client:
        if path is None:
            rows, columns = [_row(tag) for tag in client.tags.list()], ["name", "comment"]
        else:
            kind = kind or client.objects.kind(path)
            tags = client.tags.on(path, kind=kind, column=column)
            rows = [{**_row(tag), "inherited": tag.inherited} for tag in tags]
            columns = ["name", "inherited", "comment"]
            if kind == "table" and column is None and (of_columns := _rows_of_columns(client, path)):
                rows, columns = [*rows, *of_columns], ["name", "column", *columns[1:]]
    show_rows(rows, columns, output_format=common.output_format, empty="no tags")


@app.command
def describe(name: str, /, *, common: CommonFlags = DEFAULTS) -> None:
    """Show the visible objects that have a tag.

    Parameters
    ----------
    name
        The tag's name, such as `pii`.
    """
    with common.client() as client:
        tag, objects = client.tags.get(name), client.tags.objects(name)
        rows = [_object_row(client, each) for each in objects]
    if common.output_format == "json":
        show_done("", {**_row(tag), "objects": rows}, output_format="json")
    else:
        show_rows(
            rows,
            ["kind", "object"],
            output_format="table",
            empty=f"tag {tag.name} is attached to no object that you may see",
        )


@app.command
def add(
    name: str,
    path: str,
    /,
    *,
    column: AttachedColumnFlag = None,
    kind: AttachedKindFlag = None,
    common: CommonFlags = DEFAULTS,
) -> None:
    """Attach a tag to an object, such as a catalog, namespace or table, or to a column. Objects below inherit it.

    Parameters
    ----------
    name
        The tag's name, such as `pii`.
    path
        The object, as `main.raw.nyc`.
    """
    with common.client() as client:
        if column is not None:
            require_columns(client, path, columns=[column])
        names = client.tags.change(path, kind=kind or client.objects.kind(path), column=column, adds=(name,))
    result = {**target_fields(path, column), "tags": list(names)}
    show_done(f"tag {name} is on {target_text(path, column)}", result, output_format=common.output_format)


@app.command
def remove(
    name: str,
    path: str,
    /,
    *,
    column: AttachedColumnFlag = None,
    kind: AttachedKindFlag = None,
    common: CommonFlags = DEFAULTS,
) -> None:
    """Detach a tag from an object, such as a catalog, namespace or table, or from a column.

    Parameters
    ----------
    name
        The tag's name, such as `pii`.
    path
        The object, as `main.raw.nyc`.
    """
    with common.client() as client:
        names = client.tags.change(path, kind=kind or client.objects.kind(path), column=column, removes=(name,))
    result = {**target_fields(path, column), "tags": list(names)}
    show_done(f"tag {name} is no longer on {target_text(path, column)}", result, output_format=common.output_format)


def _rows_of_columns(client: Client, path: str) -> list[Row]:
    """Return a row for each tag on a column of a table; none for a table whose columns the caller may not load."""
    try:
        names = column_names(client, path)
    except (ClientError, ArgumentError):
        return []
    by_column = column_tags(client, path, columns=names)
    tags = {tag.name: tag for tag in client.tags.list()} if by_column else {}
    return [
        {**_row(tags[name]), "column": column, "inherited": False}
        for column in names
        for name in by_column.get(column, ())
        if name in tags
    ]


def target_fields(path: str, column: str | None) -> dict[str, object]:
    """Return an object, or a column of it, as fields of JSON."""
    return {"object": path} if column is None else {"object": path, "column": column}


def target_text(path: str, column: str | None) -> str:
    """Return an object, or a column of it, in the words of a message."""
    return path if column is None else f"column {column} of {path}"


def _row(tag: Tag) -> Row:
    return {"name": tag.name, "comment": tag.comment, "properties": tag.properties or {}}


def _object_row(client: Client, metadata_object: MetadataObject) -> Row:
    return {
        "kind": "namespace" if metadata_object.type == "schema" else metadata_object.type,
        "object": client.objects.path(metadata_object.full_name, kind=metadata_object.type),
    }
