# SPDX-License-Identifier: Apache-2.0
"""`ls`, `describe`, `drop`, `mv`: commands on the tree of names; and `whoami`.

May import `cli`, `client` and `names`. Without `--kind`, the kind of an object is requested from the server.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Annotated, Final, NamedTuple

import msgspec
from cyclopts import Parameter

from limnos.cli.catalog.describe import DESCRIBED, fields_of
from limnos.cli.common import DEFAULTS, CommonFlags, KindFlag, YesFlag, confirm
from limnos.cli.failures import UsageError
from limnos.cli.output import Row, show_done, show_fields, show_rows
from limnos.client import Client, ClientError, ConflictError, DeniedError, NotFoundError, RefusedError
from limnos.client.values import Catalog, Parts
from limnos.names import display


def ls(
    path: str | None = None,
    /,
    *,
    kind: KindFlag = None,
    long: Annotated[bool, Parameter(name=["--long", "-l"], negative="")] = False,
    common: CommonFlags = DEFAULTS,
) -> None:
    """List the content of PATH: by default the catalogs; of a catalog or namespace its namespaces and other objects.

    Parameters
    ----------
    path
        A catalog or namespace, as `main` or `main.raw.nyc`.
    long
        Show format, owner, last change and comment, too.
    """
    if kind not in {None, "metalake", "catalog", "namespace", "job_template"}:
        hint = "'limnos tag list'" if kind == "tag" else "--kind is the kind of PATH: give a catalog or namespace"
        raise UsageError(f"a {kind} has no content to list", hint=hint)
    if long and (path is None or kind == "metalake"):
        raise UsageError("--long lists the content of a catalog or namespace", hint="give its path, as main.raw.nyc")
    with common.client() as client:
        rows = _long_rows(client, path) if long and path is not None else _children(client, path, kind)
    if long:
        show_rows(
            rows, ["name", "kind", "format", "owner", "changed_at", "comment"], output_format=common.output_format
        )
        return
    further = [key for key in ("provider", "comment") if any(row.get(key) for row in rows)]
    show_rows(rows, ["name", "kind", *further], output_format=common.output_format)


def describe(path: str | None = None, /, *, kind: KindFlag = None, common: CommonFlags = DEFAULTS) -> None:
    """Show an object; without PATH the metalake.

    Parameters
    ----------
    path
        A catalog, or an object in it, as `main.raw.nyc.flights`.
    """
    with common.client() as client:
        result = kind or (client.objects.kind(path) if path else "metalake")
        _check_is_in_tree(result, path or "", verb="describe")
        if result not in DESCRIBED:
            raise UsageError(
                f"this command does not describe a {result}", hint="use its own commands, as 'limnos pipeline'"
            )
        fields = fields_of(client, result, path or common.metalake)
    show_fields(fields, output_format=common.output_format, hidden=("path", "metadata"))


def drop(
    path: str,
    /,
    *,
    kind: KindFlag = None,
    purge: Annotated[bool, Parameter(negative="", help="Delete a table's files too, afterwards.")] = False,
    force: Annotated[bool, Parameter(negative="", help="Drop a catalog or metalake with all of its content.")] = False,
    yes: YesFlag = False,
    common: CommonFlags = DEFAULTS,
) -> None:
    """Drop a table, view, fileset or model, or an empty catalog or namespace. `--force` also drops a catalog or
    metalake with content.

    Parameters
    ----------
    path
        The object to drop; with `--kind metalake` a metalake's name.
    """
    with common.client() as client:
        result = kind or client.objects.kind(path)
        _check_is_in_tree(result, path, verb="delete")
        if result not in _DROPPED:
            raise UsageError(
                f"this command does not drop a {result}",
                hint="drop a topic with its cluster's own tools, a template with 'limnos pipeline'",
            )
        _check_drop_flags(result, purge=purge, force=force)
        confirm(f"Drop {result} {path}{' and its files' if purge else ''}?", yes=yes)
        _DROPPED[result](client, path, _DropFlags(common, purge=purge, force=force))
    show_done(f"dropped {result} {path}", {"dropped": path, "kind": result}, output_format=common.output_format)


def mv(source: str, target: str, /, *, kind: KindFlag = None, common: CommonFlags = DEFAULTS) -> None:
    """Rename or move a namespace with its content, a table or a view, within its catalog. Its grants do not change.

    Parameters
    ----------
    source
        The object to move, as `main.raw.nyc`.
    target
        Its new path, as `main.archive.nyc`; the parent must exist.
    """
    with common.client() as client:
        match = kind or client.objects.kind(source)
        movers = {"namespace": client.namespaces.move, "table": client.tables.move, "view": client.views.move}
        if match not in movers:
            raise UsageError(f"a {match} cannot be moved", hint="give a namespace, table or view, as main.raw.nyc")
        moved = movers[match](source, target)
    name = display.render(moved.path)
    result = {"kind": match, "source": source, "target": name, "path": moved.path}
    show_done(f"moved {match} {source} to {name}", result, output_format=common.output_format)


def whoami(*, common: CommonFlags = DEFAULTS) -> None:
    """Show the user name under which the server authenticates you."""
    with common.client() as client:
        user = client.whoami()
    show_done(user, {"user": user}, output_format=common.output_format)


def _long_rows(client: Client, path: str) -> list[Row]:
    return [
        {
            **msgspec.structs.asdict(child),
            "name": display.render(child.path),
            "owner": None if child.owner is None else child.owner.name,
        }
        for child in client.children.list(path)
    ]


def _children(client: Client, path: str | None, kind: str | None) -> list[Row]:
    if kind == "metalake":
        return [{"name": metalake.name, "kind": "metalake", "path": []} for metalake in client.metalakes.list()]
    if path is None:
        catalogs = {catalog.name: catalog for catalog in client.catalogs.list()}
        return [_catalog_row(name, catalogs.get(name)) for name in client.catalogs.names()]
    parts = display.parse(path)
    missing: ClientError | None = None
    rows: list[Row] = []
    try:
        rows = _nodes(client, parts)
    except (NotFoundError, RefusedError) as error:
        missing = error
    if not rows and len(parts) < 3 and (current := client.schemas.holding(parts[0])):
        return [_row(child, "namespace" if len(parts) == 1 else current) for child in client.schemas.list(parts)]
    with suppress(NotFoundError, DeniedError):  # a caller who may list namespaces may be refused the tables
        # Namespaces of a directory catalog are no nodes of the tree.
        if not any(row["kind"] == "namespace" for row in rows):
            rows = [*(_row(child, "namespace") for child in client.lance.namespaces(parts)), *rows]
            missing = None
        rows += [_row(table, "table") for table in client.lance.list(parts)]
    if missing is not None:
        raise missing
    return rows


def _catalog_row(name: str, catalog: Catalog | None) -> Row:
    """Return a catalog's row for `ls`. `catalog` is None if the caller may only use objects in it; the row then has
    only the name.
    """
    row = _row((name,), "catalog")
    return row if catalog is None else {**row, "provider": catalog.provider, "comment": catalog.comment}


def _nodes(client: Client, parts: Parts) -> list[Row]:
    """List the namespaces, Iceberg tables and views in a catalog or namespace."""
    rows = [_row(child, "namespace") for child in client.namespaces.list(parts)]
    try:
        if len(parts) > 1:
            rows += [_row(table, "table") for table in client.tables.list(parts)]
            rows += [_row(view, "view") for view in client.views.list(parts)]
    except DeniedError:
        if not rows:  # the caller may only use objects in the namespaces
            raise
    return rows


def _row(parts: Parts, kind: str) -> Row:
    return {"name": display.render(parts), "kind": kind, "path": parts}


def _check_is_in_tree(kind: str, path: str, *, verb: str) -> None:
    """Raise UsageError for the kind `tag`: tags are not in the tree and have their own commands. `verb` is the command,
    for the message.
    """
    if kind == "tag":
        raise UsageError("a tag has no path", hint=f"'limnos tag {verb} {path}'")


def _check_drop_flags(kind: str, *, purge: bool, force: bool) -> None:
    if purge and kind != "table":
        raise UsageError(f"--purge is only for tables, and this is a {kind}", hint="leave --purge out")
    if force and kind not in {"catalog", "metalake"}:
        raise UsageError(f"--force is only for catalogs and metalakes, and this is a {kind}", hint="leave --force out")


class _DropFlags(NamedTuple):
    """The flags of the command `drop` that its helper functions need."""

    common: CommonFlags
    purge: bool
    force: bool


def _drop_table(client: Client, path: str, *, purge: bool) -> None:
    """Drop an Iceberg or Lance table. With `purge` it must be an Iceberg table: raises UsageError or NotFoundError."""
    if len(display.parse(path)) > 2:
        try:
            client.tables.drop(path, purge=purge)
            return
        except NotFoundError as error:
            missing: NotFoundError | None = error
    else:
        missing = None
    if purge:
        if missing is not None:
            raise missing
        raise UsageError(
            "--purge is only for Iceberg tables", hint="a Lance table's files are deleted when it leaves the trash"
        )
    client.lance.drop(path)


def _drop_container(client: Client, path: str, *, kind: str, flags: _DropFlags) -> None:
    """Drop a catalog or metalake. Without the flag `force`, it must be empty.

    The server drops only disabled catalogs and metalakes. So an empty one is disabled first, which also prevents
    additions between the check and the drop; it is enabled again if the drop fails.
    """
    home = client.metalakes if kind == "metalake" else client.catalogs
    name = path if kind == "metalake" else display.parse(path)[0]
    try:
        require(home.drop(name, force=flags.force), kind, path)
        return
    except ConflictError as error:
        if error.code != "in-use" or _holds_something(client, kind, name, flags.common):
            raise
    home.disable(name)
    try:
        require(home.drop(name), kind, path)
    except ClientError:
        home.enable(name)
        raise


def _holds_something(client: Client, kind: str, name: str, common: CommonFlags) -> bool:
    if kind == "catalog":
        return bool(client.namespaces.list((name,)))
    with replace(common, metalake=name).client() as inside:
        return bool(inside.catalogs.list())


def require(was_there: bool, kind: str, name: str) -> None:  # noqa: FBT001 - the answer of the call it wraps
    """Raise NotFoundError if `was_there` is false: the server reported that the object did not exist."""
    if not was_there:
        raise NotFoundError(f"there is no {kind} '{name}'", status=404, code="not-found")


_DROPPED: Final[dict[str, Callable[[Client, str, _DropFlags], None]]] = {
    "metalake": lambda client, path, flags: _drop_container(client, path, kind="metalake", flags=flags),
    "catalog": lambda client, path, flags: _drop_container(client, path, kind="catalog", flags=flags),
    "namespace": lambda client, path, _: client.namespaces.drop(path),
    "table": lambda client, path, flags: _drop_table(client, path, purge=flags.purge),
    "view": lambda client, path, _: client.views.drop(path),
    "fileset": lambda client, path, _: require(client.filesets.delete(path), "fileset", path),
    "model": lambda client, path, _: require(client.models.delete(path), "model", path),
}
"""For each kind the function by which the command drops an object. Other kinds are refused."""
