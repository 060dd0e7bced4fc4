# SPDX-License-Identifier: Apache-2.0
"""`list`, `tree`, `show`, `rename`: commands on the tree of names; and `whoami`.

Without `--kind`, the kind of an object is requested from the server.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Final, Literal, TypeAlias, get_args

import msgspec
from cyclopts import Parameter

from limnos.cli.catalog.describe import DESCRIBED, fields_of, hidden_fields, lance_sizes, table_contents
from limnos.cli.catalog.governance import GOVERNED, governance_of
from limnos.cli.catalog.walk import Walk, tree_lines, walk
from limnos.cli.common import DEFAULTS, CommonFlags, Kind, KindFlag
from limnos.cli.failures import StoppedError, UsageError
from limnos.cli.hints.failed_calls import ANONYMOUS, sign_in_hint
from limnos.cli.output import Row, drawable, show_done, show_fields, show_rows, visible
from limnos.client import ArgumentError, ClientError, DeniedError, NotFoundError, RefusedError
from limnos.client.catalog.children import ChildInfo
from limnos.client.values import Catalog, Parts
from limnos.model.declared_kinds import DECLARED
from limnos.names import display

if TYPE_CHECKING:
    from limnos.client import Client

SIZED_MAX: Final = 200
"""The number of tables of a list whose rows and sizes are read; each costs a request."""

RENAMED: Final = frozenset({"catalog", "fileset", "metalake", "model", "tag"})
"""Kinds of objects that are renamed where they are; others move within their catalog."""

if TYPE_CHECKING:
    ListedKind: TypeAlias = str
else:
    ListedKind = Literal[
        ("namespace", "table", "view", "fileset", "model", "topic", *(each.kind.word for each in DECLARED))
    ]
RenamedKindFlag = Annotated[Kind | None, Parameter(help="Kind of SOURCE, if it is ambiguous, or `metalake` or `tag`.")]


def ls(
    path: str | None = None,
    /,
    *,
    kind: KindFlag = None,
    only: Annotated[ListedKind | None, Parameter(help="List objects of this kind alone, also further below.")] = None,
    long: Annotated[bool, Parameter(name=["--long", "-l"], negative="")] = False,
    recursive: Annotated[bool, Parameter(name=["--recursive", "-r"], negative="")] = False,
    common: CommonFlags = DEFAULTS,
) -> None:
    """List the content of PATH: by default the catalogs; of a catalog or namespace its namespaces and other objects.

    Parameters
    ----------
    path
        A catalog or namespace, as `main` or `main.raw.nyc`.
    long
        Show rows, size, last change, owner, format and comment, too; rows and size of the first 200 tables.
    recursive
        List everything below, not only the next level; at most 10,000 objects.
    """
    if kind in get_args(ListedKind) and kind != "namespace":  # it has no content, so it is the kind of what is listed
        kind, only = None, only or kind
    if kind not in {None, "metalake", "catalog", "namespace", "job_template"}:
        hint = "'limnos list tags'" if kind == "tag" else "--kind is the kind of PATH: give a catalog or namespace"
        raise UsageError(f"a {kind} has no content to list", hint=hint)
    below = Walk()
    with common.client() as client:
        if kind == "metalake" or not (long or recursive or only):
            rows = _children(client, path, kind)
        else:
            depth = None if recursive or only else 1
            below = walk(client, display.parse(path) if path else (), depth=depth, skips_failures=True)
            rows = _long_rows(client, [each for each in below.objects if only in {None, each.kind}], is_long=long)
            _remark_incomplete(below)
    if long:
        columns = ["rows", "size", "changed_at", "owner", "format", "comment"]
        used_columns = [key for key in columns if any(row.get(key) is not None for row in rows)]
        show_rows(rows, ["name", "kind", *used_columns], output_format=common.output_format)
        _report_failures(below)
        return
    further = [key for key in ("provider", "comment") if any(row.get(key) for row in rows)]
    show_rows(rows, ["name", "kind", *further], output_format=common.output_format)
    _report_failures(below)


def tree(
    path: str | None = None,
    /,
    *,
    depth: Annotated[int | None, Parameter(help="The number of levels to show; by default all.")] = None,
    common: CommonFlags = DEFAULTS,
) -> None:
    """Show what is below PATH as a tree; without PATH all catalogs. At most 10,000 objects.

    Parameters
    ----------
    path
        A catalog or namespace, as `main` or `main.raw.nyc`.
    """
    parts = display.parse(path) if path else ()
    with common.client() as client:
        below = walk(client, parts, depth=depth, skips_failures=True)
    if common.output_format != "table":
        rows = [{"name": display.render(each.path), "kind": each.kind, "path": each.path} for each in below.objects]
        show_rows(rows, ["name", "kind"], output_format=common.output_format)
        _report_failures(below)
        return
    print(visible(path or common.metalake))
    for line in tree_lines(below.objects, above=len(parts), is_ascii=drawable("├──", "") == ""):
        print(visible(line))
    _remark_incomplete(below)
    _report_failures(below)


def _report_failures(below: Walk) -> None:
    """Raise StoppedError if catalogs of a walk could not be read, after the rest is printed: the list is not whole."""
    if not below.failures:
        return
    texts = [f"{name} ({error.message.removeprefix(f'Catalog {name}: ')})" for name, error in below.failures.items()]
    what = "catalog" if len(texts) == 1 else "catalogs"
    raise StoppedError(
        f"the list is without all or a part of {what} {', '.join(texts)}",
        code=next(iter(below.failures.values())).kind,
        hint="the others are listed; the server's log says more about a source that does not answer",
    )


def _remark_incomplete(below: Walk) -> None:
    if not below.is_complete:
        print(f"only the first {len(below.objects)} objects: give a path further below", file=sys.stderr)


def describe(path: str | None = None, /, *, kind: KindFlag = None, common: CommonFlags = DEFAULTS) -> None:
    """Show an object; without PATH the metalake.

    Parameters
    ----------
    path
        A catalog, or an object in it, as `main.raw.nyc.flights`.
    """
    with common.client() as client:
        result = kind or (client.objects.kind(path) if path else "metalake")
        check_is_in_tree(result, path or "", verb="describe")
        if result not in DESCRIBED:
            raise UsageError(
                f"this command does not describe a {result}", hint="use its own commands, as 'limnos pipeline'"
            )
        fields = fields_of(client, result, path or common.metalake)
        if path and result in GOVERNED:
            columns = fields.get("columns") if result == "table" else None
            fields |= governance_of(
                client,
                path,
                kind=result,
                columns=list(columns) if isinstance(columns, dict) else (),
                is_restricted=fields.get("restricted") is not None,
            )
    show_fields(fields, output_format=common.output_format, hidden=hidden_fields(fields))


def mv(source: str, target: str, /, *, kind: RenamedKindFlag = None, common: CommonFlags = DEFAULTS) -> None:
    """Rename an object, or move a namespace with its content, a table or a view within its catalog. Its grants do not
    change.

    Parameters
    ----------
    source
        The object, as `main.raw.nyc`.
    target
        Its new path, as `main.archive.nyc`; the parent must exist. A name alone renames the object where it is.
    """
    with common.client() as client:
        match = kind or client.objects.kind(source)
        movers = {"namespace": client.namespaces.move, "table": client.tables.move, "view": client.views.move}
        if match not in movers and match not in RENAMED:
            raise UsageError(
                f"a {match} cannot be renamed", hint=f"these can: {', '.join([*movers, *sorted(RENAMED)])}"
            )
        goal = _target(source, target, kind=match)
        if match in movers:
            path = tuple(movers[match](source, goal).path)
        else:
            path = client.objects.rename(source, goal, kind=match)
    name = display.render(path)
    result = {"kind": match, "source": source, "target": name, "path": path}
    show_done(f"renamed {match} {source} to {name}", result, output_format=common.output_format)


def _target(source: str, target: str, *, kind: str) -> str:
    """Return the new path: a name alone takes the place of the last part of the old path."""
    if kind in {"metalake", "tag", "catalog"}:
        return target
    parts = display.parse(target)
    return display.render([*display.parse(source)[:-1], *parts]) if len(parts) == 1 else target


def whoami(*, common: CommonFlags = DEFAULTS) -> None:
    """Show the server of your commands, and the user name under which it authenticates you. Exit code 4 if you are not
    signed in.
    """
    with common.client() as client:
        user = client.whoami()
        is_known = user == ANONYMOUS or _is_known(client, common.metalake)
    if user == ANONYMOUS and common.credential_source(os.environ) is None and common.as_user is None:
        raise StoppedError(
            f"you are not signed in to {common.server_url}: this command sent no credential, and is {ANONYMOUS}",
            code="denied",
            hint=sign_in_hint(),
        )
    server = common.server_url
    if not is_known:
        note = f"no user of metalake {common.metalake}, or disabled in it, or there is none: its administrator knows"
        print(visible(f"note: {user} is {note}; 'limnos list metalakes' lists yours"), file=sys.stderr)
    show_done(f"{user} at {server}", {"user": user, "server": server}, output_format=common.output_format)


def _is_known(client: Client, metalake: str) -> bool:
    """Return whether a metalake takes requests of the caller: it refuses all of a disabled user. The list leaves no
    refusal in the audit, as a load would.
    """
    try:
        return metalake in {each.name for each in client.metalakes.list()}
    except (ClientError, ArgumentError):
        return True


def _long_rows(client: Client, children: Sequence[ChildInfo], *, is_long: bool) -> list[Row]:
    """Return rows for objects. If `is_long` is true, with rows and sizes of the first tables."""
    rows: list[Row] = []
    for number, child in enumerate(children):
        row: dict[str, object] = {"name": display.render(child.path), "kind": child.kind, "path": child.path}
        if is_long:
            row = {**msgspec.structs.asdict(child), **row, "owner": child.owner.name if child.owner else None}
            if child.kind == "table" and number < SIZED_MAX:
                row = {**row, **_sizes(client, child)}
        rows.append(row)
    return rows


def _sizes(client: Client, child: ChildInfo) -> Row:
    """Return rows, bytes and last change of a table; empty for a table that the caller may not load."""
    try:
        if child.format == "lance":
            return {**lance_sizes(client, child.path), "changed_at": child.changed_at}
        contents = table_contents(client.tables.load(child.path, snapshots="refs").metadata)
    except (ClientError, ArgumentError):
        return {}
    return {
        "rows": contents["rows"],
        "size_bytes": contents["size_bytes"],
        "size": contents["size"],
        "changed_at": contents["last_change"] or child.changed_at,
    }


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
    """List the namespaces, Iceberg tables and views in a catalog or namespace, and objects of declared kinds."""
    rows = [_row(child, "namespace") for child in client.namespaces.list(parts)]
    try:
        if len(parts) > 1:
            rows += [_row(table, "table") for table in client.tables.list(parts)]
            rows += [_row(view, "view") for view in client.views.list(parts)]
    except DeniedError:
        if not rows:  # the caller may only use objects in the namespaces
            raise
    if len(parts) > 1:
        for each in DECLARED:
            with suppress(NotFoundError, DeniedError, RefusedError):
                children = client.children.list(parts, kind=each.kind.word)
                rows += [_row(child.path, each.kind.word) for child in children]
    return rows


def _row(parts: Parts, kind: str) -> Row:
    return {"name": display.render(parts), "kind": kind, "path": parts}


def check_is_in_tree(kind: str, path: str, *, verb: str) -> None:
    """Raise UsageError for the kind `tag`: tags are not in the tree and have their own commands. `verb` is the command,
    for the message.
    """
    if kind == "tag":
        raise UsageError("a tag has no path", hint=f"'limnos tag {verb} {path}'")


def require(was_there: bool, kind: str, name: str) -> None:  # noqa: FBT001 - the answer of the call it wraps
    """Raise NotFoundError if `was_there` is false: the server reported that the object did not exist."""
    if not was_there:
        raise NotFoundError(f"there is no {kind} '{name}'", status=404, code="not-found")
